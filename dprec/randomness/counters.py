"""Random draws of the experiment, the server and the network, and the privacy losses of such draws.

**Words.** Philox is keyed by the seed, the purpose of the draws and the round; the counter is the global
index of what the draw belongs to, so any division of the work gives the same bits.

Words become other random values: a number below a limit, a coin, a subset.

**Probabilities that protect** are integers of `DRAWS`, with which the word itself is compared. So the loss is
the logarithm of a ratio of two integers: irrational, unless it is 0. What is reported is the next number
above it, and what is drawn follows from the next one below, so no loss is ever larger than the one asked for.

**Noise in integers**, for a server that adds noise to what it releases. Noise drawn in floating point has
gaps that depend on what it is added to, and they can reveal it (Mironov [mironov2012]). Here a value is
rounded to a grid, the noise is an integer of the grid's steps, drawn exactly (Canonne, Kamath and Steinke
[canonne2020]), and their sum is an integer too: what becomes of it afterwards cannot reveal more. The sampler
compares integers only.

Normal noise in integers is rounded, which hides its last bits and not its gaps: where neighbouring
deviates in floating point are more than a step apart, in the tails and at large deviations, some integers
are never drawn, and a sum tells which contributions it cannot have. So deviates have enough bits wherever
they lie (`fine_deviates`), or a small second one closes the gaps (`normal_steps`), as a sum of several does
(Holohan and Braghin [holohan2021]).
"""

import hashlib
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints, Uint64s

DRAW_BITS = 60
"""Bits of a word that are used to choose a draw."""

DRAWS = 1 << DRAW_BITS
"""Number of equally likely draws; a probability is an integer of them."""


def words(seed: int, purpose: str, start: int, count: int, *, round_index: int = 0) -> Uint64s:
    """Return the random words of ``count`` global indices from ``start`` on, shape (count,).

    They are independent and uniform on all 64 bits (Salmon et al. [salmon2011]). ``seed``: of the experiment,
    the server or the network; see `dprec.randomness.keys`. ``purpose``: what the draws are for; different
    purposes have independent draws.
    """
    block, skipped = divmod(start, 4)
    philox = np.random.Philox(key=_key(seed, purpose, round_index), counter=block)
    return philox.random_raw(skipped + count)[skipped:]


def _key(seed: int, purpose: str, round_index: int) -> Uint64s:
    digest = hashlib.blake2b(f"{seed}/{purpose}/{round_index}".encode(), digest_size=16).digest()
    return np.frombuffer(digest, dtype="<u8")


def normal_steps(random: np.random.Generator, deviation: float, shape: tuple[int, ...]) -> Ints:
    """Return normal noise of a deviation of so many steps, in whole steps without gaps.

    ``deviation``: at most 2**57. The gaps between deviates in floating point, up to 9.5 deviations, are below
    a tenth of what the second deviate deviates by; beyond lies less than one in 10**20. It adds less than
    10**-12 to the variance.
    """
    steps = np.zeros(shape, dtype=np.int64)
    flat = steps.reshape(-1)
    for unit in (deviation, deviation * _FINE):
        for start in range(0, flat.size, _DEVIATES_AT_ONCE):
            part = flat[start : start + _DEVIATES_AT_ONCE]
            part += _nearest(random.standard_normal(part.size) * unit, unit)
    return steps


def _nearest(deviates: Floats, deviation: float) -> Ints:
    """Return the nearest integers, also over the numbers themselves."""
    if deviation > _LARGE:
        return np.rint(deviates).astype(np.int64)
    # Of numbers so far up the last bits are those of an integer, which is faster than a conversion.
    deviates += _BEYOND_FRACTIONS
    whole = deviates.view(np.int64)
    whole -= _BITS_BEYOND
    return whole


_LARGE = 2.0**46
"""A deviation with which no deviate is beyond 2**51."""

_BEYOND_FRACTIONS = 1.5 * 2.0**52
_BITS_BEYOND = np.float64(_BEYOND_FRACTIONS).view(np.int64)


_DEVIATES_AT_ONCE = 1 << 14
"""As many as a processor keeps at hand."""


_FINE = 2.0**-20
"""Deviation of the second deviate, relative to that of the first."""


def fine_deviates(random_words: Uint64s, further_words: Uint64s) -> Floats:
    """Return a normal deviate of two words each, within 12.5 deviations, of 53 bits also in the tails."""
    from scipy.special import ndtri

    upper = random_words >= _HALF
    nearer = np.where(upper, ~random_words, random_words).astype(np.float64)
    further = ((further_words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    deviates: Floats = ndtri((nearer + further) * 2.0**-64)
    return np.where(upper, -deviates, deviates)


_HALF = np.uint64(1 << 63)


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a sequential generator for draws that belong to nobody (splits, initial factors)."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    return generator_of(np.frombuffer(digest, dtype="<u8"))


def generator_of(key: Uint64s) -> np.random.Generator:
    """Return a sequential generator of a key that nobody else has, shape (2,)."""
    return np.random.Generator(np.random.Philox(key=key))


def permutation(seed: int, purpose: str, count: int) -> Int32s:
    """Return 0 to ``count`` - 1, below 2**31, in random order: as of the `generator`, in half the memory."""
    from dprec.kernels.draws import shuffle

    order, remaining, source = np.arange(count, dtype=np.int32), count, generator(seed, purpose).bit_generator
    while remaining > 1:
        remaining = shuffle(order, remaining, source.random_raw(min(remaining, _WORDS_AT_ONCE)))
    return order


_WORDS_AT_ONCE = 1 << 16


def integer_weights(random_words: Uint64s) -> Uint64s:
    """Map words to integers uniform on 0 to `DRAWS` - 1."""
    return random_words >> np.uint64(64 - DRAW_BITS)


def coins(heads: Uint64s, random_words: Uint64s) -> Bools:
    """Return True with probability ``heads / DRAWS``, one coin per word."""
    return integer_weights(random_words) < heads


def uniform_below(limit: int, random_words: Uint64s) -> Ints:
    """Return integers uniform on 0 to ``limit`` - 1, one per word, for limits far below 2**32.

    Probabilities are off by a part of ``limit / 2**32`` at most, and exact where the limit is a power of 2.
    """
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
    draws: Ints = fewest + np.minimum(fewest * growth, DRAWS).astype(np.int64)
    return np.minimum(draws, DRAWS)


def fewest_draws(epsilon: float) -> int:
    """Return the draws of a coin's unlikelier side, `DRAWS` / (e^epsilon + 1) rounded up, at least 1."""
    growth = Decimal(min(epsilon, _LARGEST)).exp(_UPWARDS).next_minus(_UPWARDS)
    return math.ceil(_UPWARDS.divide(Decimal(DRAWS), growth + 1))


def even_share(epsilon: float, parts: int) -> float:
    """Return epsilon / parts, rounded down so far that adding up the parts one by one stays within epsilon.

    Every addition in floating point may round up by 2**-53 of the sum. Infinite epsilons have such shares.
    """
    if math.isinf(epsilon):
        return epsilon
    grown = 1 + Fraction(parts - 1, 2**53)
    share = float(Fraction(epsilon) / parts / grown)
    return share if Fraction(share) * parts * grown <= Fraction(epsilon) else math.nextafter(share, 0.0)


_WORDS = 96
"""Words that a draw of noise may take at first; one in about 10**11 needs more."""

_MOST_BITS = 32
_VALUE_BITS = 52
"""Bits of the largest sensitivity in steps: integers up to here are exact in floating point."""


@dataclass(frozen=True)
class NoiseGrid:
    """A grid, and discrete Laplace noise on it: Pr(z) is proportional to ``exp(-|z| / 2**bits)``."""

    step: float
    """Distance of two points, in units of what the noise is added to."""
    bits: int
    """The noise's scale is 2**bits steps."""

    @classmethod
    def of(cls, sensitivity: float, epsilon: float, rounded: int) -> "NoiseGrid":
        """Return a grid on which the noise costs at most epsilon.

        ``sensitivity``: most by which what is released can move (L1); ``rounded``: how many numbers are
        rounded to the grid: rounding may move each of them by one more step. Raises ValueError when so small
        an epsilon leaves no step for the sensitivity.
        """
        bits = int(np.clip(_VALUE_BITS - math.ceil(math.log2(epsilon)), 1, _MOST_BITS))
        affordable = math.floor(min(epsilon * 2.0**bits, 2.0**_VALUE_BITS)) - rounded
        if affordable < 1:
            raise ValueError(f"epsilon {epsilon:g} leaves no step of {rounded} rounded numbers")
        # Upwards, so that the sensitivity is never more steps than are affordable.
        return cls(math.nextafter(sensitivity / affordable, math.inf), bits)

    @property
    def scale(self) -> float:
        """Scale of the noise, in units of what it is added to."""
        return math.ldexp(self.step, self.bits)

    def loss(self, sensitivity: float, rounded: int) -> float:
        """Return the exact privacy loss of a change of at most a sensitivity, rounded up; see `of`."""
        exact = Fraction(math.ceil(Fraction(sensitivity) / Fraction(self.step)) + rounded, 2**self.bits)
        nearest = float(exact)
        return nearest if nearest >= exact else math.nextafter(nearest, math.inf)

    def values(self, steps: Ints) -> Floats:
        """Return what integers of steps stand for."""
        return steps.astype(np.float64) * self.step

    def on_grid(self, values: Floats) -> Ints:
        """Round values to integers of steps."""
        return np.rint(values / self.step).astype(np.int64)

    def noise(self, seed: int, purpose: str, indices: Ints) -> Ints:
        """Return the noise of some global indices, in steps; see `discrete_laplace`."""
        return discrete_laplace(seed, purpose, indices, self.bits)


def discrete_laplace(seed: int, purpose: str, indices: Ints, bits: int) -> Ints:
    """Draw integers z with Pr(z) proportional to ``exp(-|z| / 2**bits)``, exactly, shape (draws,).

    Canonne, Kamath and Steinke [canonne2020], Algorithms 1 and 2. Every index takes word after word of its
    own, round by round, until its draw is accepted, whatever other indices do.
    """
    from dprec.kernels.discrete_laplace import draw

    noise, rounds = np.empty(indices.size, dtype=np.int64), _WORDS
    while not draw(noise, indices.astype(np.int64), _keys(seed, purpose, rounds), bits):
        rounds *= 2
    return noise


@lru_cache(maxsize=8)
def _keys(seed: int, purpose: str, rounds: int) -> Uint64s:
    """Return the keys of the words of some rounds, shape (rounds, 2)."""
    return np.stack([_key(seed, purpose, round_index) for round_index in range(rounds)])
