"""The comparisons that are kept with the project, by the names of their data, for `dprec advise --data`."""

from __future__ import annotations

from pathlib import Path

from dprec.errors import InputError
from simulation.configuration.strict_yaml import shipped_folder
from simulation.storage.directories import TABLE


def kept_comparisons() -> dict[str, Path]:
    """Return the folder of each."""
    folder = shipped_folder("answers", "docs/results/answers")
    return {path.parent.name: path.parent for path in sorted(folder.glob(f"*/{TABLE}"))}


def given_or_kept(directory: Path | None, data: str | None) -> Path:
    """Return the folder of a comparison: the one that is given, or that which is kept on some data.

    Raises
    ------
    InputError
        When both are given or neither, or nothing is kept on these data.
    """
    if directory is not None and data is None:
        return directory
    folders = kept_comparisons()
    names = ", ".join(folders) or "none"
    if data is None or directory is not None:
        found = "neither" if data is None else f"{directory} beside --data {data}"
        accepted = f"the directory of a comparison, or --data with one of: {names}"
        raise InputError("DIR or --data", found, accepted)
    if data not in folders:
        raise InputError("--data", repr(data), names)
    return folders[data]
