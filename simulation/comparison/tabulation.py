"""The table of a comparison, from what is finished of it: at the end, and while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from simulation.comparison.tabulation import table_rows, user_errors, with_user_intervals
from simulation.storage.directories import ComparisonDirectory
from simulation.storage.tables import Row

if TYPE_CHECKING:
    from simulation.comparison.templates import Cell

_FIRST_SECONDS = 10.0
_SHARE = 0.02


class Tabulation:
    """Writes comparison.csv and timing.csv; what was read of a cell is kept for the next time.

    Parameters
    ----------
    cells : collection of Cell
        All of the comparison, in the order of its table.
    """

    def __init__(self, cells: Collection[Cell], directory: ComparisonDirectory) -> None:
        self._cells, self._directory = cells, directory
        self._errors = cache(lambda key: user_errors(directory.cells / key))
        self._rows = cache(lambda cell: table_rows(cell, directory.cells))

    def write(self, finished: Collection[str]) -> tuple[list[Row], list[Row]]:
        """Write the tables of the finished cells, which are given by their keys, and return their lines.

        Raises
        ------
        InputError
            When what a cell has stored is damaged.
        """
        pairs = [self._rows(cell) for cell in self._cells if cell.key in finished]
        rows = with_user_intervals([row for row, _ in pairs], self._errors)
        timings = [timing for _, timing in pairs]
        if rows:
            self._directory.write_tables(rows, timings)
        return rows, timings


class Pauses:
    """When something is done beside a computation, so that it takes a small share of the time.

    Parameters
    ----------
    clock : callable, optional
        Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._spent = 0.0

    @property
    def due(self) -> bool:
        """Whether it may be done again: not at the very beginning, and at most 2 % of the time."""
        passed = self._clock() - self._began
        return passed >= _FIRST_SECONDS and self._spent <= _SHARE * passed

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the time that it takes."""
        began = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - began
