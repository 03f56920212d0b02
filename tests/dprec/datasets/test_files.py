"""Packed files are read as what they hold; anything else about them is one clear line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprec.datasets import DelimitedTable
from dprec.datasets import files as compression
from dprec.errors import InputError

TEXT = b"user,item,rating\n1,2,3\n1,3,4\n"


def load(path: Path, **settings: Any) -> Any:
    return DelimitedTable(path=str(path), **settings).load()


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_text(pack: Any, tmp_path: Path) -> None:
    path, packed = tmp_path / "mine", pack(TEXT)
    path.write_bytes(packed)
    assert load(path).values.tolist() == [3, 4]
    path.write_bytes(packed[:-9])
    with pytest.raises(InputError, match="mine: a packed file that cannot be unpacked"):
        load(path)
    path.write_bytes(packed[:12] + b"x" * 20)
    with pytest.raises(InputError, match="mine: a packed file that cannot be unpacked"):
        load(path)


def test_an_archive_of_one_file(tmp_path: Path) -> None:
    path = zipped(tmp_path / "mine.zip", **{"a/ratings.csv": TEXT, "__MACOSX/ratings.csv": b"x"})
    assert load(path).values.tolist() == [3, 4]
    several = zipped(tmp_path / "more.zip", a=TEXT, b=TEXT)
    with pytest.raises(
        InputError, match=r"more.zip: an archive of 2 files: a, b; accepted: an archive of one"
    ):
        load(several)
    with pytest.raises(InputError, match=r"none.zip: an archive of 0 files; accepted"):
        load(zipped(tmp_path / "none.zip"))
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError, match=r"mine.zip: a packed file that cannot be unpacked"):
        load(path)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused_before_it_fills_the_memory(
    pack: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "_FREE_BYTES", 1 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"1,2,3\n" * 1_000_000))
    with pytest.raises(
        InputError, match=r"bomb: [\d,]+ bytes that unpack to more than [\d,]+; accepted: a file"
    ):
        load(path)


def test_a_spreadsheet_is_named_as_such(tmp_path: Path) -> None:
    frame = pd.DataFrame({"user": [1], "item": [2], "rating": [3]})
    frame.to_excel(tmp_path / "mine.xlsx")
    (tmp_path / "mine.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    for name in ("mine.xlsx", "mine.xls"):
        with pytest.raises(InputError, match=rf"{name}: a spreadsheet; accepted: the sheet saved as .csv"):
            load(tmp_path / name)


@pytest.mark.parametrize("users", [[1, 2, 1], ["b", "a", "b"]])
@pytest.mark.parametrize("kind", [None, "category"])
def test_parquet(users: Any, kind: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"note": ["x"] * 3, "userId": users, "movieId": [5, 6, 6], "score": [1.0, 2, 4]})
    frame.astype({"userId": kind} if kind else {}).to_parquet(tmp_path / "mine.parquet", row_group_size=2)
    ratings = load(tmp_path / "mine.parquet")
    assert ratings.user_ids.tolist() == sorted(set(users))
    np.testing.assert_array_equal(ratings.values, [1, 4, 2] if users[0] == 1 else [2, 1, 4])
    with pytest.raises(
        InputError, match=r"mine.parquet: no column 'film'; accepted: .*item_column=\.\.\., one of movieId"
    ):
        load(tmp_path / "mine.parquet", item_column="film")
    frame.assign(score=[1.0, None, 2]).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(InputError, match=r"mine.parquet, column 'score', row 2: nothing; accepted: a value"):
        load(tmp_path / "mine.parquet")
    for odd, message in (("x" * 256, "an identifier of 256 characters"), ("a\0", "with a zero character")):
        frame.assign(userId=["a", odd, "b"]).to_parquet(tmp_path / "mine.parquet")
        with pytest.raises(InputError, match=rf"mine.parquet, column 'userId': .*{message}"):
            load(tmp_path / "mine.parquet")
    (tmp_path / "mine.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"mine.parquet: a Parquet table that cannot be read"):
        load(tmp_path / "mine.parquet")
