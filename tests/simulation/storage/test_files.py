"""The files beside a summary: whatever happens to them is noticed before a page is drawn from them."""

import copy
import errno
import json
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError, RunError
from simulation import run
from simulation.pages import report
from simulation.storage.files import (
    FileSummary,
    check_recorded,
    unusable,
    write_atomically,
    write_files,
    write_recorded,
)
from tests.refusals import refused_at
from tests.simulation.conftest import TINY


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


def test_files_are_written_to_a_folder_that_is_made(tmp_path: Path) -> None:
    write_files(tmp_path / "a" / "b", {"one": "1", "two": "2"})
    assert (tmp_path / "a" / "b" / "two").read_text() == "2"
    with refused_at("one"):
        write_files(tmp_path / "a" / "b" / "one", {"three": "3"})


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, RunError),
        (errno.EDQUOT, RunError),
        (errno.EACCES, InputError),
        (errno.ENOENT, InputError),
    ],
)
def test_only_a_full_disk_is_not_the_callers_to_correct(number: int, error: type[Exception]) -> None:
    raised = unusable(Path("place"), OSError(number, "reason"))
    assert type(raised) is error
    assert str(raised).startswith("place: reason")


ITERATIVE: dict[str, Any] = TINY | {
    "protocol": {
        "kind": "iterative",
        "privacy": {"epsilon": 4.0, "per": "user"},
        "gradient": {"kind": "one-bit"},
        "rounds": 4,
        "rank": 2,
    },
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    run(copy.deepcopy(ITERATIVE), folder)
    return folder


@pytest.fixture
def directory(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def cut_at_a_line(text: bytes) -> bytes:
    return b"".join(text.splitlines(keepends=True)[:-1])


def cut_within_a_line(text: bytes) -> bytes:
    return text[:-3]


def one_digit_changed(text: bytes) -> bytes:
    place = next(at for at in range(len(text) - 1, 0, -1) if text[at : at + 1].isdigit())
    return text[:place] + (b"7" if text[place : place + 1] != b"7" else b"8") + text[place + 1 :]


def one_line_more(text: bytes) -> bytes:
    return text + text.splitlines(keepends=True)[-1]


ROWS = {"traffic.csv": 40, "predictions.csv.gz": 80, "rounds.jsonl": 4}
OTHER = "changed since it was written"


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(
    ("damage", "more"),
    [(cut_at_a_line, -1), (cut_within_a_line, 0), (one_digit_changed, 0), (one_line_more, 1)],
)
def test_a_damaged_file_is_named_and_no_page_drawn(
    directory: Path, name: str, damage: Callable[[bytes], bytes], more: int
) -> None:
    path, page = directory / name, (directory / "report.html").read_bytes()
    path.write_bytes(damage(path.read_bytes()))
    with refused_at(str(path)) as caught:
        report(directory)
    rows, more = ROWS[name], 0 if name.endswith(".gz") else more
    assert caught.value.found == (f"{rows + more} rows" if more else OTHER)
    assert caught.value.accepted.endswith("the file that was written with the summary")
    assert not more or caught.value.accepted.startswith(f"{rows} rows")
    assert (directory / "report.html").read_bytes() == page
    with pytest.raises(InputError) as resumed:
        run(copy.deepcopy(ITERATIVE), directory, resume=True)
    assert (resumed.value.where, resumed.value.found) == (str(path), caught.value.found)
    assert "without summary.json, --resume runs it again" in resumed.value.accepted


def test_a_changed_history_of_charges_is_named(directory: Path) -> None:
    path = directory / "ledger.npz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=OTHER):
        report(directory)


@pytest.mark.parametrize("name", ROWS)
def test_a_missing_file_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(InputError, match=f"{name}: No such file"):
        report(directory)


def test_a_table_whose_lines_cannot_be_told_apart(directory: Path) -> None:
    path = directory / "traffic.csv"
    path.write_bytes(path.read_bytes() + b'"' + b"1" * 200_000)
    with refused_at(str(path)):
        report(directory)


def test_a_run_of_a_damaged_result_can_be_repeated(directory: Path, finished: Path) -> None:
    for name in ROWS:
        (directory / name).write_bytes(b"")
    (directory / "summary.json").unlink()
    run(copy.deepcopy(ITERATIVE), directory, resume=True, page=False)
    for name in ("traffic.csv", "predictions.csv.gz"):
        assert (directory / name).read_bytes() == (finished / name).read_bytes()
    report(directory)


def test_the_summary_records_every_file(directory: Path) -> None:
    files = json.loads((directory / "summary.json").read_text())["files"]
    assert {name: entry["rows"] for name, entry in files.items()} == {
        **ROWS,
        "ledger.npz": None,
        "messages.json": None,
    }


def test_a_file_that_the_summary_does_not_know_is_refused(directory: Path) -> None:
    path = directory / "summary.json"
    summary = json.loads(path.read_text())
    del summary["files"]["traffic.csv"]
    path.write_text(json.dumps(summary))
    with refused_at("traffic.csv"):
        report(directory)


def test_what_was_written_is_what_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    recorded = write_recorded(path, ["a,b\n", "1,2\n", b"3,4\n"], 2)
    assert path.read_text() == "a,b\n1,2\n3,4\n"
    check_recorded(path, recorded)
    with pytest.raises(InputError, match="2 rows; accepted: 3 rows"):
        check_recorded(path, FileSummary(rows=3, sha256="0" * 64))
