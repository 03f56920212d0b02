"""Bit fields of many users at once: the most significant bit first, as in `numpy.packbits`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dprec.ragged import offsets, sizes_of

MAX_FIELD_BITS = 24
"""The widest field that one look-up can read, at whichever bit of a byte it starts."""


def put(
    bits: NDArray[np.uint8],
    positions: NDArray[np.int64],
    values: NDArray[np.integer],
    widths: NDArray[np.integer],
) -> None:
    """Write each value into the field of its width that begins at its position, in place.

    The fields must hold zeros, and each value must fit into its field.
    """
    widest = int(widths.max(initial=0))
    aligned = values.astype(np.int64) << (widest - widths)
    for bit in range(widest):
        ones = np.flatnonzero((aligned >> (widest - 1 - bit)) & 1 != 0)
        bits[positions[ones] + bit] = 1


class BitStream:
    """The bytes of many reports, end to end, readable at any bit.

    Parameters
    ----------
    reports : sequence of bytes

    Attributes
    ----------
    starts, ends : ndarray of int64, shape (reports,)
        First bit of each report, and the bit after its last.
    """

    def __init__(self, reports: Sequence[bytes]) -> None:
        bounds = offsets(sizes_of(reports)) * 8
        self.starts, self.ends = bounds[:-1], bounds[1:]
        # Padding after the last byte, so that a look-up of four bytes may start anywhere.
        self._bytes = np.frombuffer(b"".join(reports) + bytes(8), dtype=np.uint8)

    @cached_property
    def _words(self) -> NDArray[np.uint32]:
        wide = self._bytes.astype(np.uint32)
        words = (wide[:-3] << 24) | (wide[1:-2] << 16) | (wide[2:-1] << 8) | wide[3:]
        return words.astype(np.uint32, copy=False)

    @cached_property
    def ones(self) -> NDArray[np.int64]:
        """Positions of the bits that are set, ascending."""
        return np.flatnonzero(np.unpackbits(self._bytes).view(np.bool_))

    def peek(self, positions: NDArray[np.int64], widths: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Read fields of up to `MAX_FIELD_BITS` bits; bits past the end of the stream read as 0."""
        past = positions >> 3 >= self._words.size
        words = self._words[np.where(past, self._words.size - 1, positions >> 3)].astype(np.int64)
        fields = (words >> (32 - (positions & 7) - widths)) & ((1 << np.asarray(widths, dtype=np.int64)) - 1)
        return np.where(past, 0, fields)
