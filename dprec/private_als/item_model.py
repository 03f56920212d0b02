"""What is public of the items between the rounds, and how it is sent to the devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.private_als.device import FactorizationOptions
from dprec.private_als.statistics import UNIT_WEIGHT, StatisticsLayout

_NUMBER, _WEIGHT = np.dtype("<f4"), np.dtype("<u2")
_HEADER = 2
"""Numbers before those of the items: the mean and the gain."""


@dataclass(frozen=True, eq=False)
class ItemModel:
    """What devices are sent."""

    mean: float
    """Of all ratings."""
    biases: NDArray[np.float64]
    """What is added to the mean; shape (items,)."""
    weights: NDArray[np.int64]
    """From 1 to `UNIT_WEIGHT` for items with factors, 0 for the others; shape (items,)."""
    factors: NDArray[np.float64]
    """In the order of the items; shape (items with factors, rank)."""
    gain: float = 1.0
    """What devices multiply their own factors by before they clip them."""

    @classmethod
    def begin(cls, n_items: int, rank: int, middle: float) -> ItemModel:
        """Return what is public before the first round: the middle of the scale."""
        nothing = np.zeros(n_items, dtype=np.int64)
        return cls(middle, np.zeros(n_items), nothing, np.zeros((0, rank)))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.biases.size

    @property
    def popular(self) -> NDArray[np.bool_]:
        """Which items have factors, shape (items,)."""
        return self.weights > 0

    @property
    def all_factors(self) -> NDArray[np.float64]:
        """The factors of all items, 0 for those without, shape (items, rank)."""
        factors = np.zeros((self.n_items, self.factors.shape[1]))
        factors[self.popular] = self.factors
        return factors

    def layout(self, options: FactorizationOptions, round_index: int, span: float) -> StatisticsLayout:
        """Return what is summed in a round.

        Later rounds of item biases need no counts: these are of the same ratings, or of as many chosen at
        random, so those of the first round serve all, and what was released costs nothing to use again. Gram
        matrices of factors change with the users' factors, so every round releases them.

        Parameters
        ----------
        round_index : int
            From 1.
        span : float
            Of the rating scale.
        """
        limit = options.ratings_per_user if options.weights == "uniform" else None
        clip = (options.rating_clip if round_index == 1 else options.residual_clip) * span
        if round_index <= options.bias_rounds:
            everything = np.full(self.n_items, UNIT_WEIGHT)
            share = options.matrix_share if round_index == 1 else 0.0
            return StatisticsLayout(everything, 0, 1.0, clip, share, limit)
        own = self.weights[self.popular]
        weights = own if options.weights == "adaptive" else np.full_like(own, UNIT_WEIGHT)
        return StatisticsLayout(weights, options.rank, 1.0, clip, options.matrix_share, limit)

    def encode(self) -> bytes:
        """Return the bytes that are sent to the devices."""
        numbers = np.concatenate([[self.mean, self.gain], self.biases]).astype(_NUMBER)
        return (
            numbers.tobytes()
            + self.weights.astype(_WEIGHT).tobytes()
            + self.factors.astype(_NUMBER).tobytes()
        )

    @classmethod
    def decode(cls, data: bytes, n_items: int, rank: int) -> ItemModel:
        """Read what `encode` returned; devices do not trust the server.

        Raises
        ------
        ValueError
            When it is of another length, or holds numbers that are out of range or not finite.
        """
        first = (_HEADER + n_items) * _NUMBER.itemsize
        second = first + n_items * _WEIGHT.itemsize
        if len(data) < second:
            raise ValueError(f"{len(data)} bytes for {n_items} items")
        weights = np.frombuffer(data[first:second], dtype=_WEIGHT).astype(np.int64)
        popular = int((weights > 0).sum())
        if len(data) != second + popular * rank * _NUMBER.itemsize:
            raise ValueError(f"{len(data)} bytes for {n_items} items, {popular} of them with {rank} factors")
        numbers = np.frombuffer(data[:first], dtype=_NUMBER).astype(np.float64)
        factors = np.frombuffer(data[second:], dtype=_NUMBER).astype(np.float64).reshape(popular, rank)
        if not (np.isfinite(numbers).all() and np.isfinite(factors).all()):
            raise ValueError("item factors with numbers that are not finite")
        if numbers[1] < 0 or (weights > UNIT_WEIGHT).any():
            raise ValueError("weights of items out of range")
        return cls(float(numbers[0]), numbers[_HEADER:], weights, factors, float(numbers[1]))
