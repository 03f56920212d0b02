"""The app as dprec brings it along."""

import shutil
from pathlib import Path

import pytest
from flwr.cli.build import build_fab_from_disk

from dprec.errors import InputError
from simulation.deployment import flower_app
from simulation.deployment.flower_app import app_folder, write_app
from tests.paths import ROOT

# Flower's, where it packs the app.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

APP = ROOT / "deployment"


def test_it_is_that_of_the_checkout(tmp_path: Path) -> None:
    assert app_folder() == APP
    write_app(tmp_path / "a" / "pilot")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["pilot"]
    assert build_fab_from_disk(tmp_path / "a" / "pilot") == build_fab_from_disk(APP)


def test_an_installed_package_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(APP, tmp_path / "app")
    (tmp_path / "app" / "README.md").write_text("installed")
    monkeypatch.setattr(flower_app, "_PACKAGE", tmp_path)
    write_app(tmp_path / "pilot")
    assert (tmp_path / "pilot" / "README.md").read_text() == "installed"


@pytest.mark.parametrize("name", ["folder", "file", "dangling"])
def test_what_is_there_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(InputError) as caught:
        write_app(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "file", "folder"]
    assert list((tmp_path / "folder").iterdir()) == []


def test_nothing_is_left_where_it_cannot_be_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_source: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(RuntimeError):
        write_app(tmp_path / "pilot")
    assert list(tmp_path.iterdir()) == []
