"""The comparisons that are kept with the project, by the names of their data, for `dprec advise --data`."""

from __future__ import annotations

from pathlib import Path

from dprec.errors import InputError
from simulation.storage.directories import TABLE

_PACKAGE = Path(__file__).resolve().parents[1]


def kept_comparisons() -> dict[str, Path]:
    """Return the folder of each, inside an installed package or beside the packages of a checkout."""
    shipped = _PACKAGE / "answers"
    folder = shipped if shipped.is_dir() else _PACKAGE.parent / "docs" / "results" / "answers"
    return {path.parent.name: path.parent for path in sorted(folder.glob(f"*/{TABLE}"))}


def given_or_kept(directory: Path | None, data: str | None) -> Path:
    """Return the folder of a comparison: the one that is given, or that which is kept on some data.

    Raises
    ------
    InputError
        When both are given or neither, or nothing is kept on these data.
    """
    known = kept_comparisons()
    if directory is not None and data is None:
        return directory
    if data in known and directory is None:
        return known[data]
    names = ", ".join(known) or "none"
    if data is not None and directory is None:
        raise InputError("--data", repr(data), names)
    found = "neither" if directory is None else f"{directory} beside --data {data}"
    raise InputError("DIR or --data", found, f"the directory of a comparison, or --data with one of: {names}")
