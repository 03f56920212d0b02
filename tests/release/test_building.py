"""The sdist and the wheel: what is in them, and that every build is the same."""

import tarfile
import zipfile
from pathlib import Path

import pytest

from dprec import __version__
from release.building import Built, build, build_pilot, copy_sources
from tests.paths import CONFIGS, ROOT

pytest.importorskip("hatchling")

PACKAGES = ("clients", "dprec", "simulation", "strategies")
EPOCH = 1_750_000_000

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git lists the files of a distribution"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    return build(copy_sources(ROOT, folder / "sources"), folder / "dist", EPOCH)


@pytest.fixture(scope="module")
def contents(built: Built) -> set[str]:
    """Return the paths in the wheel."""
    with zipfile.ZipFile(built.wheel) as archive:
        return set(archive.namelist())


def files(folder: Path, pattern: str) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob(pattern) if path.is_file()}


def test_every_module_and_data_file_is_in_the_wheel(contents: set[str]) -> None:
    for package in PACKAGES:
        source = {f"{package}/{path}" for path in files(ROOT / package, "*") if "__pycache__" not in path}
        assert f"{package}/py.typed" in source
        assert source - contents == set()


def test_the_presets_are_in_the_wheel(contents: set[str]) -> None:
    assert {f"simulation/presets/{path}" for path in files(CONFIGS, "*.yaml")} <= contents


def test_nothing_else_is_in_the_wheel(contents: set[str]) -> None:
    tops = {path.split("/")[0] for path in contents}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_licence_is_in_the_wheel(contents: set[str]) -> None:
    assert f"dprec-{__version__}.dist-info/licenses/LICENSE" in contents


def test_the_sdist_is_what_git_knows(built: Built, tmp_path: Path) -> None:
    known = copy_sources(ROOT, tmp_path / "sources")
    assert built.sdist is not None
    with tarfile.open(built.sdist) as archive:
        paths = {name.partition("/")[2] for name in archive.getnames()}
    assert files(known, "*") - paths == set()
    assert paths - files(known, "*") == {"PKG-INFO"}


def test_a_build_elsewhere_by_somebody_else_is_the_same(built: Built, tmp_path: Path) -> None:
    sources = copy_sources(ROOT, tmp_path / "in" / "another" / "folder")
    for path in sources.rglob("*.py"):
        path.chmod(0o600)
        path.touch()
    again = build(sources, tmp_path / "dist", EPOCH)
    assert again.digests == built.digests
    assert (again.name, again.version) == (built.name, built.version)


@pytest.mark.skipif(not (ROOT / "pilot").exists(), reason="the pilot is a distribution of its own")
def test_a_build_of_the_pilot_elsewhere_is_the_same_and_has_its_licence(tmp_path: Path) -> None:
    first, second = (
        build_pilot(copy_sources(ROOT, tmp_path / name), tmp_path / f"dist-{name}", EPOCH)
        for name in ("one", "another")
    )
    assert first.digests == second.digests
    assert (first.name, first.paths) == ("dprec-pilot", [first.wheel])
    with zipfile.ZipFile(first.wheel) as archive:
        licences = [path for path in archive.namelist() if ".dist-info/licenses/" in path]
        assert [archive.read(path) for path in licences] == [(ROOT / "LICENSE").read_bytes()]
