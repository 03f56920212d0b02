"""The app as dprec brings it along."""

import shutil
from pathlib import Path

import pytest
from flwr.cli.build import build_fab_from_disk

from dprec.errors import InputError, RunError
from dprec_pilot.server.superlink import APP, write_app

# Flower's, where it packs the app.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_it_is_that_of_the_checkout(tmp_path: Path) -> None:
    write_app(tmp_path / "a" / "pilot")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["pilot"]
    assert build_fab_from_disk(tmp_path / "a" / "pilot") == build_fab_from_disk(APP)


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
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(RunError):
        write_app(tmp_path / "pilot")
    assert list(tmp_path.iterdir()) == []
