"""Tracking in a file: one line per figure, readable while the run goes on."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from dprec.errors import InputError
from simulation.storage.files import unusable
from simulation.tracking.trackers import Scalar

TRACKED = "tracked.csv"

_HEADER = ["round", "figure", "value"]


class CsvTracker:
    """Appends lines ``round,figure,value`` to tracked.csv in the run directory; the run's own have no round.

    A run that is resumed goes on at the end of the file. Settings are not repeated: config.yaml has them.

    Parameters
    ----------
    name : str
        Of the run.

    Raises
    ------
    InputError
        When the directory cannot be written to, or its tracked.csv is something else.
    """

    def __init__(self, name: str, directory: Path) -> None:
        path = directory / TRACKED
        try:
            directory.mkdir(parents=True, exist_ok=True)
            new = not path.exists() or not path.stat().st_size
            if not new:
                _check_header(path)
            self._file = path.open("a", newline="", encoding="utf-8")
        except OSError as error:
            raise unusable(path, error) from None
        self._writer = csv.writer(self._file, lineterminator="\n")
        if new:
            self._writer.writerow(_HEADER)

    def settings(self, values: Mapping[str, Scalar]) -> None:
        """Keep nothing: config.yaml is in the same directory."""

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        """Append a line per figure."""
        place = "" if round_index is None else round_index
        self._writer.writerows([place, figure, value] for figure, value in values.items())
        self._file.flush()

    def close(self, failure: str | None) -> None:
        """Close the file."""
        self._file.close()


def _check_header(path: Path) -> None:
    """Refuse a file that does not begin as this one does."""
    with path.open(encoding="utf-8", errors="replace") as file:
        if file.readline(100).strip() != ",".join(_HEADER):
            raise InputError(str(path), "a file of something else", "a new directory")
