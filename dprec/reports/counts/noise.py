"""Two-sided geometric noise on a count, clamped to the counts that are possible, in integer weights.

Clamping costs no information: everything below 0 favours one true count over another as 0 does, and
everything above the largest count as that one (Ghosh, Roughgarden and Sundararajan [ghosh2012]). As for a
`Channel`, the loss is that of the integers with which devices draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dprec.arrays import AnyInts, Ints, Uint64s
from dprec.channel import Channel
from dprec.randomness import DRAWS, integer_weights, loss_of_draws

LEAST_EPSILON = 1e-5
"""Smallest loss of one rating for which the table is fine enough."""

_MARGIN = 1e-4
"""Share of epsilon that rounding to integer weights may take."""

_FEWEST = 1 << 30
"""Fewest draws of a noisy count; more where rounding these could change a ratio by more than its margin."""


_NEARLY = 2.0**-50
"""Relative error of a ratio in floating point, and more."""


@dataclass(frozen=True, eq=False)
class CountNoise:
    """Noise k with Pr(k) proportional to ``exp(-epsilon |k|)``, on counts of up to some number of ratings."""

    tails: Ints
    """Draws out of 2**60 whose noise is at least 1, 2, ..., most; as many have at most -1, -2, ..., -most;
    shape (most,).
    """

    @classmethod
    def of(cls, epsilon: float, most: int) -> CountNoise:
        """Return noise for which a count of up to ``most`` loses at most epsilon when it changes by 1.

        Raises ValueError when epsilon is below `LEAST_EPSILON`, or integer weights are too coarse for so long
        a count.
        """
        if epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon {epsilon:g} for a count")
        fewest = max(_FEWEST, 4 / (_MARGIN * epsilon)) / DRAWS
        used = (1 - _MARGIN) * epsilon
        middle = np.tanh(used / 2)
        shares = np.maximum(middle * np.exp(-used * np.arange(1, most)), fewest)
        beyond = np.exp(-used * most) / (1 + np.exp(-used))
        beyond = max(beyond, fewest, shares[-1:].sum() / np.expm1(used))
        total = middle + 2 * (shares.sum() + beyond)
        # What rounding down leaves over goes to the ends, whose share is the largest.
        single = np.floor(DRAWS / total * shares).astype(np.int64)
        rest = (DRAWS - int(DRAWS / total * middle)) // 2 - int(single.sum())
        noise = cls(np.append(single, rest)[::-1].cumsum()[::-1])
        if rest < 1 or noise.epsilon > epsilon:
            raise ValueError(f"a count of {most} ratings at epsilon {epsilon:g}")
        return noise

    @property
    def most(self) -> int:
        """Ratings of the longest count."""
        return self.tails.size

    @property
    def epsilon(self) -> float:
        """Exact loss of a count of any size when it changes by 1, rounded up."""
        reaching = np.concatenate([[DRAWS - self.tails[0]], self.tails])
        single = np.concatenate([[DRAWS - 2 * self.tails[0]], -np.diff(self.tails)])
        pairs = np.vstack([np.column_stack([draws[:-1], draws[1:]]) for draws in (reaching, single)])
        most, fewest = pairs.max(axis=1), pairs.min(axis=1)
        # Floating point finds the ratios that may be the largest, integers the one that is.
        growths = (most - fewest) / fewest
        worst = np.flatnonzero(growths >= growths.max() * (1 - _NEARLY))
        found = zip(most[worst].tolist(), fewest[worst].tolist(), strict=True)
        return loss_of_draws(*max(set(found), key=lambda pair: Fraction(*pair)))

    def perturb(self, counts: Ints, sizes: Ints, random_words: Uint64s) -> Ints:
        """Add noise to counts, and clamp them to 0 and to the sizes, which are at most `most`."""
        ends = np.concatenate([self.tails[::-1], DRAWS - self.tails])
        draws = integer_weights(random_words).astype(np.int64)
        noise = np.searchsorted(ends, draws, side="right") - self.most
        noisy: Ints = np.clip(counts + noise, 0, sizes)
        return noisy

    def channel(self, size: int, counts: AnyInts) -> Channel:
        """Return the channel of a count of ``size`` ratings, with the given true counts as its rows."""
        steps = np.arange(size) - counts[:, None]
        # Draws whose noise is at most a step: the lower tail, or all but the upper one.
        below = self.tails[np.where(steps < 0, -steps, steps + 1) - 1]
        cumulative = np.where(steps < 0, below, DRAWS - below)
        ends = np.full((counts.size, 1), DRAWS)
        weights = np.diff(np.hstack([0 * ends, cumulative, ends]), axis=1)
        return Channel(weights.astype(np.uint64), counts.astype(np.float64), np.arange(size + 1.0))
