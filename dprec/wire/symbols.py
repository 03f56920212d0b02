"""Symbols on the wire: a canonical Huffman code, written and read for many users at once.

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

from dprec.arrays import AnyInts, Bools, Floats, Ints, Uint8s, Uint16s, cut, offsets
from dprec.channel import Channel
from dprec.wire.bits import BitStream, put

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
