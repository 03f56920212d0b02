"""Rows of integers in fields of one width, bit-packed: both ends know how many and how wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import sizes_of


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

    def encode(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Return each row as bytes, from numbers of shape (rows, fields)."""
        bits = (rows[:, :, None] >> np.arange(self.width)[::-1]) & 1
        packed = np.packbits(bits.reshape(len(rows), self.fields * self.width).astype(np.uint8), axis=1)
        return [row.tobytes() for row in packed]

    def decode(self, pieces: Sequence[bytes]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Decode rows; one of another size, with a larger number or with padding other than 0 is rejected.

        Returns
        -------
        valid : ndarray of bool, shape (rows,)
        rows : ndarray of int64, shape (rows, fields)
            Zeros where they are rejected.
        """
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
