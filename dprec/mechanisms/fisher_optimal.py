"""The channel that says most about a latent rating, by linear programming (Kairouz et al. [kairouz2014])."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Bools, Floats
from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms.base import Mechanism
from dprec.ordinal import Histogram, cut_points, level_probabilities, level_shares
from dprec.ratings import RatingScale

_ALL_PATTERNS_UP_TO = 10
"""Levels up to which every pattern is tried; 2^10 of them."""

_NODES = 41
"""Points of the Gauss-Hermite quadrature over the latent rating."""

_UNUSED = 1e-9
"""Weight below which a pattern is no symbol."""


@dataclass(frozen=True, kw_only=True)
class FisherOptimal(Mechanism):
    """The symbols with the most Fisher information about the latent rating (Kairouz et al. [kairouz2014])."""

    kind: Literal["fisher-optimal"] = "fisher-optimal"
    papers: ClassVar[tuple[str, ...]] = ("kairouz2014",)
    histogram: Histogram | None = option(
        "Public shares of the levels, from the lowest; by default equal. Not those of the protected ratings.",
        None,
    )
    variance: float = option("Variance of the latent rating, in units of the noise on it.", 0.5, gt=0, le=100)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the best channel.

        Values are the linear reading of the symbols with the least squared error of the mean at each level,
        levels weighted by the histogram.
        """
        shares = level_shares(self.histogram, scale.levels)
        probabilities = _best(shares, self.variance, epsilon)
        root = np.sqrt(np.array(shares) / sum(shares))
        middle = float(root**2 @ scale.values)
        # Of least norm: where there is a choice, symbols read as near to the mean as they can.
        deviations = np.linalg.lstsq(
            probabilities * root[:, None], (scale.values - middle) * root, rcond=None
        )[0]
        return Channel.from_probabilities(probabilities, scale.values, middle + deviations, epsilon)


@lru_cache(maxsize=256)
def _best(shares: tuple[float, ...], variance: float, epsilon: float) -> Floats:
    """Return the channel's probabilities, shape (levels, symbols).

    Fisher information is convex and homogeneous in the columns of a channel, so that the columns of a best
    channel have entries in the ratio 1 or e^epsilon (Kairouz et al. [kairouz2014]); how much
    of each column to use is a linear programme.
    """
    from scipy.optimize import linprog

    columns = np.where(patterns(len(shares)), 1.0, np.exp(-epsilon))
    gains = information(columns, shares, variance)
    solution = linprog(-gains / gains.max(), A_eq=columns, b_eq=np.ones(len(shares)), method="highs")
    columns_in_use = columns[:, solution.x > _UNUSED]
    # The solver keeps the sums to 1e-7 only; the columns in use determine their weights exactly.
    weights = np.linalg.lstsq(columns_in_use, np.ones(len(shares)), rcond=None)[0]
    return columns_in_use * weights


def patterns(levels: int) -> Bools:
    """Return which levels a symbol favours, shape (levels, patterns).

    All choices up to ten levels; beyond, runs of neighbouring levels and their complements.
    """
    if levels <= _ALL_PATTERNS_UP_TO:
        choices = np.array(list(product([False, True], repeat=levels))[1:-1])
        return choices.T
    first, last = np.triu_indices(levels)
    level = np.arange(levels)[:, None]
    runs = ((level >= first) & (level <= last))[:, ~((first == 0) & (last == levels - 1))]
    return np.unique(np.hstack([runs, ~runs]), axis=1)


def information(columns: Floats, shares: tuple[float, ...], variance: float) -> Floats:
    """Return columns' mean Fisher information about a latent rating drawn from Normal(0, variance).

    The mean of (Q[:, z] . p')^2 / (Q[:, z] . p) over the latent rating, shape (columns,).
    """
    nodes, masses = np.polynomial.hermite_e.hermegauss(_NODES)
    probabilities, slopes = level_probabilities(nodes * np.sqrt(variance), cut_points(shares, variance))
    return (masses / masses.sum()) @ ((slopes @ columns) ** 2 / (probabilities @ columns))
