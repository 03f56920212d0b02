"""Lists of recommended items with their predicted ratings, as they are sent to users.

The number of an item takes as many bits as the catalogue needs, a rating four bytes. Both ends know the
catalogue, so the length of a list follows from its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import sizes_of
from dprec.predictions import NO_ITEM
from dprec.wire.bits import FixedFields

RATING = np.dtype("<f4")
"""How a predicted rating is sent."""


@dataclass(frozen=True)
class ItemListCodec:
    """Encoder and decoder of lists."""

    n_items: int
    """Items of the catalogue, at least 1."""

    def _fields(self, length: int) -> FixedFields:
        return FixedFields(length, self.n_items - 1)

    def sizes(self, lengths: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the bytes of lists of some lengths, shape (lists,)."""
        bits = lengths.astype(np.int64) * self._fields(1).width
        return (bits + 7) // 8 + lengths * RATING.itemsize

    def encode(self, items: NDArray[np.int64], ratings: NDArray[np.float64]) -> list[bytes]:
        """Encode the lists of users.

        Parameters
        ----------
        items : ndarray of int64, shape (users, longest)
            `NO_ITEM` after the last item of a short list.
        ratings : ndarray of float64, shape (users, longest)
            Of no meaning where there is no item.
        """
        lengths = np.count_nonzero(items != NO_ITEM, axis=1)
        lists = [b""] * len(items)
        for length in np.unique(lengths).tolist():
            users = np.flatnonzero(lengths == length)
            numbers = self._fields(length).encode(items[users, :length])
            values = ratings[users, :length].astype(RATING)
            for user, number, value in zip(users.tolist(), numbers, values, strict=True):
                lists[user] = number + value.tobytes()
        return lists

    def decode(self, lists: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Decode the lists of users.

        Returns
        -------
        items : ndarray of int64, shape (users, longest)
            `NO_ITEM` after the last item of a short list.
        ratings : ndarray of float64, shape (users, longest)
            NaN where there is no item.

        Raises
        ------
        ValueError
            When a list is of no possible length, names an item that is not in the catalogue or one twice, or
            has a rating that is not finite.
        """
        sizes = sizes_of(lists)
        lengths = 8 * sizes // (self._fields(1).width + 8 * RATING.itemsize)
        if (self.sizes(lengths) != sizes).any() or (lengths > self.n_items).any():
            raise ValueError("a list of items of no possible length")
        shape = len(lists), int(lengths.max(initial=0))
        items, ratings = np.full(shape, NO_ITEM), np.full(shape, np.nan)
        for length in np.unique(lengths).tolist():
            users = np.flatnonzero(lengths == length)
            fields = self._fields(length)
            whole = [lists[user] for user in users.tolist()]
            valid, numbers = fields.decode([each[: fields.size] for each in whole])
            tails = b"".join(each[fields.size :] for each in whole)
            values = np.frombuffer(tails, dtype=RATING).astype(np.float64).reshape(users.size, length)
            ascending = np.sort(numbers, axis=1)
            if not valid.all() or (ascending[:, 1:] == ascending[:, :-1]).any():
                raise ValueError("a list with an unknown item, or with one item twice")
            if not np.isfinite(values).all():
                raise ValueError("a list with ratings that are not finite")
            items[users, :length], ratings[users, :length] = numbers, values
        return items, ratings
