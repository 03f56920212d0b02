"""Files that are no tables: each is named, and what is printed beside it makes a table of it."""

import bz2
import gzip
import io
import lzma
import pickle
import re
import shlex
import shutil
import sqlite3
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

from dprec.datasets import DelimitedTable
from dprec.datasets.foreign import is_json_lines
from dprec.errors import InputError

MATRIX = sp.coo_array(np.array([[5.0, 0, 1], [0, 3, 0], [4, 2, 0]]))
ROWS = pd.DataFrame({"user": [1234567, 1234568], "item": [7, 7], "rating": [5, 3]})
TEXT = ROWS.to_csv(index=False).encode()
WIDE = np.random.default_rng(0).integers(0, 6, (30, 12))


def _bytes(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def _tar(file: io.BytesIO) -> None:
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo("ratings.csv")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))


def _zip(file: io.BytesIO) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("ratings.csv", TEXT)


def _sheet(file: io.BytesIO) -> None:
    ROWS.to_excel(file, index=False)
    with zipfile.ZipFile(io.BytesIO(file.getvalue())) as sheet:
        members = {name: sheet.read(name) for name in sheet.namelist()}
    file.seek(0)
    # Some programs write what the parts are last.
    with zipfile.ZipFile(file, "w") as archive:
        for name in sorted(members, reverse=True):
            archive.writestr(name, members[name])


def _database(file: io.BytesIO) -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE T AS SELECT 1234567 AS user, 7 AS item, 5 AS rating")
    file.write(database.serialize())


def _wide(rows: np.ndarray, **settings: object) -> bytes:
    return _bytes(lambda file: np.savetxt(file, rows, **settings))


FILES: dict[str, tuple[bytes, str]] = {
    "r.json": (b'[{"user": 1, "item": 7, "rating": 5},\n {"user": 2, "item": 7, "rating": 3}]', "JSON array"),
    "r.obj": (b'{\n "user": 1,\n "item": 7,\n "rating": 5\n}', "JSON object of several lines"),
    "r.arff": (b"% a\n@RELATION r\n@data\n1,7,5\n", "ARFF"),
    "r.mtx": (_bytes(lambda file: scipy.io.mmwrite(file, MATRIX, comment="c")), "Matrix Market"),
    "r.mat": (_bytes(lambda file: scipy.io.savemat(file, {"VARIABLE": MATRIX})), "MATLAB"),
    "r.npy": (_bytes(lambda file: np.save(file, ROWS.to_numpy())), "array of NumPy"),
    "r.npz": (_bytes(lambda file: sp.save_npz(file, MATRIX)), "NumPy or SciPy"),
    "r.pkl": (pickle.dumps(ROWS), "which is not loaded"),
    "r.h5": (b"\x89HDF\r\n\x1a\n\0\0", "HDF5"),
    "r.svm": (b"1 3:1.0 7:2\n0 2:1 5:3\n", "LibSVM"),
    "r.negative": (b"(0,25)\t1064\t174\t2791\n(1,133)\t1072\t3154\t3368\n", "NCF"),
    "r.html": (b"<!DOCTYPE html>\n<html></html>\n", "page of the web"),
    "r.lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n", "Git LFS"),
    "r.feather": (_bytes(lambda file: pl.DataFrame(ROWS.to_dict("list")).write_ipc(file)), "Arrow"),
    "r.db": (_bytes(_database), "database"),
    "r.tar": (b"a" * 257 + b"ustar" + b"\0" * 250, "an archive"),
    "r.7z": (b"7z\xbc\xaf\x27\x1c\0", "an archive"),
    "r.tar.gz": (_bytes(_tar), "an archive"),
    "r.zip": (_bytes(_zip), "archive"),
    "r.csv.bz2": (bz2.compress(TEXT), "an archive"),
    "r.csv.xz": (lzma.compress(TEXT), "an archive"),
    "r.xlsx": (_bytes(lambda file: ROWS.to_excel(file, index=False)), "spreadsheet"),
    "last.xlsx": (_bytes(_sheet), "spreadsheet"),
    "r.utf16": (TEXT.decode().encode("utf-16"), "UTF-16"),
    "series.pkl": (pickle.dumps(ROWS.set_index(["user", "item"])["rating"]), "which is not loaded"),
    "columns.json": (ROWS.to_json().encode(), "a JSON object of columns"),
    "lists.json": (b'{"user":["01","1"],"item":[7,7],"rating":[5,3]}', "a JSON object of columns"),
    "python.txt": (b"{'user': 'A1', 'item': \"it's\", 'rating': 5.0}\n", "lines of Python"),
    "python.gz": (gzip.compress(b"{'user': 'A1', 'item': 'B', 'rating': 5.0}\n"), "lines of Python"),
    "mtx.gz": (gzip.compress(_bytes(lambda file: scipy.io.mmwrite(file, MATRIX))), "Matrix Market"),
    "hash.csv": (b"# made in May\n# by hand\n" + TEXT, "a comment, '# made in May'"),
    "out.konect": (b"% sym weighted\n% 2 2 1\n1 7 5\n2 7 3\n", "a comment, '% sym weighted'"),
    "sep.csv": (b"sep=;\nuser;item;rating\n1;7;5\n", "'sep=;', as Excel"),
    "wide.txt": (_wide(WIDE), "12 columns of few"),
    "wide.tsv": (_wide(WIDE, fmt="%d", delimiter="\t"), "12 columns of few"),
    "header.csv": (pd.DataFrame(WIDE).to_csv(index=False).encode(), "12 columns of few"),
    "users.csv": (pd.DataFrame(WIDE).to_csv().encode(), "13 columns of few"),
    "users.txt": (_wide(np.c_[np.arange(30), WIDE], fmt="%d"), "13 columns of few"),
    "jester.csv": (
        _wide(np.c_[np.full(9, 20), np.linspace(-9, 9, 180).reshape(9, 20), np.full(9, 99)], delimiter=","),
        "as of Jester",
    ),
    "mv.txt": (b"1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n", "the ratings of a film below it"),
    "one.csv": (
        b"1488844,3,2005-09-06\n822109,5,2005-05-13\n885013,4,2005-10-19\n1,4,2004-10-19\n",
        "times in",
    ),
}


def _refused(path: Path) -> InputError:
    if path.name in FILES:
        path.write_bytes(FILES[path.name][0])
    with pytest.raises(InputError) as error:
        DelimitedTable(path=str(path)).load()
    return error.value


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_table_is_named(name: str, tmp_path: Path) -> None:
    error = _refused(tmp_path / name)
    assert FILES[name][1] in error.found
    assert str(tmp_path / name) in error.where
    assert "\n" not in str(error)


CONVERTED = {
    "r.json": ("ratings.jsonl", 2),
    "r.obj": ("ratings.jsonl", 1),
    "r.arff": ("ratings.csv", 1),
    "r.pkl": ("ratings.csv", 2),
    "series.pkl": ("ratings.csv", 2),
    "r.feather": ("ratings.parquet", 2),
    "r.db": ("ratings.csv", 1),
    "r.tar.gz": ("ratings.csv", 2),
    "r.zip": ("ratings.csv", 2),
    "r.csv.bz2": ("r.csv", 2),
    "r.csv.xz": ("r.csv", 2),
    "r.xlsx": ("ratings.csv", 2),
    "last.xlsx": ("ratings.csv", 2),
    "r.utf16": ("ratings.csv", 2),
    "columns.json": ("ratings.csv", 2),
    "lists.json": ("ratings.csv", 2),
    "python.txt": ("ratings.jsonl", 1),
    "python.gz": ("ratings.jsonl", 1),
    "mtx.gz": ("ratings.txt", 5),
    "hash.csv": ("ratings.csv", 2),
    "out.konect": ("ratings.csv", 2),
    "sep.csv": ("ratings.csv", 1),
    **dict.fromkeys(
        ("wide.txt", "wide.tsv", "header.csv", "users.csv", "users.txt"), ("ratings.csv", WIDE.size)
    ),
    "r.mtx": ("ratings.txt", 5),
    "r.mat": ("ratings.csv", 5),
    "r.npy": ("ratings.csv", 2),
    "r.npz": ("ratings.csv", 5),
    "r.svm": ("ratings.csv", 4),
    "r.negative": ("test.tsv", 2),
    "mv.txt": ("ratings.csv", 2),
    "one.csv": ("ratings.csv", 4),
}
"""What the printed command writes, and how many ratings or pairs the table has."""


@pytest.mark.parametrize("name", CONVERTED)
def test_the_command_that_is_printed_makes_a_table(name: str, tmp_path: Path) -> None:
    _run(_refused(tmp_path / name), tmp_path)
    written, ratings = CONVERTED[name]
    table = DelimitedTable(path=str(tmp_path / written), low=0.0, high=10.0)
    assert table.load().count == ratings


def _run(error: InputError, folder: Path) -> None:
    command = re.search(
        r'python -c "[^"]*"|\b(grep|awk|sed|iconv|jq|sqlite3) .*? >>? [\w.]+|(tar|unzip|bunzip2|unxz) .*',
        error.accepted,
    )
    assert command is not None
    shell = shutil.which("bash")
    assert shell is not None
    if not command[0].startswith("python -c "):
        subprocess.run([shell, "-c", command[0]], cwd=folder, check=True, capture_output=True)
        return
    _, _, code = shlex.split(command[0])
    assert not {"$", "`"} & {*code}, "a shell would replace it"
    with chdir(folder):
        exec(code, {})


def test_large_identifiers_keep_their_digits(tmp_path: Path) -> None:
    matrix = sp.coo_array((np.array([0.1, 5]), ([1234567, 1234568], [7, 7])))
    sp.save_npz(tmp_path / "large.npz", matrix)
    _run(_refused(tmp_path / "large.npz"), tmp_path)
    table = DelimitedTable(path=str(tmp_path / "ratings.csv")).load().to_pandas().to_numpy()
    assert table.tolist() == [[1234567, 7, 0.1], [1234568, 7, 5]]


def test_zeros_of_a_matrix_can_mean_that_there_is_no_rating(tmp_path: Path) -> None:
    assert "--set dataset.missing=[0]" in _refused(tmp_path / "wide.txt").accepted


def test_a_matrix_of_jester_is_of_its_kind(tmp_path: Path) -> None:
    kind = f"--set 'dataset={{kind: jester, path: {tmp_path / 'jester.csv'}}}'"
    assert _refused(tmp_path / "jester.csv").accepted == kind


def test_pairs_to_test_on_go_with_those_to_learn_from(tmp_path: Path) -> None:
    train, test = tmp_path / "ml.train.rating", tmp_path / "ml.test.negative"
    train.write_bytes(b"0\t32\t4\t978824330\n1\t34\t4\t978824331\n1\t25\t3\t978824332\n")
    test.write_bytes(FILES["r.negative"][0])
    error = _refused(test)
    _run(error, tmp_path)
    typed = f"{{kind: csv, train_path: {train}, test_path: test.tsv, rating_column: none}}"
    assert error.accepted.endswith(f"--set 'dataset={typed}'")
    parts = DelimitedTable(train_path=str(train), test_path=str(tmp_path / "test.tsv"), rating_column="none")
    assert [part.count for part in parts.load_fold("given")] == [3, 2]


@pytest.mark.parametrize(
    ("line", "is_row"),
    [
        ('{"user": 1, "votes": [1, 2]}', True),
        ('{"user": {"0": 1}, "item": {"0": 7}}', False),
        ('{"user": [1], "item": [7]}', False),
        ("{'user': 1}", False),
        ('["user"]', False),
    ],
)
def test_json_lines_hold_a_row_each(line: str, is_row: bool) -> None:
    assert is_json_lines(line) == is_row


def test_a_header_may_begin_with_the_mark_of_a_comment(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b"# " + TEXT)
    assert DelimitedTable(path=str(tmp_path / "r.csv")).load().count == 2


def test_json_lines_are_read(tmp_path: Path) -> None:
    lines = [
        '{"reviewerID": "A1", "asin": "B", "overall": 5.0, "votes": [1, 2], "unixReviewTime": 9}',
        '{"reviewerID": "A2", "asin": "B", "overall": 4, "unixReviewTime": 5}',
        '{"reviewerID": "A2", "asin": "C", "overall": 1, "style": {"a": "b"}, "unixReviewTime": 5}',
    ]
    text = "\n".join(lines).encode()
    for name, content in (("r.jsonl", text), ("r.jsonl.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(content)
        ratings = DelimitedTable(path=str(tmp_path / name), where="overall > 1").load()
        assert ratings.to_pandas().to_numpy().tolist() == [["A1", "B", 5], ["A2", "B", 4]]
        assert ratings.reading is not None
        assert (ratings.reading.times, ratings.reading.left_out) == (
            "unixReviewTime",
            (("outside overall > 1", 1),),
        )
    (tmp_path / "torn.jsonl").write_bytes(text[:-10])
    with pytest.raises(InputError, match=r"torn\.jsonl"):
        DelimitedTable(path=str(tmp_path / "torn.jsonl")).load()
