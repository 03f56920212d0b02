"""Laplace noise in integers, for a server that adds noise to what it releases.

Noise drawn in floating point has gaps that depend on what it is added to, and they can reveal it
(Mironov [mironov2012]). Here a value is rounded to a grid, the noise is an integer of the grid's steps,
drawn exactly (Canonne, Kamath and Steinke [canonne2020]), and their sum is an integer too: what
becomes of it afterwards cannot reveal more. The sampler compares integers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dprec.arrays import Bools, Floats, Ints, Uint64s
from dprec.randomness.counters import words

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
    def of(cls, sensitivity: float, epsilon: float, rounded: int) -> NoiseGrid:
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
    own, round by round, until its draw is accepted, whatever other indices do; best when they lie close
    together.
    """
    result = np.zeros(indices.size, dtype=np.int64)
    draws = _Draws.begin(indices.size, bits)
    taken = 0
    while draws.place.size:
        waiting = indices[draws.place]
        start = int(waiting.min())
        stretch = words(seed, purpose, start, int(waiting.max()) - start + 1, round_index=taken)
        draws.take(stretch[waiting - start])
        finished = draws.stage == _DONE
        result[draws.place[finished]] = draws.signed[finished]
        draws = draws.select(~finished)
        taken += 1
    return result


_REMAINDER, _ACCEPTED, _WHOLE, _SIGN, _DONE = range(5)
"""Stages of a draw: its last bits, whether these are accepted, the rest of its bits, and its sign."""


@dataclass(eq=False)
class _Draws:
    """Draws that are not finished; their absolute values are remainder + whole * 2**bits.

    A coin that shows heads with probability exp(-p) is tossed as coins of p / 1, p / 2 and so on until
    the first tails: it shows heads if that toss was an odd one. `toss` is the number of the next toss.
    """

    bits: int
    place: Ints
    stage: Ints
    remainder: Ints
    whole: Ints
    toss: Ints
    negative: Bools

    @classmethod
    def begin(cls, count: int, bits: int) -> _Draws:
        stage = np.full(count, _REMAINDER)
        zeros = np.zeros(count, dtype=np.int64)
        return cls(bits, np.arange(count), stage, zeros, zeros, zeros + 1, zeros > 0)

    def select(self, chosen: Bools) -> _Draws:
        """Return some of the draws."""
        return _Draws(
            self.bits,
            self.place[chosen],
            self.stage[chosen],
            self.remainder[chosen],
            self.whole[chosen],
            self.toss[chosen],
            self.negative[chosen],
        )

    @property
    def signed(self) -> Ints:
        """The draws, with their signs."""
        magnitude = self.remainder + (self.whole << self.bits)
        return np.where(self.negative, -magnitude, magnitude)

    def take(self, random_words: Uint64s) -> None:
        """Let every draw use a word: the high half as a number below 2**bits, the low for 1 in `toss`."""
        high = (random_words >> np.uint64(32)).astype(np.int64)
        below = high >> (32 - self.bits)
        scaled = (random_words & np.uint64(2**32 - 1)) * self.toss.astype(np.uint64)
        # Of the 2**32 low halves, those are not used that would make one number likelier than another.
        fair = (scaled & np.uint64(2**32 - 1)).astype(np.int64) >= 2**32 % self.toss
        one_in = scaled < np.uint64(2**32)
        new, accepting, counting, signing = (
            fair & (self.stage == stage) for stage in (_REMAINDER, _ACCEPTED, _WHOLE, _SIGN)
        )
        heads = one_in & (counting | (below < self.remainder))
        tails, odd = (accepting | counting) & ~heads, self.toss % 2 == 1
        zero = (self.remainder == 0) & (self.whole == 0)
        negative = signing & (high >= 2**31)
        self.remainder = np.where(new, below, self.remainder)
        self.whole = self.whole + (counting & tails & odd)
        # A coin of exp(-1) begins with a toss that shows heads for certain, which is left out.
        self.toss = np.where(tails, 2, np.where(new, 1, self.toss + (heads & (accepting | counting))))
        self.negative = negative
        self.stage = np.select(
            [new, accepting & tails & odd, accepting & tails, counting & tails & ~odd, signing],
            [_ACCEPTED, _WHOLE, _REMAINDER, _SIGN, np.where(negative & zero, _REMAINDER, _DONE)],
            self.stage,
        )
