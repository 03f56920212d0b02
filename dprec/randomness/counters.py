"""Random draws of the experiment, the server and the network, and the privacy losses of such draws.

Philox is keyed by the seed, the purpose of the draws and the round; the counter is the global index of what
the draw belongs to, so any division of the work gives the same bits.

This module also turns words into other random values (a number below a limit, a coin, a subset). If privacy
depends on a probability, it is an integer of `DRAWS`, with which the word itself is compared.

A probability that protects is an integer of `DRAWS`, so the loss is the logarithm of a
ratio of two integers: irrational, unless it is 0. What is reported is the next number above it, and
what is drawn follows from the next one below, so no loss is ever larger than the one asked for.
"""

import hashlib
import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints, Uint64s

DRAW_BITS = 60
"""Bits of a word that are used to choose a draw."""

DRAWS = 1 << DRAW_BITS
"""Number of equally likely draws; a probability is an integer of them."""

_WORDS_PER_BLOCK = 4


def words(seed: int, purpose: str, start: int, count: int, *, round_index: int = 0) -> Uint64s:
    """Return the random words of ``count`` global indices from ``start`` on, shape (count,).

    They are independent and uniform on all 64 bits (Salmon et al. [salmon2011]). ``seed``: of the experiment,
    the server or the network; see `dprec.randomness.keys`. ``purpose``: what the draws are for; different
    purposes have independent draws.
    """
    digest = hashlib.blake2b(f"{seed}/{purpose}/{round_index}".encode(), digest_size=16).digest()
    block, skipped = divmod(start, _WORDS_PER_BLOCK)
    philox = np.random.Philox(key=np.frombuffer(digest, dtype="<u8"), counter=block)
    return philox.random_raw(skipped + count)[skipped:]


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a sequential generator for draws that belong to nobody (splits, initial factors)."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest, dtype="<u8")))


def integer_weights(random_words: Uint64s) -> Uint64s:
    """Map words to integers uniform on 0 to `DRAWS` - 1."""
    return random_words >> np.uint64(64 - DRAW_BITS)


def coins(heads: Uint64s, random_words: Uint64s) -> Bools:
    """Return True with probability ``heads / DRAWS``, one coin per word."""
    return integer_weights(random_words) < heads


def uniform_below(limit: int, random_words: Uint64s) -> Ints:
    """Return integers uniform on 0 to ``limit`` - 1, up to 2**31, one per word."""
    return ((random_words >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32)).astype(np.int64)


def uniforms(random_words: Uint64s) -> Floats:
    """Map words to floating-point numbers uniform on [0, 1), 53 bits each."""
    return (random_words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def categories(cumulative: Floats, draws: Floats) -> Ints:
    """Return the category of each draw; the number of categories if it is past the last sum."""
    return np.searchsorted(cumulative, draws, side="right")


def subset(size: int, random_words: Uint64s) -> Bools:
    """Choose ``size`` of all indices, all subsets equally likely; return a mask, shape (words,)."""
    chosen = np.ones(random_words.size, dtype=np.bool_)
    chosen[np.argsort(random_words, kind="stable")[size:]] = False
    return chosen


def shuffled_within(groups: AnyInts, random_words: Uint64s) -> Ints:
    """Return all indices ordered by group, in random order within a group."""
    return np.lexsort((random_words, groups))


_UPWARDS = Context(prec=50, rounding=ROUND_CEILING)
_MARGIN = 1 - 2.0**-49
"""Factor that covers the rounding errors of a few operations in floating point."""

_LARGEST = 50.0
"""More than the logarithm of `DRAWS`: from here on, every ratio of draws is within the budget."""


def loss_of_draws(most: int, fewest: int) -> float:
    """Return log(most / fewest), rounded up to the next float; infinite for 0 of the fewest."""
    if most == fewest:
        return 0.0
    if fewest == 0:
        return math.inf
    # The logarithm of a decimal number is off by half a unit of its last digit at most.
    above = _UPWARDS.divide(Decimal(most), Decimal(fewest)).ln(_UPWARDS).next_plus(_UPWARDS)
    nearest = float(above)
    return nearest if Decimal(nearest) >= above else math.nextafter(nearest, math.inf)


def most_draws(fewest: Ints, epsilon: float) -> Ints:
    """Return the most draws that lose no more than epsilon against the fewest, shape (answers,).

    They are e^epsilon times the fewest, rounded down, or `DRAWS` if that is less.
    """
    if math.isinf(epsilon):
        return np.full_like(fewest, DRAWS)
    # The difference is rounded and not the product, so that a small epsilon keeps its precision.
    growth = math.expm1(min(epsilon, _LARGEST)) * _MARGIN
    most: Ints = fewest + np.minimum(fewest * growth, DRAWS).astype(np.int64)
    return np.minimum(most, DRAWS)


def fewest_draws(epsilon: float) -> int:
    """Return the draws of a coin's unlikelier side, `DRAWS` / (e^epsilon + 1) rounded up, at least 1."""
    growth = Decimal(min(epsilon, _LARGEST)).exp(_UPWARDS).next_minus(_UPWARDS)
    return math.ceil(_UPWARDS.divide(Decimal(DRAWS), growth + 1))


def even_share(epsilon: float, parts: int) -> float:
    """Return epsilon / parts, rounded down so far that adding up the parts one by one stays within epsilon.

    Every addition in floating point may round up by 2**-53 of the sum.
    """
    grown = 1 + Fraction(parts - 1, 2**53)
    share = float(Fraction(epsilon) / parts / grown)
    return share if Fraction(share) * parts * grown <= Fraction(epsilon) else math.nextafter(share, 0.0)
