"""What the server tells every device about the items, in one byte per number and fewer.

The table has a row per item: effect, the standard deviation of the effect, and place. Every column is rounded
to 255 steps of its own size, and the columns are compressed one after the other.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEPS = 127
_NUMBER = np.dtype("<f4")


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Effects and places of the items, and where latent ratings change level.

    Parameters
    ----------
    cuts : ndarray, shape (levels - 1,)
    means, deviations : ndarray, shape (items,)
        Mean and standard deviation of each item's effect on the latent rating.
    places : ndarray, shape (items, dimensions)
    """

    cuts: NDArray[np.float64]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    places: NDArray[np.float64]

    def directions(self, reach: float) -> NDArray[np.float64]:
        """Return each place divided by the root of its squared distance from the origin plus ``reach``."""
        lengths = (self.places**2).sum(axis=1, keepdims=True)
        directions: NDArray[np.float64] = self.places / np.sqrt(lengths + reach)
        return directions

    def encode(self) -> bytes:
        """Return the table in bytes."""
        columns = np.column_stack([self.means, self.deviations, self.places]).T
        steps = (np.abs(columns).max(axis=1, initial=0.0) / _STEPS).astype(_NUMBER)
        sizes = np.where(steps > 0, steps, 1).astype(np.float64)[:, None]
        rounded = np.clip(np.rint(columns / sizes), -_STEPS, _STEPS).astype(np.int8)
        numbers: bytes = np.concatenate([self.cuts.astype(_NUMBER), steps]).tobytes()
        return numbers + zlib.compress(rounded.tobytes(), 9)

    @classmethod
    def decode(cls, data: bytes, *, n_levels: int, n_items: int, dimensions: int) -> ItemTable:
        """Read a table; the device does not trust the server.

        Raises
        ------
        ValueError
            When it is malformed, of another size, or holds numbers that are not finite or out of order.
        """
        rows = 2 + dimensions
        head = (n_levels - 1 + rows) * _NUMBER.itemsize
        numbers = np.frombuffer(data[:head], dtype=np.uint8)
        body = _inflated(data[head:], rows * n_items)
        if numbers.size != head or body is None:
            raise ValueError(f"a table of {len(data)} bytes for {n_items} items in {dimensions} dimensions")
        cuts, steps = np.split(numbers.view(_NUMBER).astype(np.float64), [n_levels - 1])
        columns = np.frombuffer(body, dtype=np.int8).reshape(rows, n_items) * steps[:, None]
        # A cut or an effect far beyond any latent rating is no table but an attempt to overflow a device.
        if not (np.abs(columns).max(initial=0.0) < 1e3 and np.abs(cuts).max(initial=0.0) < 1e3):
            raise ValueError("a table with numbers that are not finite, or far too large")
        if np.any(np.diff(cuts) <= 0) or np.any(columns[1] < 0):
            raise ValueError("a table with cut points out of order, or negative deviations")
        return cls(cuts, columns[0], columns[1], columns[2:].T.copy())


def _inflated(data: bytes, size: int) -> bytes | None:
    """Return what was compressed; None if it is not exactly so many bytes."""
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(data, size + 1)
    except zlib.error:
        return None
    return body if len(body) == size and stream.eof and not stream.unused_data else None
