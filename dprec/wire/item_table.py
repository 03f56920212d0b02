"""What the server tells every device about the items, in less than one byte per number.

The table has a row per item. Every column of numbers is rounded to 63 steps of its own size, categories are
bits, and everything is compressed column by column.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError

_STEPS = 31
"""Steps to either side of 0; finer ones change no prediction that matters."""

_NUMBER = np.dtype("<f4")
_WIDTHS = np.dtype([("embeddings", "u1"), ("item_factors", "u1"), ("numbers", "u1"), ("categories", "<u2")])

_MOST_NUMBERS = 1 << 24
"""Numbers and categories of all items together: a few compressed bytes could fill the memory of a device."""

_MOST_COLUMNS = 2048
"""Numbers and categories of an item: what a device computes for its user grows with them."""

_LARGEST = 1e3
"""Nothing about a latent rating comes near; a larger number could only overflow a device."""


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Effects, places and public data of the items, and where latent ratings change level."""

    cuts: NDArray[np.float64]
    """Shape (levels - 1,)."""
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    """Mean and standard deviation of each item's bias on the latent rating, including what is not known of
    its traits; shape (items,).
    """
    embeddings: NDArray[np.float64]
    """Shape (items, dimensions)."""
    item_factors: NDArray[np.float64]
    """Factors of the items, in units in which those of users have variance 1; shape (items, factors)."""
    numbers: NDArray[np.float64]
    """Popularity and the catalogue's numbers, standardised; shape (items, numbers)."""
    categories: NDArray[np.bool_]
    """Shape (items, categories)."""

    @classmethod
    def of_biases(
        cls, cuts: NDArray[np.float64], means: NDArray[np.float64], deviations: NDArray[np.float64]
    ) -> ItemTable:
        """Return a table that says nothing but the effects."""
        nothing = np.zeros((means.size, 0))
        return cls(cuts, means, deviations, nothing, nothing, nothing, nothing.astype(np.bool_))

    def directions(self, reach: float) -> NDArray[np.float64]:
        """Return each place divided by the root of its squared distance from the origin plus ``reach``."""
        lengths = (self.embeddings**2).sum(axis=1, keepdims=True)
        directions: NDArray[np.float64] = self.embeddings / np.sqrt(lengths + reach)
        return directions

    def encode(self) -> bytes:
        """Return the table in bytes.

        Raises
        ------
        InputError
            When it says more of an item than devices take.
        """
        parts = self.embeddings, self.item_factors, self.numbers
        wide = 2 + sum(part.shape[1] for part in (*parts, self.categories))
        if wide > _MOST_COLUMNS:
            found = f"{wide} numbers and categories of an item, in a table for devices"
            raise InputError("the catalogue", found, f"at most {_MOST_COLUMNS}")
        columns = np.column_stack([self.means, self.deviations, *parts]).T
        steps = (np.abs(columns).max(axis=1, initial=0.0) / _STEPS).astype(_NUMBER)
        sizes = np.where(steps > 0, steps, 1).astype(np.float64)[:, None]
        rounded = np.clip(np.rint(columns / sizes), -_STEPS, _STEPS).astype(np.int8)
        widths = np.array([tuple(part.shape[1] for part in (*parts, self.categories))], dtype=_WIDTHS)
        bits = np.packbits(self.categories.T)
        numbers: bytes = np.concatenate([self.cuts.astype(_NUMBER), steps]).tobytes()
        return widths.tobytes() + numbers + zlib.compress(rounded.tobytes() + bits.tobytes(), 9)

    @classmethod
    def decode(cls, data: bytes, *, n_levels: int, n_items: int) -> ItemTable:
        """Read a table; the device does not trust the server.

        Raises
        ------
        ValueError
            When it is malformed, of another size, or holds numbers that are not finite or out of order.
        """
        what = f"a table of {len(data)} bytes for {n_items} items"
        start = _WIDTHS.itemsize
        if len(data) < start:
            raise ValueError(what)
        widths = [int(width) for width in np.frombuffer(data[:start], dtype=_WIDTHS)[0]]
        rows, n_categories = 2 + sum(widths[:-1]), widths[-1]
        wide = rows + n_categories
        if wide > _MOST_COLUMNS or wide * n_items > max(_MOST_NUMBERS, 2 * n_items):
            raise ValueError(f"a table of {rows} numbers and {n_categories} categories for {n_items} items")
        head = (n_levels - 1 + rows) * _NUMBER.itemsize
        heading = np.frombuffer(data[start : start + head], dtype=np.uint8)
        of_numbers, of_bits = rows * n_items, -(-n_categories * n_items // 8)
        body = _inflated(data[start + head :], of_numbers + of_bits)
        if heading.size != head or body is None:
            raise ValueError(what)
        cuts, steps = np.split(heading.view(_NUMBER).astype(np.float64), [n_levels - 1])
        columns = np.frombuffer(body[:of_numbers], dtype=np.int8).reshape(rows, n_items) * steps[:, None]
        if not (np.abs(columns).max(initial=0.0) < _LARGEST and np.abs(cuts).max(initial=0.0) < _LARGEST):
            raise ValueError("a table with numbers that are not finite, or far too large")
        if np.any(np.diff(cuts) <= 0) or np.any(columns[1] < 0):
            raise ValueError("a table with cut points out of order, or negative deviations")
        bits = np.unpackbits(np.frombuffer(body[of_numbers:], dtype=np.uint8), count=n_categories * n_items)
        embeddings, item_factors, numbers = np.split(columns[2:].T.copy(), np.cumsum(widths[:2]), axis=1)
        return cls(
            cuts,
            columns[0],
            columns[1],
            embeddings,
            item_factors,
            numbers,
            bits.reshape(n_categories, n_items).T.astype(np.bool_),
        )


def _inflated(data: bytes, size: int) -> bytes | None:
    """Return what was compressed; None if it is not exactly so many bytes."""
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(data, size + 1)
    except zlib.error:
        return None
    return body if len(body) == size and stream.eof and not stream.unused_data else None
