"""What `git add -A` takes of a pilot: nothing, wherever its folders are moved to."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pilot.tests.make import BLP, pilot

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *command: str) -> str:
    return subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


def added(work_tree: Path) -> list[str]:
    git(work_tree, "add", "-A")
    return git(work_tree, "ls-files").splitlines()


def test_nothing_of_a_pilot_is_added_whole_or_in_parts(work_tree: Path) -> None:
    pilot(BLP, work_tree / "some" / "pilot", devices=2)
    (work_tree / "notes.txt").write_text("the operator's own")
    assert added(work_tree) == ["notes.txt"]
    for part in ("server", "authority", "devices/000000"):
        shutil.move(work_tree / "some" / "pilot" / part, work_tree / Path(part).name)
    assert (work_tree / "000000" / "secret.key").exists()
    assert added(work_tree) == ["notes.txt"]
