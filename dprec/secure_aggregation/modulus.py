"""Whole numbers modulo a power of two, and how large it must be so that no sum is taken for another one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dprec.errors import SettingError

MOST_BITS = 62
"""Bits of the largest modulus: sums of sixty-four-bit numbers are cut to it."""

OVERFLOW = 2.0**-40
"""Most probability with which the noise carries a total of a run past the modulus."""


def modulus_bits(largest_sum: int, noise_variance: float, totals: int) -> int:
    """Return the bits of the smallest modulus that holds sums of either sign and their noise.

    Parameters
    ----------
    largest_sum : int
        Largest absolute value of a sum without noise, whatever the data.
    noise_variance : float
        Of the Skellam noise of one total, if nobody drops out.
    totals : int
        How many totals there are in a run.
    """
    largest = largest_sum + skellam_tail(noise_variance, OVERFLOW / totals)
    # From -2**(bits - 1) to 2**(bits - 1) - 1.
    return largest.bit_length() + 1


def check_modulus(bits: int | None, needed: int) -> int:
    """Return the bits of the modulus: as many as are asked for, or as are needed.

    Raises
    ------
    SettingError
        When sums could overflow.
    """
    if needed > MOST_BITS:
        raise SettingError("modulus_bits", f"sums of {needed} bits", f"sums of at most {MOST_BITS} bits")
    if bits is not None and bits < needed:
        found = f"{bits}, although a sum with its noise can need {needed}"
        raise SettingError("modulus_bits", found, f"{needed} to {MOST_BITS}, or a smaller norm")
    return needed if bits is None else bits


def skellam_tail(variance: float, probability: float) -> int:
    """Return an integer that Skellam noise exceeds in absolute value with at most some probability.

    Chernoff's bound with the best exponent: log Pr(Z >= z) <= v (cosh(t) - 1) - t z, t = asinh(z / v).
    """
    if variance == 0:
        return 0
    needed = math.log(2 / probability)

    def exponent(z: int) -> float:
        t = math.asinh(z / variance)
        return t * z - variance * (math.cosh(t) - 1)

    high = 1
    while exponent(high) < needed:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if exponent(middle) >= needed else (middle, high)
    return high


def word_type(bits: int) -> np.dtype[np.unsignedinteger]:
    """Return the narrowest unsigned type that holds numbers of so many bits; its arithmetic wraps around."""
    return np.dtype(next(f"u{size // 8}" for size in (16, 32, 64) if bits <= size))


def reduced(values: NDArray[np.integer], bits: int) -> NDArray[np.unsignedinteger]:
    """Return integers modulo 2**bits, from 0 on."""
    mask = (1 << bits) - 1
    words: NDArray[np.unsignedinteger] = values.astype(word_type(bits)) & word_type(bits).type(mask)
    return words


def centred(total: NDArray[np.unsignedinteger], bits: int) -> NDArray[np.int64]:
    """Return the integers of either sign that lie nearest to 0 and are the given ones modulo 2**bits."""
    values = reduced(total, bits).astype(np.int64)
    return values - ((values >> (bits - 1)) << bits)
