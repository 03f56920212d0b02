"""The random words of devices, and the symbols that channels, and the samples that lines, make of words."""

import numpy as np

from dprec.arrays import Floats, Int32s, Ints, Uint8s, Uint16s, Uint64s
from dprec.kernels.compilation import Table, Written, compiled

_PARITY = np.uint64(0x1BD11BDAA9FC1A22)
_ROTATIONS = tuple(np.uint64(bits) for bits in (16, 42, 12, 31, 16, 32, 24, 21))
_STEPS = tuple(np.uint64(step) for step in range(6))
_BITS, _HALF, _NOTHING, _ONE = np.uint64(64), np.uint64(32), np.uint64(0), np.uint64(1)
_LANES, _LANE_OF, _PLACE_OF = np.uint64(0xFFFF), np.uint64(3), np.uint64(4)


@compiled
def threefry(
    key: np.uint64, second_key: np.uint64, low: np.uint64, high: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return the 128 bits of a key and a counter: Threefry-2x64-20 (Salmon et al. [salmon2011])."""
    third_key = key ^ second_key ^ _PARITY
    low += key
    high += second_key
    for done in range(20):
        low += high
        rotation = _ROTATIONS[done % 8]
        high = (high << rotation | high >> (_BITS - rotation)) ^ low
        if done % 4 == 3:
            key, second_key, third_key = second_key, third_key, key
            low += key
            high += second_key + _STEPS[(done + 1) // 4]
    return low, high


@compiled
def of_counters(keys: Table[Uint64s], low: Uint64s, high: Uint64s, result: Written[Table[Uint64s]]) -> None:
    """Find the bits of each key and its counter."""
    for at in range(low.size):
        result[0, at], result[1, at] = threefry(keys[0, at], keys[1, at], low[at], high[at])


@compiled
def of_cells(
    keys: Table[Uint64s], indptr: Ints, items: Int32s, high: np.uint64, words: Written[Uint64s]
) -> None:
    """Find the word of each cell, under the key of its user and with its item as counter."""
    for user in range(indptr.size - 1):
        for cell in range(indptr[user], indptr[user + 1]):
            words[cell], _ = threefry(keys[0, user], keys[1, user], np.uint64(items[cell]), high)


@compiled
def digests(
    keys: Table[Uint64s], indptr: Ints, items: Int32s, values: Uint64s, sums: Written[Table[Uint64s]]
) -> None:
    """Add up the bits of each user's cells, whose items and values are the counters."""
    for user in range(indptr.size - 1):
        first = second = _NOTHING
        for cell in range(indptr[user], indptr[user + 1]):
            low, high = threefry(keys[0, user], keys[1, user], np.uint64(items[cell]), values[cell])
            first += low
            second += high
        sums[0, user], sums[1, user] = first, second


@compiled
def invert(
    rows: Uint8s,
    words: Uint64s,
    unused: np.uint64,
    cumulative: Table[Uint64s],
    guide: Table[Uint16s],
    shift: np.uint64,
    symbols: Written[Uint16s],
) -> None:
    """Find the symbol of each word in its row of a channel; the last bits of words are not used.

    The guide says by the first bits of a draw where the search begins (Devroye, Non-Uniform Random Variate
    Generation, 1986, Section III.2.4).
    """
    for cell in range(rows.size):
        row, draw = rows[cell], words[cell] >> unused
        symbol = guide[row, draw >> shift]
        while cumulative[row, symbol] <= draw:
            symbol += np.uint16(1)
        symbols[cell] = symbol


@compiled
def shuffle(order: Written[Int32s], remaining: int, words: Uint64s) -> int:
    """Exchange the last entry that is left with any of those that are, and leave it (Fisher and Yates).

    The halves of words say with which, as in NumPy: the lower first, by as many bits as are needed; a number
    that is too large is passed over. Returns how many entries are left when words are used up.
    """
    mask = np.uint64(1)
    while mask < np.uint64(remaining - 1):
        mask = mask << np.uint64(1) | np.uint64(1)
    for half in range(2 * words.size):
        while mask >> np.uint64(1) >= np.uint64(remaining - 1):
            mask >>= np.uint64(1)
        word = words[half >> 1] >> _HALF if half & 1 else words[half >> 1]
        partner = np.int64(word & mask)
        if partner < remaining:
            remaining -= 1
            order[remaining], order[partner] = order[partner], order[remaining]
            if remaining == 1:
                break
    return remaining


@compiled
def lane(low: np.uint64, high: np.uint64, cell: np.uint64) -> np.uint64:
    """Return the 16 bits of a cell, one of eight that share 128 bits."""
    word = high if cell & _PLACE_OF else low
    return word >> ((cell & _LANE_OF) << _PLACE_OF) & _LANES


@compiled
def projections(
    keys: Table[Uint64s],
    indptr: Ints,
    cells: Ints,
    values: Floats,
    normals: Int32s,
    result: Written[Table[Floats]],
) -> None:
    """Find the products of each user's sparse vector and its candidates, shape (users, candidates)."""
    for user in range(indptr.size - 1):
        for candidate in range(result.shape[1]):
            low = high = previous = _NOTHING
            total = 0.0
            for at in range(indptr[user], indptr[user + 1]):
                cell = np.uint64(cells[at])
                block = cell >> _LANE_OF
                if at == indptr[user] or block != previous:
                    low, high = threefry(keys[0, user], keys[1, user], block, np.uint64(candidate))
                    previous = block
                total += values[at] * normals[lane(low, high, cell)]
            result[user, candidate] = total


@compiled
def add_candidates(keys: Table[Uint64s], chosen: Ints, normals: Int32s, sums: Written[Ints]) -> None:
    """Add up the candidates that users chose, in integers."""
    for user in range(chosen.size):
        low = high = _NOTHING
        for place in range(sums.size):
            cell = np.uint64(place)
            if place % 8 == 0:
                candidate = np.uint64(chosen[user])
                low, high = threefry(keys[0, user], keys[1, user], cell >> _LANE_OF, candidate)
            sums[place] += normals[lane(low, high, cell)]


@compiled
def sample(
    indptr: Ints,
    sizes: Ints,
    orders: Uint64s,
    distances: Ints,
    starts: Ints,
    line: Written[Ints],
    chosen: Written[Table[Ints]],
) -> None:
    """Find the cells at equal distances on each row's line of all of them, each as long as its size.

    A line is in random order (Fisher and Yates), by a word for each row; ``line`` has room for the longest. A
    cell that is longer than the distance is found once.
    """
    for row in range(indptr.size - 1):
        first, cells = indptr[row], indptr[row + 1] - indptr[row]
        passed, point, slot = 0, starts[row], 0
        for place in range(cells):
            line[place] = first + place
        for place in range(cells):
            word, _ = threefry(orders[row], _NOTHING, np.uint64(place), _NOTHING)
            swapped = place + np.int64((word >> _HALF) * np.uint64(cells - place) >> _HALF)
            cell = line[swapped]
            line[swapped] = line[place]
            passed += sizes[cell]
            if point < passed:
                chosen[row, slot] = cell
                slot += 1
                point += distances[row] * ((passed - 1 - point) // distances[row] + 1)


@compiled
def look_up_numbers(
    numbers: Written[Int32s],
    words: Uint64s,
    column_bits: np.uint64,
    limits: Uint64s,
    own: Int32s,
    other: Int32s,
) -> int:
    """Write the number of each word's column: its own where the rest is below a limit, or else the other one.

    Return how many words are at their limit, which a further one decides.
    """
    rest_bits, undecided = _BITS - column_bits, 0
    for place in range(words.size):
        column = words[place] >> rest_bits
        rest = words[place] & ((_ONE << rest_bits) - _ONE)
        numbers[place] = own[column] if rest < limits[column] else other[column]
        if rest == limits[column]:
            undecided += 1
    return undecided
