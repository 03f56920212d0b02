"""The app of `deployment/`, as dprec brings it along: written out for `flwr run` and for Flower's Hub."""

import os
import shutil
import tempfile
from pathlib import Path

from dprec.errors import InputError
from simulation.storage.files import unusable

_PACKAGE = Path(__file__).parent
_FILES = ("pyproject.toml", "README.md", "LICENSE", "dprec_pilot/*.py")


def app_folder() -> Path:
    """Return the folder of the app: inside an installed package, or beside the packages of a checkout."""
    shipped = _PACKAGE / "app"
    return shipped if shipped.is_dir() else _PACKAGE.parents[1] / "deployment"


def write_app(folder: Path) -> None:
    """Write the app to a new folder, as a whole; raises InputError when that exists or cannot be written."""
    if os.path.lexists(folder):
        raise InputError(str(folder), "it exists", "a new directory")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as building:
            whole = Path(building) / "app"
            (whole / "dprec_pilot").mkdir(parents=True)
            for path in (path for name in _FILES for path in app_folder().glob(name)):
                shutil.copyfile(path, whole / path.relative_to(app_folder()))
            os.rename(whole, folder)
    except OSError as error:
        raise unusable(folder, error) from None
