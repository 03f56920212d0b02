"""What devices are sent about items: factors, a table of numbers, and lists of recommendations.

The table has a row per item. Every column of numbers is rounded to steps of its own, categories are bits, and
everything is compressed column by column (`dprec.wire.tables`). Cautions, where there are any, follow as a
part of their own, rounded up to 255 steps.

The number of an item takes as many bits as the catalogue needs, a rating four bytes. Both ends know the
catalogue, so the length of a list follows from its bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Bools, Floats, Ints, Pieces
from dprec.components import Options, option
from dprec.errors import InputError, SettingError
from dprec.predictions import NO_ITEM
from dprec.wire.symbols import MAX_FIELD_BITS, FixedFields, encode_items
from dprec.wire.tables import (
    MOST_TIMES,
    Reader,
    encode_integers,
    encode_numbers,
    fitted,
    inflated,
    step_of,
)

_WHOLE, _CHANGES = b"\x00", b"\x01"

Factors = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class BroadcastOptions(Options):
    """How item factors are sent to the devices."""

    dtype: Literal["float16", "float32"] = option("Precision of the numbers.", "float32")
    delta: bool = option(
        "Send only the numbers that changed to a device that holds the last round's factors.", False
    )

    def rounded(self, factors: Floats) -> Factors:
        """Return the factors as the devices will see them."""
        limits = np.finfo(self.dtype)
        rounded = np.clip(factors, limits.min, limits.max).astype(f"<f{limits.bits // 8}")
        # Without negative zeros, equal factors have equal bytes, whether sent whole or as changes.
        return rounded + rounded.dtype.type(0)


def encode_broadcast(factors: Factors, held: Factors | None = None) -> bytes:
    """Encode rounded item factors, or only the changes to what the device holds if that is shorter."""
    in_full = _WHOLE + factors.tobytes()
    if held is None or factors.size > 1 << MAX_FIELD_BITS:
        return in_full
    changed = np.flatnonzero(factors != held)
    changes = _CHANGES + encode_items(changed, factors.size) + factors.ravel()[changed].tobytes()
    return changes if len(changes) < len(in_full) else in_full


def decode_broadcast(
    data: bytes, options: BroadcastOptions, shape: tuple[int, int], held: Factors | None
) -> Factors:
    """Decode item factors; raises ValueError, as the device does not trust the server."""
    dtype = np.dtype("<f2" if options.dtype == "float16" else "<f4")
    kind, body = data[:1], data[1:]
    if kind == _WHOLE and len(body) == shape[0] * shape[1] * dtype.itemsize:
        factors = np.frombuffer(body, dtype=dtype).reshape(shape)
    elif kind == _CHANGES and held is not None:
        factors = held.copy()
        if factors.size > 1 << MAX_FIELD_BITS:
            raise ValueError(f"changes of {factors.size} numbers, which are always sent whole")
        read = Reader(body)
        coordinates = read.item_set(factors.size)
        factors.reshape(-1)[coordinates] = read.numbers(dtype, coordinates.size)
        read.end()
    else:
        raise ValueError(f"a broadcast of {len(data)} bytes for {shape[0]} x {shape[1]} factors")
    if not np.isfinite(factors).all():
        raise ValueError("a broadcast with numbers that are not finite")
    return factors


MEANS_STEP, DEVIATIONS_STEP, EMBEDDINGS_STEP, NUMBERS_STEP = 0.1, 0.4, 0.55, 0.7
"""Steps of a table's columns, in root mean squares; benchmarks/choosing/on_device.py judges all."""

FACTORS_STEP = 0.05
"""On the latent rating, whose noise has variance 1."""

_CAUTIOUS_STEPS = 255
"""Of cautions, which are not below 0."""

_NUMBER = np.dtype("<f4")
_WIDTHS = np.dtype(
    [
        ("embeddings", "u1"),
        ("item_factors", "u1"),
        ("numbers", "u1"),
        ("categories", "<u2"),
        ("leanings", "u1"),
    ]
)

_MOST_NUMBERS = 1 << 24
"""Numbers and categories of all items together: a few compressed bytes could fill the memory of a device."""

_MOST_COLUMNS = 2048
"""Numbers and categories of an item: what a device computes for its user grows with them."""

_LARGEST = 1e3
"""Nothing about a latent rating comes near; a larger number could only overflow a device."""


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Biases, embeddings and public data of the items, and where latent ratings change level."""

    cuts: Floats
    """Shape (levels - 1,)."""
    means: Floats
    deviations: Floats
    """Mean and standard deviation of each item bias on the latent rating, including what is not known of
    its factors; shape (items,).
    """
    embeddings: Floats
    """Shape (items, dimensions)."""
    item_factors: Floats
    """Factors of the items, in units in which those of users have variance 1; shape (items, factors)."""
    numbers: Floats
    """Popularity and the catalogue's numbers, standardised; shape (items, numbers)."""
    categories: Bools
    """Shape (items, categories)."""
    leanings: Floats = field(default_factory=lambda: np.zeros((0, 1)))
    """What the mean embedding of a user's items says about its level, and about each of its factors; shape
    (dimensions, 1 + factors), or without rows where it says nothing.
    """
    cautions: Floats | None = None
    """By how much the latent rating of each item is lowered in lists, at least 0; shape (items,)."""
    steps: Floats | None = None
    """Of means, deviations, and columns of embeddings, item factors and numbers, as devices are sent them;
    by default the longest that cost next to nothing.
    """

    @classmethod
    def of_biases(cls, cuts: Floats, means: Floats, deviations: Floats) -> Self:
        """Return a table that says nothing but the biases."""
        nothing = np.zeros((means.size, 0))
        return cls(cuts, means, deviations, nothing, nothing, nothing, nothing.astype(np.bool_))

    def directions(self, reach: float) -> Floats:
        """Return each embedding divided by the root of its squared length plus ``reach``."""
        lengths = (self.embeddings**2).sum(axis=1, keepdims=True)
        return self.embeddings / np.sqrt(lengths + reach)

    @property
    def sent_steps(self) -> Floats:
        """The steps in which devices are sent every column; see `steps`."""
        if self.steps is not None:
            return self.steps
        means, deviations = step_of(self.means, MEANS_STEP), step_of(self.deviations, DEVIATIONS_STEP)
        embeddings = [step_of(column, EMBEDDINGS_STEP) for column in self.embeddings.T]
        factors = np.full(self.item_factors.shape[1], FACTORS_STEP)
        numbers = [step_of(column, NUMBERS_STEP) for column in self.numbers.T]
        return np.array([means, deviations, *embeddings, *factors, *numbers])

    def within(self, most: int | None) -> ItemTable:
        """Return the table in steps in which it has at most so many bytes; those of deviations stay.

        Raises SettingError where even the longest are too short.
        """
        if most is None or len(self.encode()) <= most:
            return self
        steps, longer = self.sent_steps, np.arange(self.sent_steps.size) != 1

        def tried(times: float) -> ItemTable:
            return replace(self, steps=np.where(longer, times * steps, steps))

        fitting = fitted(tried, lambda table: len(table.encode()), most, MOST_TIMES)
        if fitting is None:
            accepted = f"at least {len(tried(MOST_TIMES).encode())}, for what is public of the items, or null"
            raise SettingError("max_bytes_down", str(most), accepted)
        return fitting

    def encode(self) -> bytes:
        """Encode the table; raises InputError when it says more of an item than devices take."""
        parts = self.embeddings, self.item_factors, self.numbers
        wide = 2 + sum(part.shape[1] for part in (*parts, self.categories))
        if wide > _MOST_COLUMNS:
            found = f"{wide} numbers and categories of an item, in a table for devices"
            raise InputError("the catalogue", found, f"at most {_MOST_COLUMNS}")
        widths = tuple(part.shape[1] for part in (*parts, self.categories))
        heading = np.array([(*widths, len(self.leanings))], dtype=_WIDTHS).tobytes()
        heading += np.concatenate([self.cuts, self.leanings.ravel()]).astype(_NUMBER).tobytes()
        moment_steps, of_parts = np.split(self.sent_steps, [2])
        coded = [
            encode_numbers(np.vstack([self.means, self.deviations]), moment_steps),
            encode_numbers(np.column_stack(parts).T, of_parts),
            encode_integers(self.categories.T),
        ]
        table = heading + b"".join(coded)
        return table if self.cautions is None else table + encode_cautions(self.cautions)

    @classmethod
    def decode(cls, data: bytes, *, n_levels: int, n_items: int) -> Self:
        """Decode a table; raises ValueError, as the device does not trust the server."""
        read = Reader(data)
        *widths, n_categories, n_leanings = map(int, read.numbers(_WIDTHS, 1)[0])
        if n_leanings not in (0, widths[0]):
            raise ValueError(f"a table with leanings of {n_leanings} dimensions out of {widths[0]}")
        rows = sum(widths)
        wide = 2 + rows + n_categories
        if wide > _MOST_COLUMNS or wide * n_items > max(_MOST_NUMBERS, 2 * n_items):
            raise ValueError(
                f"a table of {2 + rows} numbers and {n_categories} categories for {n_items} items"
            )
        count = n_levels - 1 + n_leanings * (1 + widths[1])
        cuts, leanings = np.split(read.floats(_NUMBER, count), [n_levels - 1])
        moments, of_both = read.rounded_rows((2, n_items), 2)
        columns, of_parts = read.rounded_rows((rows, n_items), rows)
        bits = read.integers(n_categories * n_items)
        cautions = decode_cautions(read.rest(), n_items)
        if not ((bits == 0) | (bits == 1)).all():
            raise ValueError(f"a table of {len(data)} bytes for {n_items} items")
        # Not a number is in no range.
        means, deviations = moments
        every = moments, columns, cuts, leanings
        if not all(np.abs(part).max(initial=0.0) < _LARGEST for part in every):
            raise ValueError("a table with numbers that are not finite, or far too large")
        if np.any(np.diff(cuts) <= 0) or np.any(deviations < 0):
            raise ValueError("a table with cut points out of order, or negative deviations")
        embeddings, item_factors, numbers = np.split(columns.T.copy(), np.cumsum(widths[:2]), axis=1)
        return cls(
            cuts,
            means,
            deviations,
            embeddings,
            item_factors,
            numbers,
            bits.reshape(n_categories, n_items).T.astype(np.bool_),
            leanings.reshape(n_leanings, 1 + widths[1]),
            cautions,
            np.concatenate([of_both, of_parts]),
        )


def encode_cautions(cautions: Floats) -> bytes:
    """Return the size of a step, and the compressed steps of every item, rounded up."""
    # A step that is rounded down to single precision would not reach the largest.
    step = np.nextafter(np.float32(cautions.max(initial=0.0) / _CAUTIOUS_STEPS), np.float32(np.inf))
    steps = np.ceil(cautions / float(step)).astype(np.uint8)
    return bytes(step.astype(_NUMBER).tobytes()) + zlib.compress(steps.tobytes(), 9)


def decode_cautions(data: bytes, n_items: int) -> Floats | None:
    """Return the cautions of every item, None of no bytes; ValueError if they are not as they must be."""
    if not data:
        return None
    read = Reader(data)
    step = float(read.floats(_NUMBER, 1)[0])
    steps, remainder = inflated(read.rest(), n_items, zlib.MAX_WBITS)
    if remainder or not 0 < step * _CAUTIOUS_STEPS < _LARGEST:
        raise ValueError(f"{len(data)} bytes that are no cautions of {n_items} items")
    return steps.astype(np.float64) * step


RATING = np.dtype("<f4")
"""How a predicted rating is sent."""


@dataclass(frozen=True)
class ItemListCodec:
    """Encoder and decoder of lists."""

    n_items: int
    """Items of the catalogue, at least 1."""

    def _fields(self, length: int) -> FixedFields:
        return FixedFields(length, self.n_items - 1)

    def sizes(self, lengths: AnyInts) -> Ints:
        """Return the bytes of lists of some lengths, shape (lists,)."""
        bits = lengths.astype(np.int64) * self._fields(1).width
        return (bits + 7) // 8 + lengths * RATING.itemsize

    def encode(self, items: Ints, ratings: Floats) -> list[bytes]:
        """Encode the lists of users, shape (users, longest); `NO_ITEM` after the last item of a short one."""
        lengths = np.count_nonzero(items != NO_ITEM, axis=1)
        lists = [b""] * len(items)
        for length in np.unique(lengths).tolist():
            users = np.flatnonzero(lengths == length)
            numbers = self._fields(length).encode(items[users, :length])
            values = ratings[users, :length].astype(RATING)
            for user, number, value in zip(users.tolist(), numbers, values, strict=True):
                lists[user] = number + value.tobytes()
        return lists

    def decode(self, lists: Sequence[bytes]) -> tuple[Ints, Floats]:
        """Return items, with `NO_ITEM` at the ends of short lists, and ratings, shape (users, longest).

        Raises ValueError when a list is of no possible length, names an item that is not in the catalogue or
        one twice, or has a rating that is not finite.
        """
        sizes = Pieces.of(lists).sizes
        lengths = 8 * sizes // (self._fields(1).width + 8 * RATING.itemsize)
        if (self.sizes(lengths) != sizes).any() or (lengths > self.n_items).any():
            raise ValueError("a list of items of no possible length")
        shape = len(lists), int(lengths.max(initial=0))
        items, ratings = np.full(shape, NO_ITEM), np.full(shape, np.nan)
        for length in np.unique(lengths).tolist():
            users = np.flatnonzero(lengths == length)
            fields = self._fields(length)
            of_length = [lists[user] for user in users.tolist()]
            valid, numbers = fields.decode([coded[: fields.size] for coded in of_length])
            tails = b"".join(coded[fields.size :] for coded in of_length)
            values = Reader(tails).floats(RATING, users.size * length).reshape(users.size, length)
            ascending = np.sort(numbers, axis=1)
            if not valid.all() or (ascending[:, 1:] == ascending[:, :-1]).any():
                raise ValueError("a list with an unknown item, or with one item twice")
            if not np.isfinite(values).all():
                raise ValueError("a list with ratings that are not finite")
            items[users, :length], ratings[users, :length] = numbers, values
        return items, ratings
