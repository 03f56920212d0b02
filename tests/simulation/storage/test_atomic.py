import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from dprec.errors import InputError, RunError
from simulation.storage.files import unusable, write_atomically, write_files


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


def test_files_are_written_to_a_folder_that_is_made(tmp_path: Path) -> None:
    write_files(tmp_path / "a" / "b", {"one": "1", "two": "2"})
    assert (tmp_path / "a" / "b" / "two").read_text() == "2"
    with pytest.raises(InputError, match="one"):
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
