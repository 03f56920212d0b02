"""Types of arrays, and rows of unequal lengths in one flat array: where they begin.

Users' reports, profiles and candidate lists are all ragged. Their cells are stored flat, by row, and
either ``counts`` (cells of each row) or ``indptr`` (`offsets` of the counts, as in a CSR matrix)
delimits the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Int32s = NDArray[np.int32]
Uint8s = NDArray[np.uint8]
Uint16s = NDArray[np.uint16]
Uint64s = NDArray[np.uint64]
AnyInts = NDArray[np.integer]
AnyArray = NDArray[Any]

IntegerT = TypeVar("IntegerT", bound=np.integer)
ScalarT = TypeVar("ScalarT", bound=np.generic)


def offsets(counts: AnyInts) -> Ints:
    """Return the first cell of every row, followed by the number of cells, shape (rows + 1,)."""
    result = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=result[1:])
    return result


@overload
def rows_of(counts: AnyInts) -> Ints: ...
@overload
def rows_of(counts: AnyInts, dtype: type[IntegerT]) -> NDArray[IntegerT]: ...
def rows_of(counts: AnyInts, dtype: type[np.integer] = np.int64) -> AnyInts:
    """Return the row that each cell belongs to, shape (cells,)."""
    return np.repeat(np.arange(counts.size, dtype=dtype), counts)


def places_of(counts: AnyInts) -> Ints:
    """Return the place of each cell in its own row, from 0, shape (cells,)."""
    return segments(np.zeros(counts.size, dtype=np.int64), counts)


def segments(starts: AnyInts, counts: AnyInts) -> Ints:
    """Return starts[0], starts[0] + 1, ... (counts[0] of them), then those of the next segment."""
    indptr = offsets(counts)
    return np.repeat(starts.astype(np.int64, copy=False) - indptr[:-1], counts) + np.arange(indptr[-1])


def row_maxima(values: Ints, indptr: AnyInts) -> Ints:
    """Return the largest of each row's integers, 0 for an empty row, shape (rows,)."""
    maxima = np.zeros(indptr.size - 1, dtype=np.int64)
    filled = np.flatnonzero(np.diff(indptr))
    if filled.size:
        maxima[filled] = np.maximum.reduceat(values, indptr[:-1][filled])
    return maxima


def blocks(counts: AnyInts, max_cells: int) -> Iterator[slice]:
    """Cut rows into consecutive runs of about ``max_cells`` cells each; no row is cut."""
    cuts = np.flatnonzero(np.diff(np.cumsum(counts) // max_cells)) + 1
    for start, stop in pairwise([0, *cuts.tolist(), counts.size]):
        yield slice(start, stop)


def sum_of_parts(parts: Iterable[Floats], size: int) -> float:
    """Return the sum of so many numbers, which come in parts, with the bits that they have in one array.

    NumPy adds up halves by themselves (of multiples of 8 numbers), and theirs, so that errors stay small.
    """
    return _sum_of_next(np.zeros(0), iter(parts), size)[0]


def _sum_of_next(buffer: Floats, coming: Iterator[Floats], count: int) -> tuple[float, Floats]:
    """Return the sum of so many numbers, first those that are held, and what is held then."""
    if count > _AT_ONCE:
        half = count // 16 * 8
        first, buffer = _sum_of_next(buffer, coming, half)
        second, buffer = _sum_of_next(buffer, coming, count - half)
        return first + second, buffer
    while buffer.size < count:
        buffer = np.concatenate([buffer, next(coming)])
    return float(buffer[:count].sum()), buffer[count:]


def all_between(numbers: Ints, least: float, most: float) -> bool:
    """Return whether all numbers are in a range that holds 0.

    By sizes, np.abs, -2**63 would be: its own is no integer of 64 bits.
    """
    return bool(least <= numbers.min(initial=0) and numbers.max(initial=0) <= most)


def true_of_rows(mask: Bools, indptr: AnyInts) -> Ints:
    """Return how many cells of each row are true, shape (rows,)."""
    counts = np.empty(indptr.size - 1, dtype=np.int64)
    for rows in blocks(np.diff(indptr), _AT_ONCE):
        bounds = indptr[rows.start : rows.stop + 1]
        cumulative = offsets(mask[bounds[0] : bounds[-1]].view(np.uint8))
        counts[rows] = np.diff(cumulative[bounds - bounds[0]])
    return counts


_AT_ONCE = 1 << 18
"""Cells that are added up together."""


@dataclass(frozen=True, eq=False)
class Pieces(Sequence[bytes]):
    """Consecutive pieces of bytes, each of which is made an object of its own only when it is asked for.

    Wherever pieces are accepted, a list of bytes is too: see `of`.
    """

    data: bytes
    bounds: Ints
    """The first byte of every piece, and the byte after the last one; shape (pieces + 1,)."""

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> Pieces:
        """Return any pieces as they are, or end to end if they are objects of their own."""
        if isinstance(pieces, cls):
            return pieces
        return cls(b"".join(pieces), offsets(np.fromiter(map(len, pieces), np.int64, len(pieces))))

    @classmethod
    def joined(cls, parts: Iterable[Sequence[bytes]]) -> Pieces:
        """Return the pieces of all parts."""
        pieces = [cls.of(part) for part in parts]
        sizes = [np.zeros(0, dtype=np.int64), *(part.sizes for part in pieces)]
        return cls(b"".join(part.data for part in pieces), offsets(np.concatenate(sizes)))

    @property
    def sizes(self) -> Ints:
        """Bytes of each, shape (pieces,)."""
        return np.diff(self.bounds)

    @property
    def buffer(self) -> Uint8s:
        """All bytes, shape (bytes,)."""
        return np.frombuffer(self.data, dtype=np.uint8)

    def __len__(self) -> int:
        return self.bounds.size - 1

    def __iter__(self) -> Iterator[bytes]:
        return (self.data[start:end] for start, end in pairwise(self.bounds.tolist()))

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> Pieces: ...
    def __getitem__(self, place: int | slice) -> bytes | Pieces:
        if isinstance(place, slice):
            first, end, step = place.indices(len(self))
            if step != 1:
                return self.chosen(np.arange(len(self))[place])
            bounds = self.bounds[first : max(first, end) + 1]
            return Pieces(self.data[bounds[0] : bounds[-1]], bounds - bounds[0])
        start, end = self.bounds[:-1][place], self.bounds[1:][place]
        return self.data[start:end]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def chosen(self, places: Ints) -> Pieces:
        """Return the pieces at some places."""
        if np.array_equal(places, np.arange(len(self))):
            return self
        return Pieces.of([self[place] for place in places.tolist()])


def find(keys: AnyArray, wanted: AnyArray) -> tuple[Ints, Bools]:
    """Return the place of each wanted value among ascending keys (any if it is none), and which are keys."""
    places = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    present = keys[places] == wanted if keys.size else np.zeros(wanted.size, dtype=np.bool_)
    return places, present


def masked(values: NDArray[ScalarT], mask: Bools) -> NDArray[ScalarT]:
    """Return the values where a mask is true; the places of a part of them at a time take little memory."""
    result, end = np.empty(np.count_nonzero(mask), dtype=values.dtype), 0
    for start in range(0, mask.size, _AT_ONCE):
        part = values[start : start + _AT_ONCE].compress(mask[start : start + _AT_ONCE])
        result[end : end + part.size] = part
        end += part.size
    return result


def different(values: Ints) -> tuple[Ints, Ints]:
    """Return the few different ones of many integers, ascending, and the place of each integer among them."""
    distinct = np.unique(values)
    return distinct, np.searchsorted(distinct, values)


def numbered(values: AnyInts) -> tuple[AnyInts, Ints]:
    """Return the integers, at least 0, that occur, ascending, and the place of each value among them.

    As `numpy.unique` does, but without ordering many values that are not much larger than many.
    """
    largest = int(values.max(initial=0))
    if largest > 2 * values.size:
        return np.unique(values, return_inverse=True)
    occurs = np.zeros(largest + 1, dtype=np.bool_)
    occurs[values] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def order_statistics(values: Floats, places: Ints) -> Floats:
    """Return what stands at some places of all values in ascending order.

    A sample says about where that is, so only the values near it are ordered (Floyd and Rivest, Algorithm
    489: SELECT, 1975).
    """
    sample = np.sort(values[:: -(-values.size // _SAMPLE)])
    bounds = np.concatenate([np.full(_MARGIN, -np.inf), sample, np.full(_MARGIN + 1, np.inf)])
    parts = [values[start : start + _AT_ONCE] for start in range(0, values.size, _AT_ONCE)]
    statistics = np.empty(places.size)
    for number, place in enumerate(places.tolist()):
        at = place * sample.size // values.size
        low, high = bounds[at], bounds[at + 2 * _MARGIN]
        below = sum(int(np.count_nonzero(part < low)) for part in parts)
        window = np.concatenate([part[(part >= low) & (part <= high)] for part in parts])
        if not below <= place < below + window.size:
            below, window = 0, values
        statistics[number] = np.partition(window, place - below)[place - below]
    return statistics


_SAMPLE, _MARGIN = 1 << 16, 1 << 10
"""Values of the sample, and how far off it may be, in places of these: 8 deviations."""


def sortable(values: Floats) -> Uint64s:
    """Return integers in the order of some numbers, equal where these are, shape (values,)."""
    bits = (values + 0.0).view(np.uint64)  # of one zero
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))


class GrowingArray(Generic[ScalarT]):
    """A flat array to which parts are added.

    Large arrays grow where they are: the system moves their pages and copies nothing. So the whole is never
    in memory twice, as it is when parts are kept and joined at the end.
    """

    def __init__(self, dtype: type[ScalarT]) -> None:
        self._room: NDArray[ScalarT] = np.empty(0, dtype=dtype)
        self._size = 0

    def extend(self, part: NDArray[ScalarT]) -> None:
        """Add some values at the end."""
        size = self._size + part.size
        if size > self._room.size:
            # Some room to spare, so that many small parts are not copied over and over.
            self._resize(size + size // 16)
        self._room[self._size : size] = part
        self._size = size

    def take(self) -> NDArray[ScalarT]:
        """Return all values, shape (values,), and begin anew."""
        self._resize(self._size)
        values, self._room, self._size = self._room, np.empty(0, dtype=self._room.dtype), 0
        return values

    def _resize(self, size: int) -> None:
        # No view of the array is ever kept; NumPy would count a debugger's reference as one.
        self._room.resize(size, refcheck=False)
