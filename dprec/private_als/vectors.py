"""Contributions as vectors of whole steps: sketched, turned, rounded, and back from their total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import rows_of
from dprec.private_als.statistics import UNIT, Contributions, StatisticsLayout
from dprec.secure_aggregation import (
    CountSketch,
    Rotation,
    largest_number,
    padded_size,
    rounded_rows,
    steps_of_unit,
)

_PUBLIC_SEED = 0
"""Seed of places and signs, which are the same in all runs."""

_BEYOND = 2.0**-72
"""Probability that a number of a turned total is larger than assumed: 2**-40 over 2**32 numbers of a run."""


@dataclass(frozen=True)
class VectorPlan:
    """What becomes of the numbers of a layout before they are added up."""

    items: int
    width: int
    """Items, and numbers of each."""
    limit: int | None
    """Most items of a user; see `StatisticsLayout.limit`."""
    norm: int
    """Longest rounded vector, in steps."""
    sketch: float | None
    """Places of a count sketch as a share of the items; none for no sketch."""
    rotation: bool
    """Whether vectors are turned."""

    @classmethod
    def of(cls, layout: StatisticsLayout, norm: int, sketch: float | None, rotation: bool) -> VectorPlan:
        """Return the plan for a layout."""
        return cls(layout.n_items, layout.width, layout.limit, norm, sketch, rotation)

    @property
    def places(self) -> int:
        """Places that hold the numbers of an item, or of several."""
        return self.items if self.sketch is None else math.ceil(self.sketch * self.items)

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        numbers = self.places * self.width
        return padded_size(numbers) if self.rotation else numbers

    @property
    def most_numbers(self) -> int:
        """Most numbers of a vector that are not 0, and so are rounded."""
        return self.size if self.rotation else self.width * min(self.limit or self.places, self.places)

    @property
    def steps(self) -> float:
        """Steps of a unit, the largest norm of a contribution; see `steps_of_unit`."""
        return steps_of_unit(self.norm, self.most_numbers)

    def largest_sum(self, users: int) -> int:
        """Return what no number of a total of so many users exceeds, whatever they have rated."""
        if self.rotation:
            turned = largest_number(users * self.norm, self.size, _BEYOND)
            return math.ceil(turned) + users
        sharing = 1 if self.sketch is None else min(_sketch(self).most_items, self.limit or self.items)
        of_item = 1.0 if self.limit is None else min(1.0, sharing / math.sqrt(self.limit))
        return users * math.ceil(self.norm * of_item)

    def vectors(
        self, contributions: Contributions, layout: StatisticsLayout, keys: Sequence[bytes]
    ) -> NDArray[np.int32]:
        """Return each device's contribution in whole steps, shape (users, size).

        Parameters
        ----------
        keys : sequence of bytes
            The devices' keys, by which they round.
        """
        cells, values = self._numbers(contributions, layout)
        rows = np.zeros((contributions.n_users, self.size), dtype=np.int32)
        if self.rotation:
            dense = np.zeros((contributions.n_users, self.places * self.width))
            dense.ravel()[cells] = values
            turned = _rotation(self).turned(dense) * self.steps
            counts = np.full(len(rows), self.size)
            rows[:] = rounded_rows(turned.ravel(), counts, self.norm, keys).reshape(rows.shape)
            return rows
        counts = np.bincount(cells // self.size, minlength=len(rows))
        rows.ravel()[cells] = rounded_rows(values * self.steps, counts, self.norm, keys)
        return rows

    def statistics(self, total: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the numbers of every item, in units, from a total in steps; shape (items, width)."""
        values = total / self.steps
        if self.rotation:
            values = _rotation(self).turned_back(values[None])[0]
        of_places = values.reshape(self.places, self.width)
        return of_places if self.sketch is None else _sketch(self).estimates(of_places)

    def _numbers(
        self, contributions: Contributions, layout: StatisticsLayout
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return where numbers of all users lie in rows of places, ascending, and the numbers in units."""
        values = contributions.numbers(layout).astype(np.float64) * UNIT
        places, users = contributions.items.astype(np.int64), rows_of(np.diff(contributions.indptr))
        if self.sketch is not None:
            values *= _sketch(self).signs[places][:, None]
            of_user = users * self.places + _sketch(self).places[places]
            shared, place_of = np.unique(of_user, return_inverse=True)
            sums = np.zeros((shared.size, self.width))
            np.add.at(sums, place_of, values)
            users, places = np.divmod(shared, self.places)
            # Items that share a place may make a contribution longer than a unit.
            norms = np.sqrt(np.bincount(users, (sums**2).sum(axis=1), minlength=contributions.n_users))
            values = sums / np.maximum(norms, 1.0)[users][:, None]
        cells = ((users * self.places + places) * self.width)[:, None] + np.arange(self.width)
        return cells.ravel(), values.ravel()


@lru_cache(maxsize=4)
def _sketch(plan: VectorPlan) -> CountSketch:
    return CountSketch.of(plan.items, plan.places, _PUBLIC_SEED, "count sketch of items")


@lru_cache(maxsize=4)
def _rotation(plan: VectorPlan) -> Rotation:
    return Rotation.of(plan.places * plan.width, _PUBLIC_SEED, "rotation of contributions")
