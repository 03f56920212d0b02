"""Temporary folders: gone with their process, or at the next start where it was killed."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulation.engine.session import clear_abandoned, temporary_folder

OWNER = """
import sys
from simulation.engine.session import temporary_folder
with temporary_folder() as folder:
    (folder / "run").mkdir()
    (folder / "run" / "items.npy").write_text("ratings")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let everything here, other processes included, take its folders from the test's own place."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@contextmanager
def another_process() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that has a folder, and yield both."""
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        try:
            yield owner, Path(owner.stdout.readline().strip())
        finally:
            owner.kill()


def killed() -> Path:
    """Return the folder of a process that was killed; forked, since nothing needs to be imported."""
    process = os.fork()
    if process == 0:
        with temporary_folder() as folder:
            (folder / "items.npy").write_text("ratings")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)
    (folder,) = Path(tempfile.gettempdir()).glob(f"dprec-run-{process}-*")
    assert (folder / "items.npy").exists()
    return folder


def test_a_folder_is_deleted_in_the_end(scratch: Path) -> None:
    with temporary_folder() as folder:
        assert folder.parent == scratch
        assert folder.name.startswith(f"dprec-run-{os.getpid()}-")
        (folder / "run").mkdir()
        (folder / "run" / "items.npy").write_text("ratings")
    assert list(scratch.iterdir()) == []


def test_a_folder_is_deleted_when_a_run_fails(scratch: Path) -> None:
    with pytest.raises(KeyError), temporary_folder():
        raise KeyError
    assert list(scratch.iterdir()) == []


def test_what_a_killed_process_left_is_cleared_at_the_next_start() -> None:
    left = killed()
    with temporary_folder() as folder:
        assert not left.exists()
        assert folder.exists()


@pytest.mark.thorough
def test_the_folder_of_another_process_is_kept_until_it_is_killed() -> None:
    with another_process() as (owner, folder):
        clear_abandoned()
        assert (folder / "run" / "items.npy").exists()
        owner.kill()
        owner.wait()
        assert folder.exists()
        clear_abandoned()
        assert not folder.exists()


def test_own_folders_are_kept() -> None:
    with temporary_folder() as first, temporary_folder() as second:
        assert first.exists()
        assert second.exists()


def test_folders_of_others_are_kept(scratch: Path) -> None:
    """Under another name, no folder, or behind a link: not ours to delete."""
    (scratch / "dprec-notes").mkdir()
    (scratch / "dprec-run-1-file").write_text("text")
    (scratch / "elsewhere").mkdir()
    (scratch / "dprec-run-1-link").symlink_to(scratch / "elsewhere")
    before = sorted(scratch.rglob("*"))
    clear_abandoned()
    assert sorted(scratch.rglob("*")) == before


def test_a_folder_of_another_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    left = killed()
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    clear_abandoned()
    assert left.exists()


def test_several_may_clear_at_once() -> None:
    left = [killed() for _ in range(3)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: clear_abandoned(), range(8)))
    assert not any(folder.exists() for folder in left)
