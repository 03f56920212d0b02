"""Which mechanism says most, from what is public: the levels, which items were rated, and epsilon.

A rating is a latent one with unit noise: a user bias, an item bias, and a product of factors.
Symbols and bits tell as much about each as the Fisher information of their channel; a noisy count over m
ratings tells about the user's bias alone, and that grows with the square of m. What is left of the three
variances is compared, in the mean over ratings as they are spread over users and items.
"""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from dprec.arrays import AnyInts, Floats
from dprec.mechanisms import BitsAndCounts, Mechanism, ThresholdBit
from dprec.mechanisms.fisher_optimal import information
from dprec.ordinal import level_shares
from dprec.ratings import Ratings, RatingScale

PUBLIC: Literal["netflix"] = "netflix"
"""The public shares of the levels, of five stars."""

_STARS = 5

_USERS, _ITEMS, _FACTORS = 0.5, 0.2, 0.2
"""Variances of the biases and of the factors, in units of the noise on a rating.

An assumption: round numbers with which counts and symbols change places where they do on MovieLens 100K
and on generated ratings of a slider.
"""

_DIMENSIONS = 5
"""Of the factors, among which the information about a user is shared."""

_LATENT_VARIANCE = 0.5
"""As in the protocols that are compared."""

_COUNTED_VARIANCE = 0.25
"""Of one counted rating, which reaches the threshold or does not."""

_NO_NOISE = 20.0
"""An epsilon at which a bit is as good as true."""

_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, eq=False)
class Sizes:
    """What is public about ratings whose items are seen."""

    of_users: Floats
    of_items: Floats
    """Ratings of the user, and of the item, of a rating: quantiles over all ratings."""
    scale: RatingScale

    @classmethod
    def of(cls, train: Ratings) -> Self:
        """Return the sizes of train ratings; which values they have is not read."""
        per_item = np.bincount(train.items, minlength=train.n_items)
        return cls(_of_a_rating(train.counts), _of_a_rating(per_item), train.scale)

    def information(self, mechanism: Mechanism, epsilon: float) -> float:
        """Return what a symbol tells about a latent rating; levels without public shares count equally."""
        shares = level_shares(PUBLIC if self.scale.levels == _STARS else None, self.scale.levels)
        columns = mechanism.channel(self.scale, epsilon).probabilities
        return float(information(columns, shares, _LATENT_VARIANCE).sum())

    def error_of_symbols(self, mechanism: Mechanism, epsilon: float) -> float:
        """Return the variance that is left when every rating is reported by a symbol."""
        return self._error(self.information(mechanism, epsilon), np.zeros_like(self.of_users))

    def error_of_counts(self, mechanism: BitsAndCounts, epsilon: float) -> float:
        """Return the variance that is left by bits about some ratings and counts of the others."""
        bit = ThresholdBit(threshold=mechanism.threshold)
        counted = (1 - mechanism.bits) * self.of_users / mechanism.groups
        noise = 2 * np.exp(-epsilon) / np.expm1(-epsilon) ** 2
        moved = counted**2 * self.information(bit, _NO_NOISE) * _COUNTED_VARIANCE
        of_counts = mechanism.groups * moved / (noise + counted * _COUNTED_VARIANCE)
        return self._error(mechanism.bits * self.information(bit, epsilon), of_counts)

    def _error(self, told: float, of_counts: Floats) -> float:
        of_users, of_items = self.of_users * told, self.of_items * told
        biases = (1 / (1 / _USERS + of_users + of_counts)).mean() + (1 / (1 / _ITEMS + of_items)).mean()
        return float(biases + _FACTORS * (1 - _learned(of_users).mean() * _learned(of_items).mean()))


def _of_a_rating(counts: AnyInts) -> Floats:
    """Return quantiles of counts, each as often as it counts."""
    ordered = np.sort(counts)
    reached = np.cumsum(ordered)
    places = np.searchsorted(reached, np.array(_QUANTILES) * reached[-1])
    reaching: Floats = ordered[places].astype(np.float64)
    return reaching


def _learned(told: Floats) -> Floats:
    """Return the share of the factors that so much information leaves known, for users or for items."""
    of_each = told * _FACTORS / _DIMENSIONS
    learned: Floats = of_each / (1 + of_each)
    return learned
