"""The server's part of a round: from sums with noise to user-independent biases and factors of the items."""

from dataclasses import dataclass, field, replace

import numpy as np

from dprec.arrays import Floats
from dprec.completion import unpack
from dprec.private_als.device import UNIT_WEIGHT, FactorizationOptions, ItemModel, StatisticsLayout
from dprec.randomness import generator
from dprec.ratings import RatingScale
from dprec.sums import Learner


def shrunken_biases(
    counts: Floats, sums: Floats, *, noise: float, residual: float, prior: float, count_noise: float = 0.0
) -> Floats:
    """Return the biases c with the least expected squared error given the counts, shape (items,).

    A sum is s = n c + e, where e holds the residuals of n ratings and the noise of the release. Negative
    counts, which noise makes, are taken as 0.
    """
    n = np.maximum(counts, 0.0)
    below = n**2 + count_noise**2 + (noise**2 + residual * n) / prior
    return np.divide(n * sums, below, out=np.zeros_like(n), where=below > 0)


def shrunken_factors(
    matrices: Floats,
    sides: Floats,
    *,
    noise: float,
    residual: Floats,
    prior: float,
    matrix_noise: float = 0.0,
    largest: float = np.inf,
) -> Floats:
    """Return the factors with the least expected squared error given the matrices, shape (items, rank).

    The Gram matrix is projected to the positive semidefinite ones: its negative eigenvalues, which noise
    makes, are set to 0 (Chien et al. [chien2021], Algorithm 2). The ridge of that step is here that of
    Wiener's filter, in every direction of the matrix its own, as in `shrunken_biases`: where noise exceeds
    what ratings say, the factors are small.
    """
    values, vectors = np.linalg.eigh(matrices)
    values = np.clip(values, 0.0, largest)
    below = values**2 + matrix_noise**2 + (noise**2 + residual[:, None] * values) / prior
    along = np.einsum("npq,np->nq", vectors, sides)
    gains = np.divide(values, below, out=np.zeros_like(values), where=below > 0)
    return np.einsum("npq,nq->np", vectors, gains * along)


def root_of_moment(moment: Floats, least: float) -> Floats:
    """Return L with L L^T the nearest matrix to a symmetric one whose eigenvalues are ``least`` to 1."""
    values, vectors = np.linalg.eigh((moment + moment.T) / 2)
    return vectors * np.sqrt(np.clip(values, least, 1.0))


def orthogonal(factors: Floats, weights: Floats, least: float) -> Floats:
    """Return the same space of factors with weighted mean squares of 1 and no correlation.

    Directions with less than ``least`` of the largest mean square are enlarged no further than those.
    """
    moment = (factors * weights[:, None]).T @ factors / weights.sum()
    values, vectors = np.linalg.eigh(moment)
    largest = max(float(values[-1]), np.finfo(float).tiny)
    return factors @ vectors / np.sqrt(np.maximum(values, least * largest))


_SMALLEST_MOMENT = 0.02
"""Least mean square of a direction of user factors, which are at most 1 long."""

_SMALLEST_DIRECTION = 0.1
"""Least mean square of a direction of item factors, relative to the largest, that is enlarged to 1."""

_SMALLEST_COUNT = 1e-3
"""Least count of an item with factors, relative to the largest."""


@dataclass(eq=False)
class ItemLearner(Learner):
    """What the server knows from releases alone: the next round's ``model``, and what it has ``learned``."""

    options: FactorizationOptions
    scale: RatingScale
    n_items: int
    seed: int
    """Of what the server draws."""
    liars: int = 0
    """Users against whom lists are guarded."""
    model: ItemModel = field(init=False)
    learned: ItemModel = field(init=False)
    _counts: Floats = field(init=False)
    _sums: Floats = field(init=False)
    _floored: Floats = field(init=False)
    _offset: float = field(init=False, default=0.0)
    _count_noise: float = field(init=False, default=0.0)
    _sum_noise: float = field(init=False, default=0.0)
    _users: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        middle = (self.scale.low + self.scale.high) / 2
        self.model = self.learned = ItemModel.begin(self.n_items, self.options.rank, middle)

    @property
    def span(self) -> float:
        """Largest rating less the smallest."""
        return self.scale.high - self.scale.low

    def layout(self, round_index: int) -> StatisticsLayout:
        """Return what is summed in a round."""
        return self.model.layout(self.options, round_index, self.span)

    def model_bytes(self) -> bytes:
        """Return the next round's model; see `Learner.model_bytes`."""
        return self.model.encode()

    def learned_bytes(self) -> bytes:
        """Return what was learned; see `Learner.learned_bytes`."""
        guarded = replace(self.learned, cautions=self.cautions()) if self.liars else self.learned
        return guarded.encode()

    def learn(
        self, round_index: int, released: Floats, layout: StatisticsLayout, deviation: float, users: int
    ) -> None:
        """Take the item step of a round, from sums with noise of shape (items, width)."""
        noise = deviation * layout.scales
        if round_index == 1:
            self._begin(released, noise, users)
        if round_index <= self.options.bias_rounds:
            self._learn_biases(released[:, -1], float(noise[-1]), first=round_index == 1)
        else:
            self._learn_factors(released, layout, noise)
        if round_index == self.options.bias_rounds and self.options.rank:
            counts, options = self._counts, self.options
            popular = counts > max(options.popular_from * self._count_noise, 0.0)
            popular[np.argmax(counts)] = True
            least = max(2 * self._count_noise, _SMALLEST_COUNT * float(counts.max()), np.finfo(float).tiny)
            floored = np.maximum(counts, least)
            shares = (floored / floored[popular].min()) ** -options.exponent * UNIT_WEIGHT
            weights = np.where(popular, np.clip(np.rint(shares), 1, UNIT_WEIGHT), 0).astype(np.int64)
            start = generator(self.seed, "initial item factors").standard_normal(
                (int(popular.sum()), options.rank)
            )
            self._floored = floored[popular]
            # What factors of chance have in a fit to so many ratings, which is all that is fitted at first.
            ratings = max(self._floored.sum() / self._mean_weight / max(self._users, 1), 1.0)
            spread = (
                options.noise * self.span * np.sqrt(options.rank * ratings) / (ratings + options.search_ridge)
            )
            self.model = replace(
                self.model, weights=weights, factors=start, gain=float(options.length / spread)
            )
            self.learned = replace(self.model, factors=np.zeros_like(start))

    def _begin(self, released: Floats, noise: Floats, users: int) -> None:
        self._count_noise, self._users = float(noise[0]), users
        # No user weighs more than 1 in a count.
        self._counts = np.minimum(released[:, 0], float(users))
        total = max(float(self._counts.sum()), float(noise[0]), np.finfo(float).tiny)
        offset = float(np.clip(released[:, 1].sum() / total, -self.span / 2, self.span / 2))
        self.model = replace(self.model, mean=self.model.mean + offset)
        self._offset = offset

    def _learn_biases(self, sums: Floats, noise: float, *, first: bool) -> None:
        """Estimate the biases from the sums of all rounds so far, which have noise of their own each.

        Without noise, only those of the last round count: their targets are closest to the biases.
        """
        if first:
            self._sums, self._sum_noise = sums - self._offset * self._counts, noise
        else:
            before = noise**2 / (self._sum_noise**2 + noise**2) if noise > 0 else 0.0
            self._sums = before * self._sums + (1 - before) * sums
            self._sum_noise *= float(np.sqrt(before))
        biases = self._shrunken(self._counts, self._sums)
        self.model = self.learned = replace(self.model, biases=biases)

    def _shrunken(self, counts: Floats, sums: Floats) -> Floats:
        return shrunken_biases(
            counts,
            sums,
            noise=self._sum_noise,
            count_noise=self._count_noise,
            residual=self._residual * self._mean_weight,
            prior=(self.options.bias_deviation * self.span) ** 2,
        )

    def cautions(self) -> Floats:
        """Return by how much items are lowered in lists, in ratings, shape (items,).

        A bias is s n / b(n), of a sum s and a count n with noise. Liars add at most a weight w to n, and at
        most w t to s, t being the largest target less the mean. Without them it is thus at least the least of
        (s - w t) n' / b(n') over the counts n' from n - w to n, where n' / b(n') rises to the root of what
        b has without n, and falls beyond. As many standard deviations of a bias as liars may have of the
        count are taken off as well: else items that nobody knows would come before those that lose something.
        """
        options, counts = self.options, np.maximum(self._counts, 0.0)
        weight = self.liars * self.model.layout(options, 1, self.span).largest
        target = max(options.rating_clip * self.span - self._offset, options.residual_clip * self.span)
        deviation, fewest = options.bias_deviation * self.span, np.maximum(counts - weight, 0.0)
        peak = np.sqrt(self._count_noise**2 + (self._sum_noise / deviation) ** 2)
        sums = self._sums - weight * target
        least = np.full(self.n_items, np.inf)
        for at in (fewest, np.clip(peak, fewest, counts), counts):
            least = np.minimum(least, self._shrunken(at, sums))
        shares = weight / np.maximum(counts, weight)
        return np.maximum(self.learned.biases - least, 0.0) + shares * deviation

    @property
    def _residual(self) -> float:
        """Variance of a rating about its prediction."""
        return (self.options.noise * self.span) ** 2

    @property
    def _mean_weight(self) -> float:
        if self.options.weights == "uniform":
            return float(1 / np.sqrt(self.options.ratings_per_user))
        # Weights of users with n ratings are 1 / sqrt(n), so the counts sum to that of sqrt(n).
        return float(min(1.0, self._users / max(self._counts.sum(), 1.0)))

    def _learn_factors(self, released: Floats, layout: StatisticsLayout, noise: Floats) -> None:
        """Solve for the factors in coordinates in which those of the users have a mean square of 1."""
        options, width = self.options, layout.matrix_width
        matrices, sides = unpack(released[:, :width]), released[:, width:]
        weights = layout.weights / UNIT_WEIGHT
        # About b_u, the part of a weight that keeps the squares of a user's weights at most 1.
        of_users = self._mean_weight
        if options.weights != "uniform":
            square = float((self._floored * weights**2).sum() / self._floored.sum())
            of_users = float(of_users / np.sqrt(square))
        total = float((self._floored * weights).sum()) * of_users / self._mean_weight
        least = max(float(noise[0]) * np.sqrt(layout.n_rows) / total, _SMALLEST_MOMENT)
        root = root_of_moment(matrices.sum(axis=0) / total, min(least, 1.0))
        inverse = np.linalg.inv(root)
        stretch = float((inverse**2).sum() / options.rank)
        white = shrunken_factors(
            inverse @ matrices @ inverse.T,
            sides @ inverse.T,
            noise=float(noise[-1]) * float(np.sqrt(stretch)),
            residual=self._residual * weights * of_users,
            prior=(options.factor_deviation * self.span) ** 2 / options.rank,
            matrix_noise=float(noise[0]) * stretch,
            largest=self._users / _SMALLEST_MOMENT,
        )
        self.learned = replace(self.model, factors=white)
        self.model = replace(
            self.model,
            factors=orthogonal(white, self._floored, _SMALLEST_DIRECTION),
            gain=float(self.model.gain * options.length / np.sqrt((root**2).sum())),
        )
