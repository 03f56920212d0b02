"""The comparison directory: its configuration, its tables, and one run directory per cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simulation.storage.directories import (
    AUDIT,
    CELLS,
    COMPARISON,
    CONFIG,
    FIGURES,
    NOISE,
    REPORT,
    SUMMARY,
    TABLE,
    TABLES,
    TIMINGS,
    claim_directory,
    write_tables,
)
from simulation.storage.files import write_atomically
from simulation.storage.tables import Row, csv_of_rows

_OTHERS = (CONFIG, SUMMARY, TABLE, TIMINGS, TABLES, CELLS, REPORT, FIGURES, AUDIT)
"""Files that no interrupted comparison leaves in a directory without its configuration."""


class ComparisonDirectory:
    """A directory that a comparison writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def claim(cls, path: str | Path, configuration: str, *, resume: bool = False) -> ComparisonDirectory:
        """Create a comparison's directory and write its configuration to it.

        Parameters
        ----------
        configuration : str
            The contents of comparison.yaml.
        resume : bool
            Take over a directory in which the same comparison was interrupted, or finished.

        Raises
        ------
        InputError
            When the directory cannot be written to, or already holds something else.
        """
        folder = Path(path)
        claim_directory(
            folder,
            COMPARISON,
            configuration,
            resume=resume,
            held="a comparison already",
            others=_OTHERS,
        )
        return cls(folder)

    @property
    def cells(self) -> Path:
        """The folder with one run directory per cell."""
        return self.path / CELLS

    def write_noise(self, rows: Sequence[Row]) -> None:
        """Write noise.csv: samples of the mechanisms' noise."""
        write_atomically(self.path / NOISE, csv_of_rows(rows))

    def write_tables(self, rows: Sequence[Row], timings: Sequence[Row]) -> None:
        """Write comparison.csv and timing.csv, one line per finished cell, and the record of them."""
        write_tables(self.path, {TABLE: rows, TIMINGS: timings})
