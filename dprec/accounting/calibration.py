"""What a search has calibrated, to a few leading digits.

Processors add up in orders of their own, so that the last digits of what a search finds are not the same on
all of them. Noise follows from what is found, and a device and its server must find the same.
"""

import math
from collections.abc import Callable

_BITS = 14
"""Leading bits that are kept: what is rounded moves by less than 2^-13."""


def rounded_down(number: float) -> float:
    """Return the largest number of so few bits that is not above ``number``, above 0."""
    return _shortened(number, math.floor)


def rounded_up(number: float) -> float:
    """Return the smallest number of so few bits that is not below ``number``, above 0."""
    return _shortened(number, math.ceil)


def _shortened(number: float, rounding: Callable[[float], int]) -> float:
    fraction, exponent = math.frexp(number)
    return math.ldexp(rounding(math.ldexp(fraction, _BITS)), exponent - _BITS)
