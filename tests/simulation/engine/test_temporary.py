"""Temporary folders: gone with their process, or at the next start where it was killed."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from dprec.datasets import Synthetic
from dprec.splits import Holdout
from simulation.comparison.cell_runs import SharedRatings, run_together
from simulation.engine.session import clear_abandoned, temporary_folder

SHARED = SharedRatings.load(Synthetic(users=5, items=5, ratings=15), Holdout(), None, 1, False)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let everything here, other processes included, take its folders from the test's own place."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


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


def test_a_folder_is_deleted_in_the_end_however_a_run_ends(scratch: Path) -> None:
    with temporary_folder() as folder:
        assert folder.parent == scratch
        assert folder.name.startswith(f"dprec-run-{os.getpid()}-")
        (folder / "run").mkdir()
        (folder / "run" / "items.npy").write_text("ratings")
    with pytest.raises(KeyError), temporary_folder():
        raise KeyError
    assert list(scratch.iterdir()) == []


def test_what_a_killed_process_left_is_cleared_at_the_next_start() -> None:
    left = killed()
    with temporary_folder() as folder:
        assert not left.exists()
        assert folder.exists()


def test_what_a_killed_worker_left_goes_with_its_owner_s_folder(scratch: Path) -> None:
    with temporary_folder() as owned:
        run_together(SHARED, [], str(owned))
        assert killed().parent == owned
    assert list(scratch.iterdir()) == []


def test_a_worker_without_its_owner_s_folder_takes_its_own(scratch: Path) -> None:
    run_together(SHARED, [], str(scratch / "of another node"))
    with temporary_folder() as folder:
        assert folder.parent == scratch


def test_a_folder_is_deleted_though_workers_still_write(monkeypatch: pytest.MonkeyPatch) -> None:
    delete, refused = shutil.rmtree, [OSError("not empty")]

    def fails_once(folder: Path) -> None:
        if refused:
            raise refused.pop()
        delete(folder)

    with temporary_folder() as folder:
        monkeypatch.setattr(shutil, "rmtree", fails_once)
    assert not folder.exists()


def test_folders_of_others_are_kept(scratch: Path) -> None:
    """Under another name, no folder, or behind a link: not ours to delete."""
    (scratch / "dprec-notes").mkdir()
    (scratch / "dprec-run-1-file").write_text("text")
    (scratch / "elsewhere").mkdir()
    (scratch / "dprec-run-1-link").symlink_to(scratch / "elsewhere")
    before = sorted(scratch.rglob("*"))
    clear_abandoned()
    assert sorted(scratch.rglob("*")) == before
