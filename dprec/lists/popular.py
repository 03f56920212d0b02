"""Which items are popular, found in fewer numbers than there are items.

Items share numbers at first, a bucket of them each, in a random order that everybody knows. The items of the
buckets that stand out are in the next stage, in smaller buckets, and by themselves in the last. In every
stage a profile is spread over what it has of the items that are left, so that noise is the smaller beside it:
at equal noise of a sum, that finds more of what is popular than a number for each item
(`benchmarks/choosing/popularity_search.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints
from dprec.lists.gram import popular_items, popularity_estimate
from dprec.randomness import generator

MOST_STAGES = 3

_NUMBERS = {2: (0.5, 0.5), 3: (0.5, 0.3, 0.2)}
"""Parts of all numbers that the stages have."""

_SHARES = {1: (1.0,), 2: (0.5, 0.5), 3: (0.35, 0.3, 0.35)}
"""What the stages spend of what all of them may, of the squared distance of means."""

_MIDDLE = 8
"""Items of a bucket in the second of three stages."""

_WIDEST = 16
"""With larger buckets at first, three stages find more than two."""

_NOISY = 32.0
"""Noise of a number and of a user, times the items, above which fewer numbers find more."""

_FEWER = 6
"""Items for each of these numbers."""

_PUBLIC_SEED = 0
"""Seed of the order of the items, which is the same in all runs."""


@dataclass(frozen=True)
class Stage:
    """One sum of a search."""

    places: int
    """Items that can be in it."""
    bucket: int
    """Items that share a number."""
    share: float
    """What it spends of what the search may, of the squared distance of means."""

    @property
    def rows(self) -> int:
        """Numbers of the sum."""
        return -(-self.places // self.bucket)


@dataclass(frozen=True)
class PopularityPlan:
    """How popular items are searched for: public numbers that follow from two others."""

    n_items: int
    stages: tuple[Stage, ...]

    @classmethod
    def of(cls, n_items: int, numbers: int, stages: int | None = None) -> Self:
        """Return the plan of a search in so many numbers, of all stages together, at most.

        One stage has a number for each item, whatever ``numbers`` says; by default there is only that if it
        has room, and else as many stages as a rule says. Raises ValueError for too few numbers.
        """
        stages = stages_of(n_items, numbers) if stages is None else stages
        if stages == 1:
            return cls(n_items, (Stage(n_items, 1, 1.0),))
        least = least_numbers(n_items, stages)
        if numbers < least:
            raise ValueError(f"{numbers} numbers, for {n_items} items in {stages} stages at least {least}")
        parts = _NUMBERS[stages]
        buckets = [math.ceil(n_items / (numbers * parts[0])), *[_MIDDLE] * (stages - 2), 1]
        planned = [Stage(n_items, buckets[0], _SHARES[stages][0])]
        for index in range(1, stages):
            before, remaining = planned[-1], numbers - cls(n_items, tuple(planned)).rows
            room = remaining if index + 1 == stages else int(numbers * parts[index])
            n_buckets = min(room * buckets[index] // before.bucket, before.rows)
            planned.append(Stage(n_buckets * before.bucket, buckets[index], _SHARES[stages][index]))
        return cls(n_items, tuple(planned))

    def stage_of(self, round_index: int) -> int:
        """Return the stage, from 0, of a round, from 1: the last one also of those after it."""
        return min(round_index, len(self.stages)) - 1

    @property
    def rows(self) -> int:
        """Numbers of all stages."""
        return sum(stage.rows for stage in self.stages)

    @property
    def kept(self) -> tuple[int, ...]:
        """How many buckets of each stage but the last are looked into."""
        return tuple(after.places // stage.bucket for stage, after in pairwise(self.stages))


def stages_of(n_items: int, numbers: int) -> int:
    """Return how many stages a search has by a rule."""
    if numbers >= n_items:
        return 1
    return 2 if 2 * n_items <= _WIDEST * numbers else 3


def numbers_at(tau: float, n_items: int) -> int:
    """Return in how many numbers a rule searches at most, given the noise; for ``tau`` see `GramSettings.of`.

    Where noise hides most items, few numbers find more: fewer of them stand out by chance, and who has few of
    the items that are left adds more to each.
    """
    if tau * n_items <= _NOISY:
        return n_items
    return max(n_items // _FEWER, least_numbers(n_items, MOST_STAGES))


def shares_of(stages: int) -> tuple[float, ...]:
    """Return what each of so many stages spends of what all of them may."""
    return _SHARES[stages]


def least_numbers(n_items: int, stages: int) -> int:
    """Return the fewest numbers that so many stages take: some buckets of each are kept then."""
    few = 4 * math.ceil(math.sqrt(n_items))
    return {1: n_items, 2: few, 3: max(few, 8 * _MIDDLE)}[stages]


@lru_cache(maxsize=2)
def _order(n_items: int) -> Int32s:
    """Return the place of each item among all, in a public order; shape (items,)."""
    return generator(_PUBLIC_SEED, "buckets of items").permutation(n_items).astype(np.int32)


@dataclass(frozen=True, eq=False)
class PopularitySearch:
    """How far a search has come, which everybody may know: it follows from sums with noise."""

    plan: PopularityPlan
    chosen: tuple[Int32s, ...]
    """The buckets of each stage but the last that the next one looks into, ascending."""

    @classmethod
    def begun(cls, plan: PopularityPlan) -> Self:
        """Return a search that would look into the first buckets, as nothing is known."""
        return cls(plan, tuple(np.arange(n_buckets, dtype=np.int32) for n_buckets in plan.kept))

    @classmethod
    def of_all(cls, n_items: int) -> Self:
        """Return a search that has a number for each item."""
        return cls.begun(PopularityPlan.of(n_items, n_items))

    def rows(self, items: AnyInts, stage: int) -> tuple[Ints, Bools]:
        """Return the number of a stage, from 0, that items share in, and which are in any; shape (items,)."""
        places = items.astype(np.int64)
        if len(self.plan.stages) > 1:
            places = _order(self.plan.n_items)[items].astype(np.int64)
        present = np.ones(items.size, dtype=np.bool_)
        for before, chosen in zip(self.plan.stages, self.chosen[:stage], strict=False):
            ranks = np.full(before.rows, -1)
            ranks[chosen] = np.arange(chosen.size)
            buckets, within = np.divmod(places, before.bucket)
            present &= ranks[buckets] >= 0
            # Neighbours were in different buckets, so that those who shared one do not share the next.
            places = ranks[buckets] + chosen.size * within
        return places // self.plan.stages[stage].bucket, present

    def leaves(self) -> Ints:
        """Return the smallest bucket that each item was in, of those of all stages; shape (items,)."""
        items = np.arange(self.plan.n_items)
        leaves, first = self.rows(items, 0)[0], 0
        for stage in range(1, len(self.plan.stages)):
            first += self.plan.stages[stage - 1].rows
            rows, present = self.rows(items, stage)
            leaves[present] = first + rows[present]
        return leaves

    def narrowed(self, stage: int, sums: Floats) -> PopularitySearch:
        """Return the search after a stage, given its numbers; the same after the last one."""
        if stage == len(self.chosen):
            return self
        chosen = popular_items(sums, self.plan.kept[stage]).astype(np.int32)
        return replace(self, chosen=(*self.chosen[:stage], chosen, *self.chosen[stage + 1 :]))

    def popularity(self, sums: Mapping[int, tuple[Floats, float]]) -> Floats:
        """Return the popularity of all items, above 0, in the unit of the last stage; shape (items,).

        Items that were never alone have equal parts of their smallest bucket.

        Parameters
        ----------
        sums : mapping
            From stages, ascending, to their numbers and the deviation of the noise, which is above 0; of
            those that have succeeded so far.
        """
        items = np.arange(self.plan.n_items)
        popularity = np.ones(items.size)
        for stage, (noisy, deviation) in sums.items():
            rows, present = self.rows(items, stage)
            estimate = popularity_estimate(noisy, deviation)[rows[present]] / self.plan.stages[stage].bucket
            # Profiles have fewer items in each stage, which count for more.
            popularity *= estimate.sum() / popularity[present].sum()
            popularity[present] = estimate
        return popularity
