"""What `git add -A` takes of a pilot: nothing, wherever its folders are moved to."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dprec.errors import InputError
from dprec_pilot.server.preparing import check_untracked
from pilot.tests.server.pilots import BLP, pilot
from tests.refusals import refused_at

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *command: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", *who, *command], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


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


def test_the_names_would_be_added_if_nothing_ignored_them(work_tree: Path) -> None:
    pilot(BLP, work_tree / "pilot", devices=2)
    for path in (work_tree / "pilot").rglob(".gitignore"):
        path.unlink()
    assert {"pilot/authority/ca.key", "pilot/devices/000000/secret.key"} <= set(added(work_tree))


def test_a_place_whose_files_are_tracked_is_refused(work_tree: Path) -> None:
    (work_tree / "pilot").mkdir()
    (work_tree / "pilot" / "secret.key").write_text("once published")
    git(work_tree, "add", "-A")
    git(work_tree, "commit", "--quiet", "-m", "all")
    shutil.rmtree(work_tree / "pilot")
    with refused_at("pilot") as caught:
        pilot(BLP, work_tree / "pilot", devices=2)
    assert caught.value.found.startswith("1 files")
    assert not (work_tree / "pilot").exists()
    git(work_tree, "rm", "-r", "--quiet", "--cached", "pilot")
    pilot(BLP, work_tree / "pilot", devices=2)


def test_outside_of_work_trees_and_without_git_nothing_is_refused(
    work_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_untracked(tmp_path / "pilot")
    (work_tree / "file").write_text("")
    git(work_tree, "add", "-A")
    with pytest.raises(InputError):
        check_untracked(work_tree / "file")
    monkeypatch.setenv("PATH", str(tmp_path))
    check_untracked(work_tree / "file")
