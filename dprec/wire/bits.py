"""Bit fields of many users at once, the most significant bit first, as in `numpy.packbits`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Bools, Ints, Uint8s, offsets, sizes_of

MAX_FIELD_BITS = 24
"""The widest field that one look-up can read, at whichever bit of a byte it starts."""


def put(bits: Uint8s, positions: Ints, values: AnyInts, widths: AnyInts) -> None:
    """Write each value into the field of its width, of up to `MAX_FIELD_BITS`, at ascending positions."""
    if not positions.size:
        return
    # A field reaches over at most two words: it is moved to where it begins in the first, in both at once.
    moved = values.astype(np.uint64) << (64 - (positions & 31) - widths).astype(np.uint64)
    word = positions >> 5
    firsts = np.concatenate([np.zeros(1, dtype=np.int64), np.flatnonzero(word[1:] != word[:-1]) + 1])
    # Fields do not overlap, so adding up those that begin in the same word never carries.
    sums = np.add.reduceat(moved, firsts)
    start, stop = int(word[0]), int(word[-1]) + 2
    words = np.zeros(stop - start, dtype=np.uint32)
    own = word[firsts] - start
    words[own] = sums >> np.uint64(32)
    words[own + 1] |= sums.astype(np.uint32)
    target = bits[start * 32 : stop * 32]
    target |= np.unpackbits(words.astype(">u4").view(np.uint8), count=target.size)


class BitStream:
    """The bytes of many reports, end to end, readable at any bit, from ``starts`` to before ``ends``."""

    def __init__(self, reports: Sequence[bytes]) -> None:
        bounds = offsets(sizes_of(reports)) * 8
        self.starts, self.ends = bounds[:-1], bounds[1:]
        # Padding after the last byte, so that a look-up of four bytes may start anywhere.
        self._bytes = np.frombuffer(b"".join(reports) + bytes(8), dtype=np.uint8)

    @cached_property
    def _words(self) -> NDArray[np.uint32]:
        """The four bytes from every byte on; after the last byte, a word of zeros."""
        wide = self._bytes.astype(np.uint32)
        words = (wide[:-3] << 24) | (wide[1:-2] << 16) | (wide[2:-1] << 8) | wide[3:]
        return words.astype(np.uint32, copy=False)

    @cached_property
    def ones(self) -> Ints:
        """Positions of the bits that are set, ascending."""
        return np.flatnonzero(np.unpackbits(self._bytes).view(np.bool_))

    def peek(self, positions: Ints, widths: Ints | int) -> Ints:
        """Read fields of up to `MAX_FIELD_BITS` bits; bits past the end of the stream read as 0."""
        words: Ints = self._words[np.minimum(positions >> 3, self._words.size - 1)].astype(np.int64)
        words >>= 32 - (positions & 7) - widths
        words &= (1 << widths) - 1 if isinstance(widths, int) else (1 << widths.astype(np.int64)) - 1
        return words


@dataclass(frozen=True)
class FixedFields:
    """Encoder and decoder of rows of numbers from 0 to ``largest``."""

    fields: int
    """Numbers in a row."""
    largest: int

    @property
    def width(self) -> int:
        """Bits of a field."""
        return self.largest.bit_length()

    @property
    def size(self) -> int:
        """Bytes of a row."""
        return -(-self.fields * self.width // 8)

    def encode(self, rows: Ints) -> list[bytes]:
        """Return each row as bytes, from numbers of shape (rows, fields)."""
        bits = (rows[:, :, None] >> np.arange(self.width)[::-1]) & 1
        packed = np.packbits(bits.reshape(len(rows), self.fields * self.width).astype(np.uint8), axis=1)
        return [row.tobytes() for row in packed]

    def decode(self, pieces: Sequence[bytes]) -> tuple[Bools, Ints]:
        """Return which rows are valid, and all rows, zeros where they are rejected, shape (rows, fields)."""
        fits = sizes_of(pieces) == self.size
        whole = [piece if ok else bytes(self.size) for piece, ok in zip(pieces, fits.tolist(), strict=True)]
        bits = np.unpackbits(
            np.frombuffer(b"".join(whole), dtype=np.uint8).reshape(len(pieces), self.size), axis=1
        )
        used = self.fields * self.width
        powers = 1 << np.arange(self.width, dtype=np.int64)[::-1]
        rows = bits[:, :used].reshape(len(pieces), self.fields, self.width) @ powers
        valid = fits & ~bits[:, used:].any(axis=1) & (rows <= self.largest).all(axis=1)
        return valid, np.where(valid[:, None], rows, 0).astype(np.int64)
