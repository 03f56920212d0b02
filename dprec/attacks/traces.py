"""Statistics of a release that are larger, or smaller, where a user took part: what one profile leaves in it.

They follow the score test: the direction in which a profile moves a release, in units of what noise and the
other users move it.

    columns     the sum over a user's items of what a rating does to a number of the item, as learned from
                other runs for ratings of the same level of items that are rated about as often,
    embeddings  x^T E E^T x without its diagonal, for a user's items x: items of one user are drawn together,
    weights     the same of a matrix of weights between items,
    sums        the inner product of a user's contribution and what a sum exceeds its expectation by.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from dprec.arrays import Bools, Floats, Ints
from dprec.attacks.transcript import Transcript
from dprec.completion import Profiles
from dprec.randomness import generator
from dprec.ratings import Ratings

_LEAST_REST = 0.05
"""Least share of a number's variance that counts as noise, however well one rating explains it."""

_STEPS, _LEAST_CHANGE = 30, 1e-3
"""Of conjugate gradients; where they are too few, the guess is as good but for directions that say little."""

_NOTHING = 1e-9
"""A spread below which there is nothing but rounding."""


def held(ratings: Ratings) -> Profiles:
    """Return profiles as devices hold them, of sets as ones."""
    values = np.ones(ratings.count) if ratings.scale.implicit else ratings.values
    return Profiles(ratings.indptr, ratings.items, values, ratings.n_items)


@dataclass(frozen=True, eq=False)
class Targets:
    """Users of whom it is asked whether they took part, as the adversary knows them."""

    users: Ints
    """Ascending."""
    profiles: Ratings
    raters: Ints
    """How often each item is rated by all users, which is public; shape (items,)."""
    share: float
    """Of all users who have rated something."""

    @classmethod
    def drawn(cls, truth: Ratings, most: int, seed: int) -> Self:
        """Return at most so many users who have rated something."""
        everybody = np.flatnonzero(truth.counts)
        order = generator(seed, "targets of shadow models").permutation(everybody)
        users = np.sort(order[:most])
        raters = np.bincount(truth.items, minlength=truth.n_items)
        profiles = truth.of_users(users, truth.user_ids[users])
        return cls(users, profiles, raters, users.size / max(everybody.size, 1))

    def traces(self, transcript: Transcript) -> Floats:
        """Return the statistics of one run that need no other, shape (statistics, users)."""
        found, said, sets = [], transcript.of_items, self.profiles.to_sets()
        if transcript.parted_sums:
            # What sums say of who contributed to them, of whom half are expected.
            of_sums, profiles = [], held(self.profiles)
            for summed in transcript.parted_sums:
                assert summed.added is not None
                moves = summed.added(profiles) / 2
                expected = moves.sum(axis=0) / self.share
                variances = np.full(expected.size, max(summed.deviation, _NOTHING) ** 2)
                of_sums.append(self._likely(moves, summed.released - expected, variances))
            found.append(np.sum(of_sums, axis=0))
        for embeddings in () if said is None else said.embeddings:
            if embeddings.size:
                # How close the items of each user are, in dimensions of equal spread over the ratings.
                spreads = np.sqrt(self.raters @ embeddings**2 / max(int(self.raters.sum()), 1))
                even = embeddings / np.where(spreads > _NOTHING, spreads, np.inf)
                found.append(((sets @ even) ** 2).sum(axis=1) - sets @ (even**2).sum(axis=1))
        for weights in () if said is None else said.weights:
            # What the items of each user say of each other.
            found.append(sets.multiply(sets @ weights).sum(axis=1) - sets @ np.diag(weights))
        return np.array(found).reshape(-1, self.users.size)

    def _likely(self, moves: sp.csr_array, numbers: Floats, variances: Floats) -> Floats:
        """Return the best linear guess at who is present, as 1, and who is not, as -1; shape (users,).

        Numbers are the sum of noise and of the users' moves, each with its sign. Who is no target counts as
        noise.

        ``moves``, shape (users, numbers); ``variances``: of the noise on each number.
        """
        others = moves.power(2).sum(axis=0) * (1 / self.share - 1)
        scaled = sp.csr_array(moves @ sp.diags_array(1 / (variances + others)))
        back, users = sp.csr_array(moves.T), self.users.size
        system = LinearOperator(
            (users, users), lambda given: given + scaled @ (back @ given), dtype=np.float64
        )
        return cg(system, scaled @ numbers, rtol=_LEAST_CHANGE, maxiter=_STEPS)[0]

    def of_columns(self, numbers: Floats, present: Bools) -> Floats:
        """Return the statistic of one number of each item, shape (runs, users).

        What a rating does is learned from all runs but the pair that a run belongs to.

        ``numbers``, shape (runs, items); ``present``, shape (runs, users): who took part, in pairs of runs.
        """
        spreads = numbers.std(axis=0)
        units = np.where(spreads > _NOTHING, spreads, np.inf)
        standard, own = (numbers - numbers.mean(axis=0)) / units, self.profiles
        sides, alike = np.where(present, 1.0, -1.0), np.maximum(np.bincount(self._kinds), 1)
        correlations = [
            np.bincount(self._kinds, standard[run, own.items] * sides[run, own.users], alike.size)
            for run in range(len(numbers))
        ]
        of_pairs = np.array(correlations).reshape(-1, 2, alike.size).sum(axis=1)
        others = (of_pairs.sum(axis=0) - of_pairs) / (alike * max(len(numbers) - 2, 1))
        said, shape = [], (self.users.size, standard.shape[1])
        for run, numbers_of_run in enumerate(standard):
            # What standardised numbers of items say, given what correlates with ratings of each kind.
            data = others[run // 2][self._kinds]
            moves = sp.csr_array((data, own.items, own.indptr), shape=shape)
            rest = np.maximum(1 - moves.power(2).sum(axis=0) / self.share, _LEAST_REST)
            said.append(self._likely(moves, numbers_of_run, rest))
        return np.array(said)

    @cached_property
    def _kinds(self) -> Ints:
        """The kind of each rating: its level, and how often its item is rated; shape (ratings,)."""
        doublings = np.floor(np.log2(np.maximum(self.raters, 1))).astype(np.int64)
        levels = self.profiles.levels.astype(np.int64)
        return levels * (doublings.max(initial=0) + 1) + doublings[self.profiles.items]
