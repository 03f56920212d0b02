"""Folders that every node sees, a local path or a URL that fsspec opens alike; names that a crash keeps."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from dprec.errors import InputError

READABLE_BY_ALL = "a folder that every node sees; --devices-dir sets it"
"""What is accepted where a node does not see a folder."""

_ACCEPTED = "a local path, or a URL that fsspec can open"


def place_of(location: str | Path) -> Path:
    """Return the folder at a path or URL; what stands for a URL has the methods of a `Path` that are used.

    A local path comes out absolute, since nodes run in other folders.
    """
    if not is_url(location):
        try:
            return Path(location).expanduser().absolute()
        except RuntimeError:  # of expanduser
            raise InputError(str(location), "a home directory of nobody", _ACCEPTED) from None
    try:
        from upath import UPath

        place = UPath(str(location))
        place.exists()
    except Exception as error:  # what opens a kind of URL has errors of its own
        raise InputError(str(location), str(error) or type(error).__name__, _ACCEPTED) from None
    return cast(Path, place)


def is_url(location: str | Path) -> bool:
    """Return whether a location is a URL, which means the same on every machine."""
    return "://" in str(location)


@contextmanager
def folder_inside(place: Path) -> Iterator[Path]:
    """Make a new folder inside a place, deleted at the end of an orderly process, or raise InputError."""
    folder = place / f"session-{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True)
        # Object stores have no empty folders.
        (folder / ".session").write_bytes(b"dprec")
    except Exception as error:  # as above
        reason = getattr(error, "strerror", None) or error
        raise InputError(str(place), f"cannot be written ({reason})", _ACCEPTED) from None
    try:
        yield folder
    finally:
        if is_url(folder):
            folder.rmdir(recursive=True)  # type: ignore[call-arg]
        else:
            shutil.rmtree(folder)


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file that others see complete or not at all, as object stores do by themselves."""
    if is_url(path):
        path.write_bytes(contents)
        return
    part = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    try:
        part.write_bytes(contents)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to disk: without it, a new file may have no name after a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
