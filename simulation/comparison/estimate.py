"""What a comparison will take, said before its first run.

Every kind of cell has a typical time, measured on the first fold of MovieLens 100K, and time grows with the
reports. Where that makes a long comparison, each costly protocol is run once on a few of the users, and the
time of its cells is corrected by what this took on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from dprec.errors import InputError, RunError
from dprec.ratings import Ratings
from simulation.analysis.vocabulary import plural
from simulation.comparison.schedule import typical_seconds
from simulation.comparison.templates import Cell
from simulation.execution import run_prepared

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
