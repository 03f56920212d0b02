"""Claims a directory before anything runs, so that no other result is ever overwritten."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.catalogue import Catalogue
from dprec.errors import InputError
from dprec.ratings import Ratings
from simulation.configuration.strict_yaml import flatten, parse_yaml, read_yaml
from simulation.storage.files import unusable, write_atomically

_COSMETIC = re.compile(
    r"(cells\..+-seed\d+\.)?(simulation\.(?!(?:faults|seed)\b)|dataset\.scale_given\b)"
    r"|(title|published|noise_samples)\b"
)
"""Keys that change no figure: how a run is simulated, except for faults and seed, and what a page says."""


def claim_directory(
    folder: Path,
    name: str,
    text: str,
    *,
    resume: bool,
    held: str,
    others: Sequence[str],
    final: str | None = None,
) -> None:
    """Create a directory and write a configuration to it, or take over a directory that has one.

    Parameters
    ----------
    name, text : str
        File name and contents of the configuration.
    resume : bool
        Whether a directory with the same configuration may be taken over.
    held : str
        What a directory with such a configuration holds, for errors.
    others : sequence of str
        Files that no interrupted run leaves in a directory without such a configuration.
    final : str, optional
        File whose presence means that everything is finished; the configuration is then left as it is.

    Raises
    ------
    InputError
        When the directory cannot be written to, or holds something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        finished = final is not None and (folder / final).exists()
        if finished and not resume:
            raise InputError(str(folder), "it holds a finished run", "a new directory")
        if (folder / name).exists():
            if not resume:
                raise InputError(str(folder), f"it holds {held}", "a new directory, or --resume")
            check_same_config(folder / name, text)
        elif present := [other for other in others if (folder / other).exists()]:
            raise InputError(str(folder), f"it holds {present[0]} of something else", "a new directory")
        if not finished:
            write_atomically(folder / name, text)
    except OSError as error:
        raise unusable(folder, error) from None


def check_unused(folder: Path) -> None:
    """Refuse a directory that holds anything, for what is written at once and cannot be resumed.

    Raises
    ------
    InputError
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(str(folder), "something else", "a new or empty directory")


def check_same_config(path: Path, text: str) -> None:
    """Refuse to continue what another configuration began.

    Raises
    ------
    InputError
        Naming the first key that differs.
    """
    before, now = flatten(read_yaml(path)), flatten(parse_yaml(text, "configuration"))
    for key in {**now, **before}:
        if before.get(key) != now.get(key) and matters(key):
            difference = f"{before.get(key)!r} there and {now.get(key)!r} now"
            raise InputError(
                f"{path}: {key}", difference, "the configuration it began with, or a new directory"
            )


def matters(key: str) -> bool:
    """Return whether any figure depends on a key."""
    return _COSMETIC.match(key) is None


def fingerprint(*parts: Ratings | Catalogue | None) -> str:
    """Return a digest that identifies ratings and data about items, whatever file they come from.

    What is None does not count.
    """
    digest = hashlib.sha256()
    for part in parts:
        for column in () if part is None else _columns(part):
            digest.update(str((column.dtype, column.shape)).encode())
            digest.update(column.tobytes())
    return digest.hexdigest()[:16]


def _columns(part: Ratings | Catalogue) -> tuple[NDArray[Any], ...]:
    """Return all that a part holds."""
    if isinstance(part, Catalogue):
        names = np.array(part.number_names, dtype=np.str_), np.array(part.category_names, dtype=np.str_)
        return part.numbers, part.categories, *names
    exact = part.scale.values if part.exact is None else part.exact
    return part.user_ids, part.item_ids, part.indptr, part.items, part.levels, exact
