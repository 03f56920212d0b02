"""Item sets, code words and fields of bits: the parts of reports, written and read for many users at once.

A non-empty set begins with a field of 5 bits: the Rice parameter k of the gaps, or 31 for a bitmap, whichever
is shorter. Gaps are laid out as in the Elias-Fano code, first all quotients in unary and then all remainders
in k bits each, but they are differences: with the best k tried, this is never longer than Elias-Fano.

Sender and receiver build the code of symbols from the same public distribution. If that is nearly uniform,
the code is plain bit packing; if it is concentrated on a few symbols (clamped noise on the ends of the scale,
"not rated" in a full row), the code costs little more than the entropy.
"""

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints, Pieces, Uint16s, offsets
from dprec.channel import Channel

MAX_FIELD_BITS = 24
"""Of the numbers of items: so large may a catalogue be; and of code words."""


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

    def encode(self, rows: Ints) -> Pieces:
        """Return each row as bytes, from numbers of shape (rows, fields)."""
        from dprec.kernels import codec

        indptr, bounds = np.multiply.outer([self.fields, self.size], np.arange(len(rows) + 1))
        data = np.zeros(bounds[-1], dtype=np.uint8)
        codec.write_fields(indptr, rows.ravel(), self.width, bounds, data)
        return Pieces(data.tobytes(), bounds)

    def decode(self, pieces: Sequence[bytes]) -> tuple[Bools, Ints]:
        """Return which rows are valid, and all rows, zeros where they are rejected, shape (rows, fields)."""
        from dprec.kernels import codec

        pieces = Pieces.of(pieces)
        rows, valid = np.zeros((len(pieces), self.fields), dtype=np.int64), np.zeros(len(pieces), np.bool_)
        indptr = self.fields * np.arange(len(pieces) + 1)
        codec.read_fields(
            pieces.buffer, pieces.bounds, self.width, self.largest, indptr, rows.reshape(-1), valid
        )
        return valid, rows


@dataclass(frozen=True)
class Batches:
    """Encoder and decoder of batches of messages, each a number from 0 to ``largest``.

    The numbers of a batch are sorted, so that their order says nothing, and have the same width of at least 8
    bits, so that the bytes of a batch say how many they are.
    """

    largest: int

    @property
    def width(self) -> int:
        """Bits of a message."""
        return max(8, self.largest.bit_length())

    def sizes(self, counts: Ints) -> Ints:
        """Return the bytes of batches of so many messages, shape (batches,)."""
        return -(-counts * self.width // 8)

    def encode(self, counts: Ints, messages: Ints) -> Pieces:
        """Return each batch as bytes, from all messages, batch by batch; shape (sum of counts,)."""
        from dprec.kernels import codec

        ordered = messages[np.lexsort((messages, np.repeat(np.arange(counts.size), counts)))]
        bounds = offsets(self.sizes(counts))
        data = np.zeros(bounds[-1], dtype=np.uint8)
        codec.write_fields(offsets(counts), ordered, self.width, bounds, data)
        return Pieces(data.tobytes(), bounds)

    def decode(self, pieces: Sequence[bytes], fewest: int, most: int) -> tuple[Bools, Ints, Ints]:
        """Return which batches are valid, shape (batches,); their counts; and all messages, batch by batch.

        A batch that is rejected, one with fewer or more messages than there may be among them, counts none.
        """
        from dprec.kernels import codec

        pieces = Pieces.of(pieces)
        counts = 8 * pieces.sizes // self.width
        possible = (counts >= fewest) & (counts <= most)
        counts[~possible] = 0
        indptr, valid = offsets(counts), np.zeros(len(pieces), np.bool_)
        messages = np.zeros(indptr[-1], dtype=np.int64)
        codec.read_fields(pieces.buffer, pieces.bounds, self.width, self.largest, indptr, messages, valid)
        valid &= possible
        return valid, np.where(valid, counts, 0), messages[np.repeat(valid, counts)]


@dataclass(frozen=True, eq=False)
class ItemSets:
    """The item sets of a partition, prepared for writing; an empty one has no bits."""

    items: Int32s
    n_items: int
    parameters: Ints
    bits: Ints

    @classmethod
    def plan(cls, indptr: Ints, items: AnyInts, n_items: int) -> Self:
        """Choose the code of every set: the shortest of a bitmap and gaps with three parameters."""
        from dprec.kernels import codec

        narrow = np.ascontiguousarray(items, dtype=np.int32)
        parameters, bits = np.zeros((2, indptr.size - 1), dtype=np.int64)
        codec.plan_item_sets(indptr, narrow, n_items, parameters, bits)
        return cls(narrow, n_items, parameters, bits)


def read_item_sets(rows: Pieces, n_items: int, least_bits: int = 0) -> tuple[Ints, Ints, Int32s]:
    """Read the item set at the start of every row, of which only one without bytes is empty.

    Returns the bit of the buffer after each set, -1 where it is malformed; the first cell of every row; and
    the items, ascending within a row, of no meaning where it is malformed. That is a set that is cut short,
    or longer than its bitmap, or contains an item outside the catalogue, or after which the row has less than
    ``least_bits`` for every item.
    """
    from dprec.kernels import codec

    sizes, places = np.zeros((2, len(rows)), dtype=np.int64)
    codec.claimed_sizes(rows.buffer, rows.bounds, n_items, least_bits, sizes)
    indptr = offsets(sizes)
    items = np.empty(indptr[-1], dtype=np.int32)
    codec.read_item_sets(rows.buffer, rows.bounds, n_items, indptr, items, places)
    return places, indptr, items


def decode_item_sets(rows: Pieces, n_items: int) -> tuple[Bools, Ints, Int32s, Ints]:
    """Read the item set at the start of every row, padded to whole bytes; see `read_item_sets`.

    Returns which are valid, the size of each, 0 if it is not, the items of the valid ones, and the first byte
    of each row after its set.
    """
    from dprec.kernels import codec

    places, indptr, items = read_item_sets(rows, n_items)
    ends = (places + 7) // 8
    codec.refuse_unclean(rows.buffer, ends, places)
    valid, counts = places >= 0, np.diff(indptr)
    return valid, np.where(valid, counts, 0), items[np.repeat(valid, counts)], ends


_RAREST = 2.0**-12
"""Rarer symbols are coded as if they were this likely, which keeps every code word within a bit field."""


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
        count = shares.size
        # Huffman's code lengths; ties go to the lower index, so that both ends agree.
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
        lengths = depths[:count]
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

    @cached_property
    def _table(self) -> Int32s:
        """Symbol and length of the code word that each window of `longest` bits begins with."""
        from dprec.kernels.codec import LENGTH_BITS

        order = np.argsort(self.words << (self.longest - self.lengths))
        entries = order << LENGTH_BITS | self.lengths[order]
        return np.repeat(entries, 1 << (self.longest - self.lengths[order])).astype(np.int32)

    def read(self, rows: Pieces, places: Ints, indptr: Ints) -> Uint16s:
        """Read the symbols of rows, each from a place on to its end.

        Where a row does not end with its last symbol, apart from padding zeros, the place becomes -1; there,
        and where it was, symbols are of no meaning. The code is complete, so any bits decode.
        """
        from dprec.kernels import codec

        symbols = np.empty(indptr[-1], dtype=np.uint16)
        codec.read_words(rows.buffer, rows.bounds, indptr, self._table, symbols, places)
        codec.refuse_unclean(rows.buffer, rows.bounds[1:], places)
        return symbols


def written(
    indptr: Ints, sets: ItemSets | None = None, words: tuple[PrefixCode, AnyInts] | None = None
) -> Pieces:
    """Return rows of an item set, or of the code words of symbols, or of both, padded to whole bytes."""
    from dprec.kernels import codec

    bits = np.zeros(indptr.size - 1, dtype=np.int64) if sets is None else sets.bits.copy()
    if words is not None:
        code, symbols = words[0], np.ascontiguousarray(words[1], dtype=np.uint16)
        codec.add_word_bits(indptr, symbols, code.lengths, bits)
    bounds = offsets((bits + 7) // 8)
    data, places = np.zeros(bounds[-1], dtype=np.uint8), 8 * bounds[:-1]
    if sets is not None:
        codec.write_item_sets(indptr, sets.items, sets.n_items, sets.parameters, places, data)
    if words is not None:
        codec.write_words(indptr, symbols, code.words, code.lengths, places, data)
    return Pieces(data.tobytes(), bounds)


def encode_item_sets(indptr: Ints, items: AnyInts, n_items: int) -> Pieces:
    """Return item sets, each padded to whole bytes."""
    return written(indptr, ItemSets.plan(indptr, items, n_items))


def encode_items(items: AnyInts, n_items: int) -> bytes:
    """Return one item set, ascending, as bytes that know their end; none for an empty one."""
    return encode_item_sets(np.array([0, items.size]), items, n_items).data


def _normalised(probabilities: Floats) -> Floats:
    """Return the shares of the symbols; equal shares if none of them ever occurs."""
    total = probabilities.sum()
    if total <= 0:
        return np.full(probabilities.size, 1 / probabilities.size)
    return probabilities / total


class SymbolRows:
    """Encoder and decoder of users' symbols, whose number both ends know."""

    def __init__(self, channel: Channel) -> None:
        self._code = PrefixCode.for_distribution(channel.marginal())

    def encode(self, counts: Ints, symbols: AnyInts) -> Pieces:
        """Encode the symbols of a partition."""
        return written(offsets(counts), words=(self._code, symbols))

    def decode(self, reports: Sequence[bytes], counts: Ints) -> tuple[Bools, Uint16s]:
        """Return which reports are valid, and the symbols of these.

        A report that does not end with its last symbol, apart from padding zeros, is rejected.
        """
        rows = Pieces.of(reports)
        places = 8 * rows.bounds[:-1]
        symbols = self._code.read(rows, places, offsets(counts))
        return places >= 0, symbols[np.repeat(places >= 0, counts)]
