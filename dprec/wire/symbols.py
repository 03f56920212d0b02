"""Fields of bits, items and symbols on the wire, written and read for many users at once.

The items of a report, coded as gaps or as a bitmap, whichever is shorter.

A non-empty set begins with a field of 5 bits: the Rice parameter k of the gaps, or 31 for a bitmap.
Gaps are laid out as in the Elias-Fano code, first all quotients in unary and then all remainders in k
bits each, but they are differences: with the best k tried, this is never longer than Elias-Fano, and
both halves can be read without walking the stream.

Sender and receiver build it from the same public distribution of the symbols. If that is nearly
uniform, the code is plain bit packing; if it is concentrated on a few symbols (clamped noise on the
ends of the scale, "not rated" in a full row), the code costs little more than the entropy.
"""

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import (
    AnyInts,
    Bools,
    Floats,
    Int32s,
    Ints,
    Uint8s,
    Uint16s,
    cut,
    offsets,
    places_of,
    segments,
    sizes_of,
)
from dprec.channel import Channel

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


_PARAMETER_BITS = 5
_BITMAP = 31


def count_bits(n_items: int) -> int:
    """Return the width of the field that holds a number of items from 1 to ``n_items``."""
    return max(1, (n_items - 1).bit_length())


@dataclass(frozen=True, eq=False)
class ItemSets:
    """The item sets of a partition, prepared for writing, with the bits of each, 0 for an empty one."""

    items: Ints
    gaps: Ints
    indptr: Ints
    parameters: Ints
    lengths: Ints
    n_items: int

    @classmethod
    def plan(cls, indptr: Ints, items: AnyInts, n_items: int) -> Self:
        """Choose the code of every set: the shortest of a bitmap and gaps with three parameters."""
        counts = np.diff(indptr)
        filled = np.flatnonzero(counts)
        wide = items.astype(np.int64)
        gaps = np.diff(wide, prepend=-1) - 1
        gaps[indptr[:-1][filled]] = wide[indptr[:-1][filled]]
        parameters = np.zeros(counts.size, dtype=np.int64)
        lengths = np.zeros(counts.size, dtype=np.int64)
        if not filled.size:
            return cls(wide, gaps, indptr, parameters, lengths, n_items)
        starts, sizes = indptr[:-1][filled], counts[filled]
        ideal = np.log2(np.maximum(1.0, n_items / sizes)).astype(np.int64)
        header = _PARAMETER_BITS + count_bits(n_items)
        shortest = np.full(filled.size, _PARAMETER_BITS + n_items)
        choice = np.full(filled.size, _BITMAP)
        for step in (-1, 0, 1):
            parameter = np.clip(ideal + step, 0, MAX_FIELD_BITS)
            quotients = np.add.reduceat(gaps >> np.repeat(parameter, sizes), starts)
            length = header + quotients + sizes * (1 + parameter)
            better = length < shortest
            shortest[better], choice[better] = length[better], parameter[better]
        parameters[filled], lengths[filled] = choice, shortest
        return cls(wide, gaps, indptr, parameters, lengths, n_items)

    def write(self, bits: Uint8s, positions: Ints) -> None:
        """Write each set into ``bits``, starting at its position."""
        counts = np.diff(self.indptr)
        filled = counts > 0
        put(bits, positions[filled], self.parameters[filled], np.full(int(filled.sum()), _PARAMETER_BITS))
        as_bitmap = filled & (self.parameters == _BITMAP)
        cells = segments(self.indptr[:-1][as_bitmap], counts[as_bitmap])
        bits[np.repeat(positions[as_bitmap] + _PARAMETER_BITS, counts[as_bitmap]) + self.items[cells]] = 1
        as_gaps = filled & ~as_bitmap
        self._write_gaps(bits, positions[as_gaps] + _PARAMETER_BITS, as_gaps, counts[as_gaps])

    def _write_gaps(self, bits: Uint8s, positions: Ints, which: Bools, counts: Ints) -> None:
        if not counts.size:
            return
        width = count_bits(self.n_items)
        put(bits, positions, counts - 1, np.full(counts.size, width))
        gaps = self.gaps[segments(self.indptr[:-1][which], counts)]
        parameters = np.repeat(self.parameters[which], counts)
        first_cells = offsets(counts)[:-1]
        # The 1 that ends a quotient comes after all earlier quotients and their ending 1s.
        ends = offsets((gaps >> parameters) + 1)
        ones = np.repeat(positions + width - ends[first_cells], counts) + ends[1:] - 1
        bits[ones] = 1
        remainders = ones[first_cells + counts - 1] + 1
        places = places_of(counts) * parameters
        put(
            bits,
            np.repeat(remainders, counts) + places,
            gaps & ((1 << parameters) - 1),
            parameters,
        )


def longest_item_set(n_items: int) -> int:
    """Return the most bits that a set of items can take."""
    return _PARAMETER_BITS + n_items


def read_item_sets(stream: BitStream, users: Ints, n_items: int) -> tuple[Bools, Ints, Int32s, Ints]:
    """Read the item set at the start of each user's report, none of them empty.

    Returns which are valid, the size of each, 0 if it is not, the items of the valid ones by user, ascending,
    and the bit after each valid set. A set that is cut short or contains an item outside the catalogue is
    not.
    """
    starts, limits = stream.starts[users] + _PARAMETER_BITS, stream.ends[users]
    parameters = stream.peek(stream.starts[users], _PARAMETER_BITS)
    width = count_bits(n_items)
    is_bitmap = parameters == _BITMAP
    counts = stream.peek(starts, width) + 1
    bodies = starts + np.where(is_bitmap, 0, width)
    ones = np.append(stream.ones, np.iinfo(np.int64).max)
    first = np.searchsorted(ones, bodies)
    counts = np.where(is_bitmap, np.searchsorted(ones, starts + n_items) - first, counts)
    unary_ends = ones[np.minimum(first + counts - 1, ones.size - 1)]
    valid = (counts >= 1) & (counts <= n_items) & (is_bitmap | (parameters <= MAX_FIELD_BITS))
    valid &= is_bitmap | (unary_ends < limits)
    ends = np.where(is_bitmap, starts + n_items, 0)
    ends[valid & ~is_bitmap] = (unary_ends + 1 + counts * parameters)[valid & ~is_bitmap]
    valid &= ends <= limits

    whole = np.flatnonzero(valid)
    sizes = counts[whole]
    fields = bodies[whole], unary_ends[whole] + 1, np.where(is_bitmap, 0, parameters)[whole]
    items = _read_items(stream, ones[segments(first[whole], sizes)], sizes, *fields, n_items)
    within = items[offsets(sizes)[1:] - 1] < n_items
    valid[whole[~within]] = False
    return valid, np.where(valid, counts, 0), items[np.repeat(within, sizes)].astype(np.int32), ends


def _read_items(
    stream: BitStream, ones: Ints, sizes: Ints, bodies: Ints, remainders: Ints, parameters: Ints, n_items: int
) -> Ints:
    """Read the items of complete sets; items beyond the catalogue come out as ``n_items`` or more."""
    first_cells = offsets(sizes)[:-1]
    parameter_of = np.repeat(parameters, sizes)
    steps = np.diff(ones, prepend=0) - 1
    steps[first_cells] = ones[first_cells] - bodies
    places = np.repeat(remainders, sizes) + parameter_of * places_of(sizes)
    gaps = (steps << parameter_of) | np.where(parameter_of > 0, stream.peek(places, parameter_of), 0)
    # A hostile gap may be astronomical; all gaps beyond the catalogue count alike, so the sum stays small.
    reached = offsets(np.minimum(gaps, n_items) + 1)
    return reached[1:] - np.repeat(reached[first_cells], sizes) - 1


_RAREST = 2.0**-12
"""Rarer symbols are coded as if they were this likely, which keeps every code word within a bit field."""

_FEW_ROWS = 32
"""Fewer rows than this are read one by one, if each has over this many times as many symbols left."""

_STRETCH_BITS = 1 << 14
"""Bits that are looked up at once for one row: bounds the memory, and fits into a processor's cache."""


@dataclass(frozen=True, eq=False)
class PrefixCode:
    """A complete prefix code."""

    words: Ints
    """Shape (symbols,)."""
    lengths: Ints
    """Bits of each code word, at least 1; 0 if there is a single symbol; shape (symbols,)."""

    @classmethod
    def for_distribution(cls, probabilities: Floats) -> Self:
        """Build the canonical Huffman code of a distribution over the symbols."""
        shares = np.maximum(_normalised(probabilities), _RAREST)
        lengths = _huffman_lengths(shares)
        order = np.lexsort((np.arange(lengths.size), lengths))
        words = np.zeros(lengths.size, dtype=np.int64)
        word = 0
        for previous, symbol in itertools.pairwise(order):
            word = (word + 1) << int(lengths[symbol] - lengths[previous])
            words[symbol] = word
        return cls(words, lengths)

    def expected_bits(self, probabilities: Floats) -> float:
        """Return the mean length of a code word under a distribution of the symbols."""
        return float(_normalised(probabilities) @ self.lengths)

    @property
    def longest(self) -> int:
        """Bits of the longest code word."""
        return int(self.lengths.max())

    @property
    def shortest(self) -> int:
        """Bits of the shortest code word."""
        return int(self.lengths.min())

    def write(self, bits: Uint8s, positions: Ints, symbols: AnyInts) -> None:
        """Write the code word of each symbol at its position."""
        put(bits, positions, self.words[symbols], self.lengths[symbols])

    @cached_property
    def _table(self) -> tuple[Uint16s, Uint8s]:
        """Symbol and length of the code word that each window of `longest` bits begins with."""
        order = np.argsort(self.words << (self.longest - self.lengths))
        repeats = 1 << (self.longest - self.lengths[order])
        return (
            np.repeat(order.astype(np.uint16), repeats),
            np.repeat(self.lengths[order].astype(np.uint8), repeats),
        )

    def read(self, stream: BitStream, positions: Ints, counts: Ints) -> tuple[Uint16s, Ints]:
        """Read ``counts`` symbols for each user from its first code word on.

        Returns the symbols, and the bit after each user's last code word. The code is complete, so any bits
        decode; the caller checks where they end.
        """
        table, lengths = self._table
        first = offsets(counts)[:-1]
        symbols = np.empty(int(counts.sum()), dtype=np.uint16)
        ends = positions.copy()
        # Longest first: the users who still have symbols to read are then a shrinking prefix.
        order = np.argsort(-counts, kind="stable")
        ascending = counts[order][::-1]
        most = int(counts.max(initial=0))
        for step in range(most):
            reading = order[: counts.size - int(np.searchsorted(ascending, step, side="right"))]
            # In a code for a single symbol, words have no bits, so reading them would not advance.
            if self.longest and reading.size < min(_FEW_ROWS, (most - step) // _FEW_ROWS):
                for row in reading.tolist():
                    rest = symbols[first[row] + step : first[row] + counts[row]]
                    ends[row] = self._read_row(stream, int(ends[row]), rest)
                break
            windows = stream.peek(ends[reading], self.longest)
            symbols[first[reading] + step] = table[windows]
            ends[reading] += lengths[windows]
        return symbols, ends

    def _read_row(self, stream: BitStream, position: int, symbols: Uint16s) -> int:
        """Fill in the symbols of one user from a position on; return the position of the bit after them.

        A step per symbol would be slow, so the code word at every bit is looked up at once. From where
        the first 2^k words begin, and how far 2^k words reach from every bit, the same follows for
        2^(k+1) words.
        """
        table, lengths = self._table
        done = 0
        while done < symbols.size:
            bits = min(_STRETCH_BITS, (symbols.size - done) * self.longest)
            windows = stream.peek(position + np.arange(bits), self.longest)
            hops = np.append(np.minimum(np.arange(bits) + lengths[windows], bits), bits)
            starts = np.zeros(1, dtype=np.int64)
            while starts[-1] < bits:
                starts, hops = np.concatenate([starts, hops[starts]]), hops[hops]
            read = windows[starts[starts < bits][: symbols.size - done]]
            symbols[done : done + read.size] = table[read]
            done += read.size
            position += int(lengths[read].sum())
        return position


def _normalised(probabilities: Floats) -> Floats:
    """Return the shares of the symbols; equal shares if none of them ever occurs."""
    total = probabilities.sum()
    if total <= 0:
        return np.full(probabilities.size, 1 / probabilities.size)
    shares: Floats = probabilities / total
    return shares


def _huffman_lengths(shares: Floats) -> Ints:
    """Return Huffman's code lengths; ties go to the lower index, so that both ends agree."""
    count = shares.size
    heap = [(float(share), symbol) for symbol, share in enumerate(shares)]
    heapq.heapify(heap)
    parents = np.zeros(2 * count - 1, dtype=np.int64)
    for node in range(count, 2 * count - 1):
        (low, first), (high, second) = heapq.heappop(heap), heapq.heappop(heap)
        parents[first] = parents[second] = node
        heapq.heappush(heap, (low + high, node))
    depths = np.zeros(2 * count - 1, dtype=np.int64)
    for node in range(2 * count - 3, -1, -1):
        depths[node] = depths[parents[node]] + 1
    return depths[:count]


class SymbolRows:
    """Encoder and decoder of users' symbols, whose number both ends know."""

    def __init__(self, channel: Channel) -> None:
        self._code = PrefixCode.for_distribution(channel.marginal())

    def encode(self, counts: Ints, symbols: AnyInts) -> list[bytes]:
        """Encode the symbols of a partition."""
        code_starts, cells = offsets(self._code.lengths[symbols]), offsets(counts)
        sizes = (np.diff(code_starts[cells]) + 7) // 8
        bits = np.zeros(int(sizes.sum()) * 8, dtype=np.uint8)
        bases = offsets(sizes)[:-1] * 8 - code_starts[cells[:-1]]
        self._code.write(bits, code_starts[:-1] + np.repeat(bases, counts), symbols)
        return cut(np.packbits(bits).tobytes(), sizes)

    def decode(self, reports: Sequence[bytes], counts: Ints) -> tuple[Bools, Uint16s]:
        """Return which reports are valid, and the symbols of these.

        A report that does not end with its last symbol, apart from padding zeros, is rejected.
        """
        stream = BitStream(reports)
        symbols, ends = self._code.read(stream, stream.starts, counts)
        padding = stream.ends - ends
        fits = (padding >= 0) & (padding < 8)
        valid = fits & (stream.peek(ends, np.where(fits, padding, 0)) == 0)
        return valid, symbols[np.repeat(valid, counts)]
