"""Ordinal probit: levels are a latent rating and normal noise, cut at points (McCullagh [mccullagh1980])."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import scipy
from pydantic import BeforeValidator, Field

from dprec.arrays import Floats
from dprec.components import as_tuple
from dprec.errors import SettingError

INVERSE_SQRT_2_PI = float(1 / np.sqrt(2 * np.pi))
"""The height of the standard normal density."""

NETFLIX = (4.6, 10.1, 28.7, 33.6, 23.1)
"""Percentages of the stars, from one to five, among the ratings of the Netflix Prize [bennett2007]; from a
secondary source.
"""

Histogram = (
    Annotated[tuple[Annotated[float, Field(gt=0)], ...], BeforeValidator(as_tuple)] | Literal["netflix"]
)
"""Public shares of the levels of a scale, from the lowest level, in any unit; or those of the Netflix Prize.

The latter are for any number of levels: each star's share is spread evenly over its fifth of the scale.
"""


def level_shares(histogram: Histogram | None, levels: int) -> tuple[float, ...]:
    """Return the shares of the levels; equal ones without a histogram, which must have as many."""
    if histogram == "netflix":
        reached = np.interp(np.linspace(0, len(NETFLIX), levels + 1), range(6), np.cumsum([0, *NETFLIX]))
        return tuple(np.diff(reached).tolist())
    shares = (1.0,) * levels if histogram is None else histogram
    if len(shares) != levels:
        found = f"{len(shares)} shares, for a scale of {levels} levels"
        raise SettingError("histogram", found, "one share above 0 for each level")
    return shares


def cut_points(histogram: Sequence[float] | Floats, variance: float) -> Floats:
    """Return the points at which levels with given shares change, ascending, shape (levels - 1,).

    The latent rating is Normal(0, variance); the noise on it has variance 1.
    """
    shares = np.asarray(histogram, dtype=np.float64)
    below = np.cumsum(shares)[:-1] / shares.sum()
    points: Floats = scipy.special.ndtri(below) * np.sqrt(1 + variance)
    return points


def level_probabilities(latent: Floats, cuts: Floats) -> tuple[Floats, Floats]:
    """Return Pr(level | latent rating) and its derivative by the latent rating, shape (points, levels)."""
    offsets = cuts[None, :] - latent[:, None]
    infinite = np.full((latent.size, 1), np.inf)
    low, high = np.hstack([-infinite, offsets]), np.hstack([offsets, infinite])
    # Each difference is taken in the tail where both ends are small, or it would be lost in rounding.
    mirrored = low > 0
    upper, lower = np.where(mirrored, -low, high), np.where(mirrored, -high, low)
    probabilities = scipy.special.ndtr(upper) - scipy.special.ndtr(lower)
    slopes = INVERSE_SQRT_2_PI * (np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2))
    return probabilities, slopes


def expected_rating(latent: Floats, variances: Floats, cuts: Floats, values: Floats) -> Floats:
    """Return the mean rating of latent ratings of some means and variances, without the noise on them."""
    spreads = np.sqrt(1 + variances)
    expected = np.full(latent.shape, values[0])
    for cut, gap in zip(cuts, np.diff(values), strict=True):
        expected += gap * scipy.special.ndtr((latent - cut) / spreads)
    return expected
