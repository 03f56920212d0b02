"""Objects of somebody's own classes as bytes, for the processes that work for this one.

A class of a module travels by its name, together with the folders that this process imports from; a class
of a notebook or script, which no other process can import, travels as its code.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
from collections.abc import Iterable
from typing import Any

from dprec.errors import InputError, one_line


def import_folders() -> tuple[str, ...]:
    """Return the folders that this process imports from."""
    return tuple(os.path.abspath(folder) for folder in sys.path)


def import_from(folders: Iterable[str]) -> None:
    """Import from more folders, after those that this process imports from already."""
    known = set(import_folders())
    sys.path.extend(folder for folder in folders if folder not in known)


def packed(value: object, what: str) -> bytes:
    """Return an object as bytes.

    Parameters
    ----------
    what : str
        What it is, for errors.

    Raises
    ------
    InputError
        When it holds something that cannot travel, such as an open file.
    """
    import cloudpickle

    try:
        code = cloudpickle.dumps(value)
    except Exception as error:  # what a class refuses with is its own choice
        found = f"cannot be sent to workers ({one_line(error)})"
        raise InputError(what, found, "values that can be pickled") from None
    return pickle.dumps((import_folders(), code))


def unpacked(data: bytes, what: str) -> Any:
    """Return the object that `packed` was given; whoever calls trusts where the bytes come from.

    Raises
    ------
    InputError
        When a class cannot be imported here.
    """
    folders, code = pickle.loads(data)
    import_from(folders)
    try:
        return pickle.loads(code)
    except (ImportError, AttributeError) as error:
        accepted = "a module that every node can import, or a class of the notebook itself"
        raise InputError(what, f"cannot be imported on {platform.node()}: {error}", accepted) from None
