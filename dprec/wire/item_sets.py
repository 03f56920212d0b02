"""The items of a report, coded as gaps or as a bitmap, whichever is shorter.

A non-empty set begins with a field of 5 bits: the Rice parameter k of the gaps, or 31 for a bitmap.
Gaps are laid out as in the Elias-Fano code, first all quotients in unary and then all remainders in k
bits each, but they are differences: with the best k tried, this is never longer than Elias-Fano, and
both halves can be read without walking the stream.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Int32s, Ints, Uint8s, offsets, places_of, segments
from dprec.wire.bits import MAX_FIELD_BITS, BitStream, put

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
