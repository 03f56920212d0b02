"""Bounds that devices prove to keep, though nobody sees what they add: on each number, and on a norm.

Nobody sees the parts of a masked sum, so one device can add any number to it, unless it has to prove what it
adds: that each number of its vector is within a range, and so is the vector's norm, as in ACORN (Bell et al.
[bell2023]). The vectors that are proved about have a share of the noise in them. The bounds leave room for
that, by the inequalities of Chernoff and Bernstein: an honest device is beyond them with a probability of
`BEYOND_BOUNDS` at most. That depends on what it holds, and everybody sees whose proof fails, so the
accounting sets a part of delta aside for it (`dprec.accounting.skellam_epsilon`). Malicious users have that
room too, unless it is proved as well that noise was drawn, from coins that are tossed together (as Biswas and
Cormode [biswas2023] do for counts).
"""

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from dprec.arrays import Ints
from dprec.secure_aggregation import BEYOND_BOUNDS, skellam_tail

Proofs = Literal["none", "norm", "norm-and-noise"]
"""What devices prove of what they add to a masked sum: nothing, its bounds, or also that noise is drawn."""

_BYTES = 0.1
"""Of the bytes of a masked vector, as published for ranges and norms; for noise nothing is published."""

_BEYOND_ONE = BEYOND_BOUNDS / 3
"""Most probability with which noise is beyond one of three bounds: of numbers, and two of their norm."""


@dataclass(frozen=True)
class Bounds:
    """What a vector of integers has to keep to."""

    largest: float
    """Of the absolute values of its numbers."""
    squares: float
    """Of the sum of their squares."""

    @classmethod
    def around(cls, largest: int, norm: int, size: int, variance: float) -> Self:
        """Return the bounds of vectors of so many numbers with Skellam noise of a variance in each.

        ``largest``, ``norm``: of a number and of a vector before the noise.
        """
        of_number = skellam_tail(variance, _BEYOND_ONE / size)
        of_squares = _deviating(size * (2 * variance**2 + variance), of_number**2)
        of_products = _deviating(variance * norm**2, float(largest))
        squares = norm**2 + size * variance + of_squares + 2 * of_products
        return cls(largest + of_number, squares)

    def hold(self, vector: Ints) -> bool:
        """Return whether a vector keeps to them."""
        # Numbers within the largest have squares that floating point adds up well.
        in_range = int(np.abs(vector).max(initial=0)) <= self.largest
        return in_range and float((vector.astype(np.float64) ** 2).sum()) <= self.squares

    def filled(self, signs: Ints) -> Ints:
        """Return a vector that fills them with numbers that are alike, of some signs or 0.

        Where that leaves less than 1 for each, some of the numbers are 1.
        """
        numbers = max(int(np.count_nonzero(signs)), 1)
        alike = max(1, math.floor(min(self.largest, math.sqrt(self.squares / numbers))))
        return signs * alike * (np.cumsum(signs != 0) <= self.squares / alike**2)

    @property
    def of_one_number(self) -> float:
        """The largest that a number can be in a vector that keeps to them."""
        return min(math.floor(self.largest), math.sqrt(self.squares))


def proof_bytes(vector: int) -> int:
    """Return the bytes of the proofs about a masked vector of so many bytes."""
    return math.ceil(_BYTES * vector)


def _deviating(variance: float, largest: float) -> float:
    """Return what a sum of independent deviates exceeds with a small probability (Bernstein)."""
    logarithm = math.log(1 / _BEYOND_ONE)
    linear = logarithm * largest / 3 if variance else 0.0
    return linear + math.sqrt(linear**2 + 2 * variance * logarithm)
