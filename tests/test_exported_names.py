"""The public surface: what each package exports, held beside this file so that nothing changes unnoticed.

`python tests/test_exported_names.py > tests/exported_names.txt` writes the list anew.
"""

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

PACKAGES = ("clients", "dprec", "simulation", "strategies")
PINNED = Path(__file__).with_name("exported_names.txt")


def surfaces() -> list[ModuleType]:
    """Return the four packages, and every package below them that says what it exports."""
    top = [importlib.import_module(name) for name in PACKAGES]
    below = [
        importlib.import_module(found.name)
        for package in top
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if found.ispkg
    ]
    return [*top, *(package for package in below if hasattr(package, "__all__"))]


def exported_names() -> list[str]:
    """Return every exported name with the package that exports it."""
    return sorted(f"{package.__name__}.{name}" for package in surfaces() for name in package.__all__)


@pytest.mark.parametrize("package", surfaces(), ids=lambda package: package.__name__)
def test_what_is_exported_exists_and_is_named_once(package: ModuleType) -> None:
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert len(package.__all__) == len(set(package.__all__))


def test_the_exported_names_are_the_pinned_ones() -> None:
    assert exported_names() == PINNED.read_text(encoding="utf-8").split()


if __name__ == "__main__":
    print(*exported_names(), sep="\n")
