"""Whether an item is in a user's profile, to somebody who knows all else: an attack on sums with noise.

The adversary has the sums that a run released, and knows the profiles of all other users, and what else the
user in question rated: nobody can know more, so the noise alone is between it and the item. With c and c'
what the user adds to a sum with the item and without, d = c - c', and r what the sum exceeds that of the
others and c' by, it ranks by the log likelihood ratio of normal noise,

    sum over the sums of (d . r - |d|^2 / 2) / deviation^2,

beside which nothing tells the two apart better. In about half of the cases the sum is as it was released; in
the others d is taken from it, so that the noise is what the protocol drew. (Items that a user has not rated
would be no fair cases: profiles with an item less are not distributed as profiles are.) A normalised profile
of n items is moved by about 1 / sqrt(n) by one of them.

There is no bound: the cases of a run share its noise, so that alike ones are told apart better than in runs
of their own, and a few runs say little of what chance does. What noise leaves to be told is in a note,
exactly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import scipy

from dprec.arrays import Bools, Floats, Ints, blocks
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import Roc, ranked
from dprec.attacks.shadow import held
from dprec.attacks.transcript import ReleasedSum
from dprec.completion import Profiles
from dprec.components import option
from dprec.randomness import generator
from dprec.ratings import Ratings

FALSE_POSITIVES = 0.001
"""Share of the items that are not in a profile at which true positives are counted."""

_CELLS_AT_ONCE = 1 << 21
"""Bounds the memory of contributions: a profile of n items may have n^2 numbers."""

_LEAST_DEVIATION = 1e-6
"""What rounding leaves of a sum without noise."""

_THRESHOLDS, _FARTHEST = 400, 4.0
"""Points of an exact curve, and how many deviations of the noise it reaches."""


@dataclass(frozen=True, kw_only=True)
class SumsMembership(Attack):
    """Whether an item is in a profile, to who knows all other profiles and the rest of this one."""

    kind: Literal["sums"] = "sums"
    named: ClassVar[tuple[str, ...]] = ("sums_membership_auc", "sums_membership_tpr")
    cases: int = option("Ratings that each run is asked about.", 4000, ge=2)
    runs: int = option("Runs whose sums are looked at: the run itself, and others with other noise.", 8, ge=1)

    def perform(self, game: Game) -> Attacked:
        """Rank ratings, there or not, by the sums of all runs; see `Attack.perform`."""
        if not (game.transcript.parted_sums and game.truth.count):
            nothing = "No sum is released of which devices' parts could be told."
            return Attacked({name: Figure(None) for name in self.figures()}, (nothing,))
        random, everybody = (
            generator(game.seed, "ratings that are asked about in sums"),
            game.truth.counts >= 0,
        )
        outcomes = []
        for run in range(self.runs):
            transcript = game.again(everybody, run) if run else game.transcript
            cases = Cases.drawn(game.truth, self.cases, random)
            outcomes.append((*evidence_of(transcript.parted_sums, cases, game.truth), cases.present))
        evidence, apart, present = (np.concatenate(column) for column in zip(*outcomes, strict=True))
        area, true = self.named
        figures, measured = ranked(evidence, present, area, {true: FALSE_POSITIVES})
        best, largest = best_with(apart), float(apart.max(initial=0.0))
        note = (
            f"One item moves the sums by {float(np.median(apart)):.4g} deviations of their noise in the "
            f"middle, and by {largest:.4g} at most. Normal noise leaves an AUC of {best.auc:.4f}, and "
            f"{float(best.at(FALSE_POSITIVES)):.4f} true positives, to who knows all else."
        )
        return Attacked(figures, (measured, note))


def best_with(apart: Floats) -> Roc:
    """Return the curve of the likelihood ratio, for normal numbers of variance 1 and known distances."""
    distances = np.maximum(apart, _LEAST_DEVIATION)
    reach = float(distances.max() * (distances.max() / 2 + _FARTHEST))
    thresholds = reach * np.linspace(1, -1, _THRESHOLDS)
    true, false = (
        np.array(
            [
                scipy.special.ndtr(side * distances / 2 - threshold / distances).mean()
                for threshold in thresholds
            ]
        )
        for side in (1, -1)
    )
    return Roc(*(np.concatenate([[0.0], shares, [1.0]]) for shares in (false, true)))


@dataclass(frozen=True, eq=False)
class Cases:
    """Ratings of whom it is asked whether they are in their user's profile."""

    users: Ints
    ratings: Ints
    """Places of the ratings in their users' profiles."""
    present: Bools
    """Whether the sum is with it, as released, or without."""

    @classmethod
    def drawn(cls, truth: Ratings, count: int, random: np.random.Generator) -> Self:
        """Return ratings of users, all users alike; each is there or not, by chance."""
        filled = np.flatnonzero(truth.counts)
        users = filled[random.integers(filled.size, size=count)]
        return cls(users, random.integers(truth.counts[users]), random.random(count) < 0.5)

    def profiles(self, truth: Ratings) -> Iterator[tuple[slice, Profiles, Profiles]]:
        """Yield some of the cases after the other, and the users' profiles with the rating and without."""
        for block in blocks(truth.counts[self.users] ** 2, _CELLS_AT_ONCE):
            profiles = truth.of_users(self.users[block], np.arange(block.stop - block.start))
            remaining = np.ones(profiles.count, dtype=np.bool_)
            remaining[profiles.indptr[:-1] + self.ratings[block]] = False
            yield block, held(profiles), held(profiles.select(remaining))


def evidence_of(sums: Sequence[ReleasedSum], cases: Cases, truth: Ratings) -> tuple[Floats, Floats]:
    """Return the log likelihood ratio of each case, and how many deviations one item moves the sums."""
    noise = []
    for summed in sums:
        assert summed.added is not None
        total = np.zeros(summed.released.size)
        for block in blocks(truth.counts**2, _CELLS_AT_ONCE):
            users = np.arange(block.start, block.stop)
            total += summed.added(held(truth.of_users(users, users))).sum(axis=0)
        noise.append(summed.released - total)
    evidence, squared = np.zeros((2, cases.users.size))
    for block, with_item, without in cases.profiles(truth):
        for summed, residual in zip(sums, noise, strict=True):
            assert summed.added is not None
            moves = summed.added(with_item) - summed.added(without)
            precision = max(summed.deviation, _LEAST_DEVIATION) ** -2
            lengths = precision * moves.power(2).sum(axis=1)
            side = np.where(cases.present[block], 0.5, -0.5)
            evidence[block] += precision * (moves @ residual) + side * lengths
            squared[block] += lengths
    return evidence, np.sqrt(squared)
