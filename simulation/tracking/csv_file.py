"""Tracking in a file: one line per figure, readable while the run goes on."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from simulation.storage.atomic import unusable
from simulation.tracking.base import Scalar

TRACKED = "tracked.csv"


class CsvTracker:
    """Appends lines ``round,figure,value`` to tracked.csv in the run directory; the run's own have no round.

    A run that is resumed goes on at the end of the file. Settings are not repeated: config.yaml has them.

    Parameters
    ----------
    name : str
        Of the run.
    directory : Path

    Raises
    ------
    InputError
        When the directory cannot be written to.
    """

    def __init__(self, name: str, directory: Path) -> None:
        path = directory / TRACKED
        try:
            directory.mkdir(parents=True, exist_ok=True)
            new = not path.exists()
            self._file = path.open("a", newline="", encoding="utf-8")
        except OSError as error:
            raise unusable(path, error) from None
        self._writer = csv.writer(self._file, lineterminator="\n")
        if new:
            self._writer.writerow(["round", "figure", "value"])

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
