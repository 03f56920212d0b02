"""Vectors as integers modulo a power of two: rounded to a grid, and summed.

Each number is rounded up or down at random, so that it is right on average, and a device rounds again until
its vector is no longer than the bound (Kairouz, Liu and Steinke [kairouz2021], Section 4): then the
sensitivity is the bound itself, in whole steps, whatever was rounded. How many steps a unit has is public,
and suits vectors with some number of entries: a device with so many more that rounding makes its vector too
long shrinks it first.
"""

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Bools, Floats, Ints, offsets, rows_of
from dprec.errors import SettingError
from dprec.randomness import Pairs

MOST_BITS = 62
"""Bits of the largest modulus: sums of sixty-four-bit numbers are cut to it."""

OVERFLOW = 2.0**-40
"""Most probability with which the noise carries a total of a run past the modulus."""


def modulus_bits(largest_sum: int, noise_variance: float, totals: int, *, signed: bool = True) -> int:
    """Return the bits of the smallest modulus that holds sums and their noise.

    ``signed``: whether sums are of either sign; else only the noise is.
    """
    noise = skellam_tail(noise_variance, OVERFLOW / totals)
    if not signed:
        # From -noise to 2**bits - noise - 1.
        return (largest_sum + 2 * noise).bit_length()
    # From -2**(bits - 1) to 2**(bits - 1) - 1.
    return (largest_sum + noise).bit_length() + 1


def check_modulus(bits: int | None, needed: int) -> int:
    """Return the bits of the modulus, asked for or needed; raises SettingError if sums could overflow."""
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
    low = high // 2 + 1
    return low + bisect_left(range(low, high), True, key=lambda z: exponent(z) >= needed)


def word_type(bits: int) -> np.dtype[np.unsignedinteger]:
    """Return the narrowest unsigned type that holds numbers of so many bits; its arithmetic wraps around."""
    return np.dtype(next(f"u{size // 8}" for size in (16, 32, 64) if bits <= size))


def reduced(values: AnyInts, bits: int) -> NDArray[np.unsignedinteger]:
    """Return integers modulo 2**bits, from 0 on."""
    mask = (1 << bits) - 1
    words: NDArray[np.unsignedinteger] = values.astype(word_type(bits)) & word_type(bits).type(mask)
    return words


def centred(total: NDArray[np.unsignedinteger], bits: int, lowest: int | None = None) -> Ints:
    """Return the integers that are the given ones modulo 2**bits, of 2**bits consecutive ones.

    ``lowest``: the first of these; -2**(bits - 1) by default, so that they are of either sign.
    """
    first = -(1 << (bits - 1)) if lowest is None else lowest
    return ((total.astype(np.int64) - first) & ((1 << bits) - 1)) + first


_ATTEMPTS = 64
"""Attempts of a device; each succeeds with probability 1/2 or more, so one in 10**19 needs more."""


def steps_of_unit(norm: int, numbers: int) -> float:
    """Return into how many steps a unit is divided, for vectors of a norm of at most one unit.

    Rounding makes a vector of c steps longer: with probability 1 - exp(-1/2) or more, its squared norm stays
    within c^2 + d / 4 + c + sqrt(d) / 2 for d numbers that are rounded [kairouz2021]. The result is the
    largest c at which that is within the bound, and not above 0 if the bound is too small. `shrunk` leaves
    a unit of so many steps as it is: the squared norm has no larger mean than the first two terms, and no
    larger deviation than the last two.
    """
    spent = numbers / 4 + math.sqrt(numbers) / 2
    return (math.sqrt(max(0.0, 1 + 4 * (norm**2 - spent))) - 1) / 2


_HALVINGS = 12
"""Of the range in which a factor is sought, which is found to 2**-12."""


def shrunk(values: Floats, counts: Ints, norm: int) -> Floats:
    """Return the numbers of every device, in steps, scaled down where rounding makes them too long.

    Where the mean of the squared norm and a deviation together are within the bound, it is kept with a
    probability of 1/2 at least (Cantelli). A device takes the largest factor at which they are that is found:
    what it has decides, and nothing else.

    ``counts``: of numbers by device, shape (devices,).
    """
    from dprec.kernels.rounding import bound_squares

    factors, indptr = np.ones(counts.size), offsets(counts)

    def too_long(devices: Ints, tried: Floats) -> Bools:
        squares = np.empty(devices.size)
        bound_squares(values, indptr, devices, tried, squares)
        return ~(squares <= norm**2)

    everybody = np.arange(counts.size)
    longer = everybody[too_long(everybody, factors)]
    low, high = np.zeros(longer.size), np.ones(longer.size)
    for _ in range(_HALVINGS if longer.size else 0):
        middle = (low + high) / 2
        beyond = too_long(longer, middle)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    factors[longer] = low
    return values * np.repeat(factors, counts)


def rounded_rows(values: Floats, counts: Ints, norm: int, keys: Pairs) -> Ints:
    """Round the numbers of every device, in steps, to integers of a norm within the bound, shape (cells,).

    ``keys``, shape (2, devices): of `rounding_keys`. Raises ValueError for numbers whose own norm is beyond
    the bound.
    """
    from dprec.kernels.rounding import round_within

    squares = np.bincount(rows_of(counts), weights=values**2, minlength=counts.size)
    # Not a number is within no bound.
    if not (squares <= norm**2).all():
        raise ValueError(f"a contribution of a norm of {math.sqrt(squares.max()):.6g} steps, beyond {norm}")
    rounded = np.empty(values.size, dtype=np.int64)
    round_within(values, offsets(counts), norm**2, np.ascontiguousarray(keys), _ATTEMPTS, rounded)
    return rounded
