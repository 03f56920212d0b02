"""What cells cost: which runs next, and what a comparison will take, said before its first run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

import numpy as np

from dprec.completion.one_bit import OneBit
from dprec.errors import InputError, RunError
from dprec.ratings import Ratings
from simulation.analysis.vocabulary import plural
from simulation.comparison.cell_work import ratings_key
from simulation.comparison.templates import Cell, middle
from simulation.execution import run_prepared

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

        def preference(cell: Cell) -> tuple[bool, bool, bool, bool, float]:
            fit = _fit_key(cell)
            continues, elsewhere = fit is not None and fit == held, fit is not None and fit in others
            # One run of each baseline and then of each protocol, the cheapest first, so that an interrupted
            # comparison has an answer; then the costliest, so that the workers end together.
            first = cell.key in self._first and cell.protocol not in self._ended
            seconds = self._expected(cell, usual)
            baseline = first and cell.baseline is not None
            return baseline, first, continues, not elsewhere, -seconds if first else seconds

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


Contender = tuple[str, str | None]
"""A protocol and its population."""

_TYPICAL_SIZE = 943, 1682, 80_000
"""Users, items and train ratings of the first fold of MovieLens 100K."""

_SAID_FROM = 60.0
"""Seconds from which on an estimate is worth a line."""

_SAMPLED_FROM, _SAMPLE_RATINGS = 300.0, 10_000
"""Seconds from which on protocols are tried, and on users with how many ratings together."""

_COSTLY = 0.04
"""Share of the whole time from which on a protocol is tried."""


@dataclass(frozen=True)
class Estimate:
    """What some cells will take."""

    runs: int
    seconds: float
    """On the given number of workers."""
    workers: int
    tried: int
    """Protocols that were timed on a sample; of the others, only what is typical of their kind is known."""

    @property
    def words(self) -> str:
        """The estimate in a sentence, and what it rests on."""
        basis = (
            f"each of {plural(self.tried, 'protocol')} timed on a few users"
            if self.tried
            else "what such runs took on MovieLens 100K"
        )
        return (
            f"{plural(self.runs, 'run')} on {plural(self.workers, 'worker')} may take about "
            f"{self._minutes}: an estimate, from {basis}"
        )

    @property
    def _minutes(self) -> str:
        minutes = max(round(self.seconds / 60), 1)
        return plural(minutes, "minute") if minutes < 120 else f"{minutes / 60:.1f} hours"

    @property
    def is_worth_a_line(self) -> bool:
        """Whether anybody wants to know."""
        return self.seconds >= _SAID_FROM


@dataclass(frozen=True, eq=False)
class Sample:
    """How many ratings there are, and those of a few users."""

    users: int
    items: int
    ratings: int
    """Of the train part."""
    train: Ratings
    test: Ratings
    """Of the few users."""

    @classmethod
    def of(cls, train: Ratings, test: Ratings) -> Sample:
        """Take the first users of some ratings."""
        few = min(int(np.searchsorted(train.indptr, _SAMPLE_RATINGS)), train.n_users)
        return cls(train.n_users, train.n_items, train.count, _first(train, few), _first(test, few))


def _first(ratings: Ratings, users: int) -> Ratings:
    end = int(ratings.indptr[users])
    return replace(
        ratings,
        indptr=ratings.indptr[: users + 1],
        items=ratings.items[:end],
        levels=ratings.levels[:end],
        user_ids=ratings.user_ids[:users],
        exact=None if ratings.exact is None else ratings.exact[:end],
        times=None if ratings.times is None else ratings.times[:end],
    )


def estimate(cells: Sequence[Cell], samples: Mapping[Contender, Sample], workers: int) -> Estimate:
    """Return what cells will take.

    Parameters
    ----------
    cells : sequence of Cell
        Those that are not finished.
    samples : mapping
        Of the ratings of every protocol's first cell, by protocol and population.
    workers : int
        Cells that run at a time.
    """
    expected: dict[Contender, float] = {}
    for cell in cells:
        of_all = samples[_source(cell)]
        seconds = _seconds(cell, of_all.users, of_all.items, of_all.ratings)
        expected[_source(cell)] = expected.get(_source(cell), 0.0) + seconds
    whole = sum(expected.values())
    tried: set[Contender] = set()
    if whole / workers >= _SAMPLED_FROM:
        for source, seconds in expected.items():
            cell = next(cell for cell in cells if _source(cell) == source)
            if seconds >= _COSTLY * whole and (ratio := _tried(cell, samples[source])) is not None:
                expected[source] = seconds * ratio
                tried.add(source)
    return Estimate(len(cells), sum(expected.values()) / workers, workers, len(tried))


def _source(cell: Cell) -> Contender:
    return cell.protocol, cell.population


def _seconds(cell: Cell, users: int, items: int, ratings: int) -> float:
    """Return what a cell of this kind takes on such ratings, if time grows with what is reported."""
    protocol = cell.config.protocol.picked
    return (
        typical_seconds(cell)
        * protocol.seen_cells(users, items, ratings)
        / protocol.seen_cells(*_TYPICAL_SIZE)
    )


def _tried(cell: Cell, sample: Sample) -> float | None:
    """Run a cell on a few users; return how many times as long as expected it took, or None if it failed."""
    train = sample.train
    simulation = replace(cell.config.simulation, backend="local", population_dir=None)
    config = cell.config.model_copy(update={"simulation": simulation})
    began = perf_counter()
    try:
        run_prepared(config, train, sample.test, None)
    except (InputError, RunError):
        return None  # the cell itself says why
    return (perf_counter() - began) / _seconds(cell, train.n_users, train.n_items, train.count)
