"""Vectors turned at random: numbers become about equally large (Kairouz, Liu and Steinke [kairouz2021]).

Signs are drawn in public, and the Walsh-Hadamard matrix mixes the numbers: both leave the norm as it is. A
single large number is spread over all, so that a sum of such vectors needs fewer bits for each number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.randomness import generator


@dataclass(frozen=True, eq=False)
class Rotation:
    """A rotation that everybody knows."""

    size: int
    """Numbers of a vector."""
    signs: NDArray[np.float64]
    """1 or -1; as many as the next power of two; shape (padded,)."""

    @classmethod
    def of(cls, size: int, seed: int, purpose: str) -> Rotation:
        """Draw the signs."""
        random = generator(seed, purpose)
        return cls(size, random.choice([-1.0, 1.0], padded_size(size)))

    def turned(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return vectors after the rotation, shape (rows, padded), from shape (rows, size)."""
        padded = np.zeros((len(rows), self.signs.size))
        padded[:, : self.size] = rows * self.signs[: self.size]
        return _mixed(padded)

    def turned_back(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return vectors before the rotation, shape (rows, size)."""
        return (_mixed(rows.copy()) * self.signs)[:, : self.size]


def padded_size(size: int) -> int:
    """Return the next power of two."""
    return 1 << max(0, size - 1).bit_length()


def largest_number(norm: float, size: int, probability: float) -> float:
    """Return what no number of a turned vector exceeds in absolute value, except with a small probability.

    A number is a sum of all with random signs, so Hoeffding's inequality bounds it; the bound holds for one
    number of one vector that does not depend on the signs.

    Parameters
    ----------
    norm : float
        Of the vector.
    size : int
        Numbers of the turned vector.
    """
    return norm * min(1.0, math.sqrt(2 * math.log(2 / probability) / size))


def _mixed(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply rows by the orthogonal Walsh-Hadamard matrix, in place."""
    count, size = rows.shape
    half = 1
    while half < size:
        pairs = rows.reshape(count, -1, 2, half)
        low, high = pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]
        pairs[:, :, 0], pairs[:, :, 1] = low, high
        half *= 2
    rows /= math.sqrt(size)
    return rows
