"""Items hashed to fewer places with random signs: a count sketch of one row (Charikar et al. [charikar2002]).

What other items of its place add to an item is right on average, as its sign is random, and small where they
have few ratings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.randomness import generator


@dataclass(frozen=True, eq=False)
class CountSketch:
    """A sketch that everybody knows."""

    places: NDArray[np.int64]
    """Where each item is counted, from 0 to ``size`` - 1; shape (items,)."""
    signs: NDArray[np.int64]
    """1 or -1; shape (items,)."""
    size: int

    @classmethod
    def of(cls, items: int, size: int, seed: int, purpose: str) -> CountSketch:
        """Draw places, as many items in each as can be, and signs."""
        random = generator(seed, purpose)
        places = random.permutation(np.arange(items) % size)
        return cls(places, random.choice([-1, 1], items), size)

    @property
    def most_items(self) -> int:
        """Most items that share a place."""
        return int(np.bincount(self.places, minlength=self.size).max())

    def estimates(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers of every item, shape (items, width), from those of every place."""
        estimates: NDArray[np.float64] = totals[self.places] * self.signs[:, None]
        return estimates
