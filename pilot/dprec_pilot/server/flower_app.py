"""The app that Flower runs: `dprec_pilot/app/`, written out for `flwr run` and for Flower's Hub."""

import os
import shutil
import tempfile
from pathlib import Path

from dprec.errors import InputError
from dprec_pilot.files import unusable

APP = Path(__file__).parents[1] / "app"
"""The folder of the app."""


def write_app(folder: Path) -> None:
    """Write the app to a new folder, as a whole; raises InputError when that exists or cannot be written."""
    if os.path.lexists(folder):
        raise InputError(str(folder), "it exists", "a new directory")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as building:
            whole = Path(building) / "app"
            shutil.copytree(APP, whole, ignore=shutil.ignore_patterns("__pycache__"))
            os.rename(whole, folder)
    except OSError as error:
        raise unusable(folder, error) from None
