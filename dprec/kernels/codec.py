"""Item sets, code words and fields, written and read bit by bit; `dprec.wire.symbols` says what they mean.

A row is what one user sends: consecutive bytes of a buffer, whose bits are counted from the highest of each.
Rows that are read may come from an attacker: a byte is read only after a check that it is the row's own.
"""

import numpy as np

from dprec.arrays import Bools, Int32s, Ints, Uint8s, Uint16s
from dprec.kernels.compilation import Written, compiled

PARAMETER_BITS = 5
BITMAP = 31
LARGEST_PARAMETER = 24

LENGTH_BITS = 5
"""Bits of an entry of a prefix code's table that hold the length of the code word; the symbol is above."""

_WINDOW = (1 << 32) - 1
"""Bits that were read and not yet used: fewer than those of the longest code word, and a byte."""


@compiled
def _put(data: Written[Uint8s], place: int, value: int, width: int) -> int:
    """Write a number into as many bits as are given, all of them 0; return the bit after them."""
    while width > 0:
        room = 8 - (place & 7)
        taken = min(room, width)
        width -= taken
        data[place >> 3] |= np.uint8((value >> width & ((1 << taken) - 1)) << (room - taken))
        place += taken
    return place


@compiled
def _get(data: Uint8s, place: int, width: int) -> int:
    """Read a number; the caller has checked that all of its bits are there."""
    value = 0
    while width > 0:
        room = 8 - (place & 7)
        taken = min(room, width)
        width -= taken
        value = value << taken | (int(np.int64(data[place >> 3])) >> (room - taken) & ((1 << taken) - 1))
        place += taken
    return value


@compiled
def count_bits(n_items: int) -> int:
    """Return the width of the field that holds a number of items from 1 to ``n_items``."""
    width = 1
    while n_items > 1 << width:
        width += 1
    return width


@compiled
def plan_item_sets(
    indptr: Ints, items: Int32s, n_items: int, parameters: Written[Ints], bits: Written[Ints]
) -> None:
    """Choose the shortest code of every set, a bitmap or gaps with one of three parameters."""
    header = PARAMETER_BITS + count_bits(n_items)
    for row in range(bits.size):
        size, least = indptr[row + 1] - indptr[row], 0
        if size == 0:
            continue
        while size << (least + 2) <= n_items:
            least += 1
        low, middle, high, before = 0, 0, 0, -1
        for cell in range(indptr[row], indptr[row + 1]):
            item = int(np.int64(items[cell]))
            if not before < item < n_items:
                raise IndexError("items that are not in the catalogue, or do not ascend")
            gap, before = (item - before - 1) >> least, item
            low, middle, high = low + gap, middle + (gap >> 1), high + (gap >> 2)
        parameters[row] = BITMAP
        bits[row] = PARAMETER_BITS + n_items
        # A parameter beyond the largest is never shorter, nor are three bits for each item than a bitmap.
        for more, quotients in enumerate((low, middle, high)):
            length = header + size * (1 + least + more) + quotients
            if length < bits[row]:
                parameters[row] = least + more
                bits[row] = length


@compiled
def write_item_sets(
    indptr: Ints, items: Int32s, n_items: int, parameters: Ints, places: Written[Ints], data: Written[Uint8s]
) -> None:
    """Write every set from the bit at its place on, which moves to the bit after it."""
    width = count_bits(n_items)
    for row in range(places.size):
        first, last, parameter = indptr[row], indptr[row + 1], parameters[row]
        if first == last:
            continue
        place = _put(data, places[row], parameter, PARAMETER_BITS)
        if parameter == BITMAP:
            for cell in range(first, last):
                _put(data, place + items[cell], 1, 1)
            places[row] = place + n_items
            continue
        place = _put(data, place, last - first - 1, width)
        before = -1
        for cell in range(first, last):
            place = _put(data, place + ((items[cell] - before - 1) >> parameter), 1, 1)
            before = items[cell]
        before = -1
        for cell in range(first, last):
            place = _put(data, place, items[cell] - before - 1, parameter)
            before = items[cell]
        places[row] = place


@compiled
def claimed_sizes(data: Uint8s, bounds: Ints, n_items: int, least_bits: int, sizes: Written[Ints]) -> None:
    """Read how many items each row's set has; 0 where the row cannot hold them, and ``least_bits`` for each.

    A claim is cheap to send, so it is believed only as far as there are bits for it.
    """
    width = count_bits(n_items)
    for row in range(sizes.size):
        start, end, size = 8 * bounds[row], 8 * bounds[row + 1], 0
        place = start + PARAMETER_BITS
        if place + width > end:
            continue
        parameter = _get(data, start, PARAMETER_BITS)
        if parameter == BITMAP:
            place += n_items
            if place <= end:
                for bit in range(place - n_items, place):
                    size += _get(data, bit, 1)
        elif parameter <= LARGEST_PARAMETER:
            size = 1 + _get(data, place, width)
            place += width + size * (1 + parameter)
        if size <= n_items and place + size * least_bits <= end:
            sizes[row] = size


@compiled
def read_item_sets(
    data: Uint8s, bounds: Ints, n_items: int, indptr: Ints, items: Written[Int32s], places: Written[Ints]
) -> None:
    """Read the claimed number of items of every row, and the bit after its set; -1 if it is malformed."""
    for row in range(places.size):
        place, end = 8 * bounds[row], 8 * bounds[row + 1]
        first, last, item = indptr[row], indptr[row + 1], -1
        places[row] = place if place == end else -1
        if first == last:
            continue
        # No set is longer than its bitmap.
        end = min(end, place + PARAMETER_BITS + n_items)
        parameter = _get(data, place, PARAMETER_BITS)
        place += PARAMETER_BITS
        if parameter == BITMAP:
            for bit in range(n_items):
                if _get(data, place + bit, 1):
                    items[first] = bit
                    first += 1
            places[row] = place + n_items
            continue
        place += count_bits(n_items)
        # A one ends each quotient. A cell holds where, from the first bit on, until its remainder is read.
        zeros_from, cell = place, first
        while cell < last and place < end:
            items[cell] = place - zeros_from
            cell += int(np.int64(data[place >> 3])) >> (7 - (place & 7)) & 1
            place += 1
        after = place + (last - first) * parameter
        if cell < last or after > end:
            continue
        byte, window, width, before = place >> 3, 0, -(place & 7), -1
        for cell in range(first, last):
            while width < parameter:
                window = window << 8 & _WINDOW | int(np.int64(data[byte]))
                byte += 1
                width += 8
            width -= parameter
            quotient_end = int(np.int64(items[cell]))
            gap = (quotient_end - before - 1) << parameter | window >> width & ((1 << parameter) - 1)
            before, item = quotient_end, min(item + 1 + gap, n_items)
            items[cell] = item
        if item < n_items:
            places[row] = after


@compiled
def add_word_bits(indptr: Ints, symbols: Uint16s, lengths: Ints, bits: Written[Ints]) -> None:
    """Add the bits of every row's code words."""
    for row in range(bits.size):
        for cell in range(indptr[row], indptr[row + 1]):
            if symbols[cell] >= lengths.size:
                raise IndexError("a symbol without a code word")
            bits[row] += lengths[symbols[cell]]


@compiled
def write_words(
    indptr: Ints, symbols: Uint16s, words: Ints, lengths: Ints, places: Ints, data: Written[Uint8s]
) -> None:
    """Write every row's code words from the bit at its place on."""
    for row in range(places.size):
        place = places[row]
        for cell in range(indptr[row], indptr[row + 1]):
            place = _put(data, place, words[symbols[cell]], lengths[symbols[cell]])


@compiled
def read_words(
    data: Uint8s, bounds: Ints, indptr: Ints, table: Int32s, symbols: Written[Uint16s], places: Written[Ints]
) -> None:
    """Read every row's symbols from the bit at its place on, which moves to the bit after them.

    The table has an entry for each window as long as the longest code word; bits after a row count as 0.
    """
    longest = 0
    while 1 << longest < table.size:
        longest += 1
    for row in range(places.size):
        if places[row] < 0:
            continue
        byte, stop = places[row] >> 3, bounds[row + 1]
        window, width = 0, -(places[row] & 7)
        for cell in range(indptr[row], indptr[row + 1]):
            while width < longest:
                window = window << 8 & _WINDOW
                if byte < stop:
                    window |= int(np.int64(data[byte]))
                byte += 1
                width += 8
            entry = table[window >> (width - longest) & ((1 << longest) - 1)]
            symbols[cell] = entry >> LENGTH_BITS
            width -= entry & ((1 << LENGTH_BITS) - 1)
        places[row] = 8 * byte - width


@compiled
def refuse_unclean(data: Uint8s, ends: Ints, places: Written[Ints]) -> None:
    """Put -1 for places from which to the end of a byte, less than 8 bits, not all bits are 0."""
    for row in range(places.size):
        padding = 8 * ends[row] - places[row]
        if places[row] >= 0 and not (0 <= padding < 8 and _get(data, places[row], padding) == 0):
            places[row] = -1


@compiled
def write_fields(indptr: Ints, values: Ints, width: int, bounds: Ints, data: Written[Uint8s]) -> None:
    """Write rows of numbers, each in so many bits."""
    for row in range(indptr.size - 1):
        place = 8 * bounds[row]
        for field in range(indptr[row], indptr[row + 1]):
            place = _put(data, place, values[field], width)


@compiled
def read_fields(
    data: Uint8s,
    bounds: Ints,
    width: int,
    largest: int,
    indptr: Ints,
    values: Written[Ints],
    valid: Written[Bools],
) -> None:
    """Read rows of numbers; zeros where one has another size, a larger number, or padding other than 0."""
    for row in range(indptr.size - 1):
        place, end = 8 * bounds[row], 8 * bounds[row + 1]
        valid[row] = 0 <= end - place - width * (indptr[row + 1] - indptr[row]) < 8
        if not valid[row]:
            continue
        for field in range(indptr[row], indptr[row + 1]):
            values[field] = _get(data, place, width)
            valid[row] &= values[field] <= largest
            place += width
        valid[row] &= _get(data, place, end - place) == 0
        if not valid[row]:
            values[indptr[row] : indptr[row + 1]] = 0
