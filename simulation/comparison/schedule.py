"""Which cell runs next: one of every protocol, then the costliest first.

The first ones run from the cheapest on, so that there is soon a table to read. Of the others the costliest
come first, so that at the end no core waits for a long one.

How long a cell takes is known from the same protocol at another seed or fold, or from what its kind took on
MovieLens 100K. Cells that have one fit in common run one after the other in the same worker, which keeps it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import median

from dprec.completion.one_bit import OneBit
from simulation.comparison.cell_work import ratings_key
from simulation.comparison.templates import Cell, middle

_SECONDS = {"nuclear-norm": 15.0, "mf": 1.0, "sgd-mf": 4.0, "mog-mf": 2.0, "calibrated": 2.5, "one-bit": 2.5}
"""Seconds of a cell on the first fold of MovieLens 100K, by its completion."""

_BOUNDED, _ROUNDS, _OTHER = 45.0, 6.0, 0.5
"""The same with bounded entries, of a protocol with many rounds, and of any other."""


def typical_seconds(cell: Cell) -> float:
    """Return what a cell of this kind took on MovieLens 100K."""
    protocol = cell.config.protocol
    completion = getattr(protocol, "completion", None)
    if isinstance(completion, OneBit) and completion.bounded:
        return _BOUNDED
    if getattr(protocol, "rounds", 1) > 1:
        return _ROUNDS
    return _SECONDS.get(protocol.completion_name, _OTHER)


class Schedule:
    """The cells that wait, and what is known of their costs.

    Parameters
    ----------
    cells : sequence of Cell
        Of equal cost, the earlier one runs first.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._waiting = list(cells)
        self._seconds: dict[tuple[str, float | None, str | None], float] = {}
        self._ratios: list[float] = []
        self._last_fit: dict[Hashable, Hashable] = {}
        self._first = _middle_cells(cells)
        self._ended: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def next_for(self, worker: Hashable) -> Cell:
        """Return the cell that a worker should run, which no longer waits.

        Raises
        ------
        ValueError
            When no cell waits.
        """
        held = self._last_fit.get(worker)
        others = {fit for owner, fit in self._last_fit.items() if owner != worker}
        usual = median(self._ratios) if self._ratios else 1.0

        def preference(cell: Cell) -> tuple[bool, bool, bool, float]:
            fit = _fit_key(cell)
            continues, elsewhere = fit is not None and fit == held, fit is not None and fit in others
            first = cell.key in self._first and cell.protocol not in self._ended
            seconds = self._expected(cell, usual)
            return continues, not elsewhere, first, -seconds if first else seconds

        chosen = max(self._waiting, key=preference)
        self._waiting.remove(chosen)
        if (fit := _fit_key(chosen)) is not None:
            self._last_fit[worker] = fit
        return chosen

    def ended(self, cell: Cell, seconds: float) -> None:
        """Note how long a cell took."""
        # The first of those that share a fit takes longest, and it is the first of which costs are known.
        self._seconds.setdefault((cell.protocol, cell.epsilon, cell.population), seconds)
        self._ended.add(cell.protocol)
        self._ratios.append(seconds / typical_seconds(cell))

    def again(self, cell: Cell, worker: Hashable) -> None:
        """Let a cell wait again after the worker that ran it was lost."""
        self._last_fit.pop(worker, None)
        self._waiting.append(cell)

    def _expected(self, cell: Cell, usual: float) -> float:
        known = self._seconds.get((cell.protocol, cell.epsilon, cell.population))
        return typical_seconds(cell) * usual if known is None else known


def _middle_cells(cells: Sequence[Cell]) -> set[str]:
    """Return the keys of one cell per protocol and population: the first at the middle one of its budgets."""
    own: dict[tuple[str, str | None], list[Cell]] = {}
    for cell in cells:
        own.setdefault((cell.protocol, cell.population), []).append(cell)
    keys = set()
    for group in own.values():
        budget = middle([*{cell.epsilon for cell in group}])
        keys.add(next(cell.key for cell in group if cell.epsilon == budget))
    return keys


def _fit_key(cell: Cell) -> Hashable:
    """Return what identifies a fit that does not depend on the cell's seed; None without one."""
    fit = cell.config.protocol.shared_fit
    return None if fit is None else (ratings_key(cell.config), fit)
