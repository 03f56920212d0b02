"""Privacy losses of integer weights, and the draws that a loss allows, always rounded to the safe side.

A probability that protects is an integer of `dprec.randomness.DRAWS`, so the loss is the logarithm of a
ratio of two integers: irrational, unless it is 0. What is reported is the next number above it, and
what is drawn follows from the next one below, so no loss is ever larger than the one asked for.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dprec.randomness import DRAWS

_UPWARDS = Context(prec=50, rounding=ROUND_CEILING)
_MARGIN = 1 - 2.0**-49
"""Factor that covers the rounding errors of a few operations in floating point."""

_LARGEST = 50.0
"""More than the logarithm of `DRAWS`: from here on, every ratio of draws is within the budget."""


def loss_of_draws(most: int, fewest: int) -> float:
    """Return log(most / fewest), rounded up to the next floating-point number.

    Parameters
    ----------
    most, fewest : int
        Draws of an answer in the two cases that are compared, most >= fewest >= 0; infinite for 0 of
        the fewest.
    """
    if most == fewest:
        return 0.0
    if fewest == 0:
        return math.inf
    # The logarithm of a decimal number is off by half a unit of its last digit at most.
    above = _UPWARDS.divide(Decimal(most), Decimal(fewest)).ln(_UPWARDS).next_plus(_UPWARDS)
    nearest = float(above)
    return nearest if Decimal(nearest) >= above else math.nextafter(nearest, math.inf)


def most_draws(fewest: NDArray[np.int64], epsilon: float) -> NDArray[np.int64]:
    """Return the most draws that lose no more than epsilon against the fewest, shape (answers,).

    They are e^epsilon times the fewest, rounded down, or `DRAWS` if that is less.

    Parameters
    ----------
    fewest : ndarray of int64, shape (answers,)
        From 0 to `DRAWS`.
    epsilon : float
        May be infinite.
    """
    if math.isinf(epsilon):
        return np.full_like(fewest, DRAWS)
    # The difference is rounded and not the product, so that a small epsilon keeps its precision.
    growth = math.expm1(min(epsilon, _LARGEST)) * _MARGIN
    most: NDArray[np.int64] = fewest + np.minimum(fewest * growth, DRAWS).astype(np.int64)
    return np.minimum(most, DRAWS)


def fewest_draws(epsilon: float) -> int:
    """Return the draws of a coin's unlikelier side that lose no more than epsilon, at least 1.

    They are `DRAWS` / (e^epsilon + 1), rounded up.
    """
    growth = Decimal(min(epsilon, _LARGEST)).exp(_UPWARDS).next_minus(_UPWARDS)
    return math.ceil(_UPWARDS.divide(Decimal(DRAWS), growth + 1))


def even_share(epsilon: float, parts: int) -> float:
    """Return epsilon / parts, rounded down so far that adding up the parts one by one stays within epsilon.

    Every addition in floating point may round up by 2**-53 of the sum.
    """
    grown = 1 + Fraction(parts - 1, 2**53)
    share = float(Fraction(epsilon) / parts / grown)
    return share if Fraction(share) * parts * grown <= Fraction(epsilon) else math.nextafter(share, 0.0)
