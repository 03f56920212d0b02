"""Files exist whole or not at all, tables come back as they were, and what is damaged is named."""

import copy
import errno
import gzip
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from dprec.errors import InputError, RunError
from simulation import run
from simulation.pages import report
from simulation.storage import files
from simulation.storage.files import (
    LookedUp,
    csv_of_rows,
    read_columns,
    read_lines,
    table_in,
    table_name,
    unusable,
    write_atomically,
    write_table,
)
from tests.refusals import refused_at
from tests.simulation.conftest import TINY


def test_a_file_is_on_disk_before_it_has_its_name_and_then_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls = tmp_path / "file", list[tuple[str, bytes]]()

    def synced(descriptor: int) -> None:
        (written,) = tmp_path.iterdir()
        of_file = os.path.samestat(os.fstat(descriptor), written.stat())
        assert of_file or os.path.samestat(os.fstat(descriptor), tmp_path.stat())
        calls.append(("file" if of_file else "folder", written.read_bytes()))

    replace = os.replace

    def renamed(source: str, target: Path) -> None:
        calls.append(("replace", Path(source).read_bytes()))
        replace(source, target)

    monkeypatch.setattr(files.os, "fsync", synced)
    monkeypatch.setattr(files.os, "replace", renamed)
    write_atomically(path, ["all ", "of it"])
    assert calls == [(each, b"all of it") for each in ("file", "replace", "folder")]
    assert path.read_bytes() == b"all of it"


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")

    def broken() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, broken())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, iter(["new", "er ✓"]))
    assert path.read_text(encoding="utf-8") == "newer ✓"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_an_error_of_the_system_names_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    def full() -> Iterator[str]:
        yield "some"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(tmp_path / "file", full())
    assert caught.value.filename == str(tmp_path / "file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, RunError), (errno.EACCES, InputError)])
def test_only_a_full_disk_is_not_the_callers_to_correct(number: int, error: type[Exception]) -> None:
    raised = unusable(Path("place"), OSError(number, "reason"))
    assert type(raised) is error
    assert str(raised).startswith("place: reason")


COLUMNS = {
    "user": np.array(["a,b", 'c"d', "é", "two\nlines"]),
    "count": np.array([1, 20, 300, 4000]),
    "loss": np.array([0.1, np.nan, np.inf, 1e-12]),
}
TEXT = 'user,count,loss\n"a,b",1,0.1\n"c""d",20,\né,300,\n"two\nlines",4000,1e-12\n'
TYPES = {"user": np.str_, "count": np.int64, "loss": np.float64}


@pytest.mark.parametrize("at_once", [1, 3, 100])
@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_a_table_comes_back_to_the_digit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, at_once: int
) -> None:
    monkeypatch.setattr(files, "_ROWS_AT_ONCE", at_once)
    path = tmp_path / name
    write_table(path, COLUMNS)
    content = path.read_bytes()
    # In gzip, bytes 4 to 7 are the time, and no flag says that a name or a comment follows.
    assert not name.endswith(".gz") or content[3:8] == bytes(5)
    assert (gzip.decompress(content) if name.endswith(".gz") else content).decode() == TEXT
    read = read_columns(path, TYPES, "a table")
    assert read["user"].tolist() == COLUMNS["user"].tolist()
    np.testing.assert_array_equal(read["count"], COLUMNS["count"])
    np.testing.assert_array_equal(read["loss"], [0.1, np.nan, np.nan, 1e-12])


def test_a_large_table_is_parquet_and_comes_back_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_ROWS_OF_CSV", 3)
    monkeypatch.setattr(files, "_ROWS_OF_A_GROUP", 3)
    assert (table_name("t.csv.gz", 3), table_name("t.csv.gz", 4)) == ("t.csv.gz", "t.parquet")
    assert table_in(tmp_path, "t.csv.gz") == tmp_path / "t.csv.gz"
    texts = LookedUp(COLUMNS["user"][:2], np.array([1, 0, 0, 1], dtype=np.uint8))
    write_table(tmp_path / "t.parquet", {**COLUMNS, "text": texts})
    path = table_in(tmp_path, "t.csv.gz")
    assert path == tmp_path / "t.parquet"
    write_table(tmp_path / "again.parquet", {**COLUMNS, "text": texts})
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    read = read_columns(path, {**TYPES, "text": np.str_}, "a table")
    assert read["user"].tolist() == COLUMNS["user"].tolist()
    assert read["text"].tolist() == ['c"d', "a,b", "a,b", 'c"d']
    assert (read["count"].dtype, read["count"].tolist()) == (np.int64, [1, 20, 300, 4000])
    np.testing.assert_array_equal(read["loss"], [0.1, np.nan, np.nan, 1e-12])
    assert read_columns(path, {"count": np.str_}, "a table", 2)["count"].tolist() == ["1", "20"]


def test_the_lines_of_a_table_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_table(path, COLUMNS)
    (_, header), *lines = read_lines(path, ("user",), "a table")
    assert header == list(COLUMNS)
    assert lines[0] == (f"{path}, line 2", ["a,b", "1", "0.1"])
    assert [where for where, _ in lines] == [f"{path}, line {number}" for number in (2, 3, 4, 6)]


def test_every_number_comes_back_and_is_written_as_python_writes_it(tmp_path: Path) -> None:
    draws = np.random.default_rng(1)
    numbers = draws.normal(size=2000) * 10.0 ** draws.integers(-20, 20, 2000)
    numbers = np.concatenate([numbers, [0.0, 5.0, 1e-4, 1e15, 1e16, 1e22]])
    write_table(tmp_path / "table.csv", {"number": numbers})
    written = (tmp_path / "table.csv").read_text().split()[1:]
    for text, number in zip(written, numbers.tolist(), strict=True):
        assert float(text) == number
        assert abs(number) < 1e-4 or text == repr(number)
    read = read_columns(tmp_path / "table.csv", {"number": np.float64}, "numbers")
    assert read["number"].tobytes() == numbers.tobytes()


def test_rows_of_different_columns_leave_cells_empty() -> None:
    assert csv_of_rows([{"a": 1}, {"b": 2.5, "a": None}, {"b": 0}]) == "a,b\n1,\n,2.5\n,0\n"


WHOLE = gzip.compress(TEXT.encode() * 100, mtime=0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b""),
        ("t.csv", b"loss\n1\n"),
        ("t.csv", b"count,loss\n1.5,2\n"),
        ("t.csv", b"count,loss\n1,good\n"),
        ("t.csv", b"count,loss\n1,\xff\n"),
        ("t.csv", b"count,loss\n1,0.25\n2,0.2"),
        ("t.csv.gz", WHOLE[:-9]),
        ("t.csv.gz", b"no gzip\n"),
        ("t.parquet", b"no parquet\n"),
        ("missing.csv", None),
    ],
)
def test_what_is_no_such_table_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_columns(tmp_path / name, {"count": np.int64, "loss": np.float64}, "a table")
    assert caught.value.where.removesuffix(": count") == str(tmp_path / name)
    assert len(str(caught.value)) < len(str(tmp_path)) + 200


def test_a_large_table_for_which_a_disk_is_too_full_is_an_error_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def full(path: Path) -> Iterator[BinaryIO]:
        with open("/dev/full", "wb") as file:
            yield file

    monkeypatch.setattr(files, "written_atomically", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_table(tmp_path / "t.parquet", {"number": np.random.default_rng(1).random(500_000)})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no column count; accepted: a table"),
        ("count,loss\n1,2\n3\n", "line 3: 1 cells; accepted: 2, one per column"),
        ("count,loss\n1,2\n1,0.", "a last line that does not end; accepted: a table"),
        (f"count,loss\n1,{'1' * 200_000}\n", "field larger than"),
    ],
)
def test_a_line_that_is_none_of_such_a_table_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(InputError, match=complaint):
        list(read_lines(tmp_path / "table.csv", ("count",), "a table"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    run(copy.deepcopy(TINY), folder)
    return folder


@pytest.fixture
def directory(finished: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for path in finished.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def cut_at_a_line(text: bytes) -> bytes:
    return b"".join(text.splitlines(keepends=True)[:-1])


@pytest.mark.parametrize("damage", [cut_at_a_line, lambda text: text[:-3], None])
@pytest.mark.parametrize("name", ["traffic.csv", "predictions.csv.gz", "rounds.jsonl"])
def test_a_cut_file_is_named_and_nothing_is_lost(
    directory: Path, name: str, damage: Callable[[bytes], bytes] | None
) -> None:
    path = directory / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    for use in (lambda: report(directory), lambda: run(copy.deepcopy(TINY), directory, resume=True)):
        with pytest.raises(InputError) as caught:
            use()
        assert caught.value.where.startswith(str(path))
        assert "\n" not in str(caught.value)
    assert "without summary.json, --resume runs it again" in caught.value.accepted
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def test_a_run_of_a_damaged_result_can_be_repeated(directory: Path, finished: Path) -> None:
    for name in ("traffic.csv", "predictions.csv.gz", "rounds.jsonl", "channel.npz", "ledger.npz"):
        (directory / name).write_bytes(b"")
    (directory / "summary.json").unlink()
    run(copy.deepcopy(TINY), directory, resume=True, page=False)
    for name in ("traffic.csv", "predictions.csv.gz"):
        assert (directory / name).read_bytes() == (finished / name).read_bytes()
    report(directory)


@pytest.mark.parametrize("name", ["channel.npz", "ledger.npz"])
@pytest.mark.parametrize("change", [b"not arrays", None, {"weights": np.zeros(3)}])
def test_a_damaged_archive_is_named(directory: Path, name: str, change: Any) -> None:
    path = directory / name
    if isinstance(change, dict):
        np.savez(path, **change)
    else:
        path.write_bytes(path.read_bytes()[:-100] if change is None else change)
    with refused_at(str(path)):
        run(copy.deepcopy(TINY), directory, resume=True, page=False)
