"""Archives of NumPy arrays, written atomically and read with errors that name the file."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError
from simulation.storage.files import write_recorded
from simulation.storage.summary import FileSummary


def write_archive(path: Path, arrays: Mapping[str, NDArray[Any]]) -> FileSummary:
    """Write named arrays to one compressed file, and return its entry for the summary."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return write_recorded(path, [buffer.getvalue()], None)


def read_archive(path: Path, accepted: str) -> dict[str, NDArray[Any]]:
    """Read what `write_archive` wrote.

    Parameters
    ----------
    accepted : str
        What the file should hold, for errors.

    Raises
    ------
    InputError
        When the file is missing, cannot be read or is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})", accepted) from None
    except (ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error):
        raise InputError(str(path), "truncated or damaged", accepted) from None
