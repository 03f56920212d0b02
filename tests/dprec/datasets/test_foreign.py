"""Files that are no tables: each is named, and what is printed beside it makes a table of it."""

import gzip
import io
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

from dprec.datasets import DelimitedTable
from dprec.errors import InputError

MATRIX = sp.coo_array(np.array([[5.0, 0, 1], [0, 3, 0], [4, 2, 0]]))


def _bytes(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


FILES: dict[str, tuple[bytes, str]] = {
    "r.json": (b'[{"user": 1, "item": 7, "rating": 5},\n {"user": 2, "item": 7, "rating": 3}]', "JSON array"),
    "r.obj": (b'{\n "user": [1]\n}', "JSON object of several lines"),
    "r.arff": (b"% a\n@RELATION r\n@data\n1,7,5\n", "ARFF"),
    "r.mtx": (_bytes(lambda file: scipy.io.mmwrite(file, MATRIX, comment="c")), "Matrix Market"),
    "r.mat": (_bytes(lambda file: scipy.io.savemat(file, {"VARIABLE": MATRIX})), "MATLAB"),
    "r.npy": (_bytes(lambda file: np.save(file, np.array([[1, 7, 5], [2, 7, 3]]))), "array of NumPy"),
    "r.npz": (_bytes(lambda file: sp.save_npz(file, MATRIX)), "NumPy or SciPy"),
    "r.pkl": (pickle.dumps({"user": [1]}), "which is not loaded"),
    "r.h5": (b"\x89HDF\r\n\x1a\n\0\0", "HDF5"),
    "r.svm": (b"1 3:1.0 7:2\n0 2:1 5:3\n", "LibSVM"),
    "r.negative": (b"(0,25)\t1064\t174\t2791\n(1,133)\t1072\t3154\t3368\n", "NCF"),
    "r.html": (b"<!DOCTYPE html>\n<html></html>\n", "page of the web"),
    "r.lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n", "Git LFS"),
    "r.feather": (_bytes(lambda file: pl.DataFrame({"user": [1]}).write_ipc(file)), "Arrow"),
    "r.db": (b"SQLite format 3\0\x10\0", "database"),
    "r.tar": (b"a" * 257 + b"ustar" + b"\0" * 250, "an archive"),
    "r.7z": (b"7z\xbc\xaf\x27\x1c\0", "an archive"),
    "mv.txt": (b"1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n", "the ratings of a film below it"),
    "one.csv": (
        b"1488844,3,2005-09-06\n822109,5,2005-05-13\n885013,4,2005-10-19\n1,4,2004-10-19\n",
        "times in",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_table_is_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name][0])
    with pytest.raises(InputError) as error:
        DelimitedTable(path=str(path)).load()
    assert FILES[name][1] in error.value.found
    assert str(path) in error.value.where
    assert "\n" not in str(error.value)


CONVERTED = {
    "r.json": ("ratings.jsonl", 2),
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
    (tmp_path / name).write_bytes(FILES[name][0])
    with pytest.raises(InputError) as error:
        DelimitedTable(path=str(tmp_path / name)).load()
    begins = ("python -c", "grep", "awk", "sed")
    command = error.value.accepted.partition("; or --set")[0]
    command = command[min(place for begin in begins if (place := command.find(begin)) >= 0) :]
    command = command.replace("python -c", f"{sys.executable} -c")
    shell = shutil.which("bash")
    assert shell is not None
    subprocess.run([shell, "-c", command], cwd=tmp_path, check=True, capture_output=True)
    written, ratings = CONVERTED[name]
    table = DelimitedTable(path=str(tmp_path / written), low=0.0, high=10.0)
    assert table.load().count == ratings


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
