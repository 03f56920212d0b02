"""The wheel: the packages, their data files and the presets, and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.paths import CONFIGS, ROOT

PACKAGES = ("clients", "dprec", "simulation", "strategies")


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the paths in a wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in (*PACKAGES, "configs", "deployment", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", "dist", "."]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    if built.returncode:
        pytest.skip(f"no wheel can be built here: {built.stderr.strip().splitlines()[-1:]}")
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
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


def test_the_app_that_flower_is_sent_is_in_the_wheel(contents: set[str]) -> None:
    app = {"pyproject.toml", "README.md", "LICENSE"} | {
        f"dprec_pilot/{path.name}" for path in (ROOT / "deployment" / "dprec_pilot").glob("*.py")
    }
    found = {path for path in contents if path.startswith("simulation/deployment/app/")}
    assert found == {f"simulation/deployment/app/{path}" for path in app}


def test_nothing_else_is_in_the_wheel(contents: set[str]) -> None:
    tops = {path.split("/")[0] for path in contents}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
