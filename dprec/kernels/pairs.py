"""Which pairs of their items devices send."""

import math

import numpy as np

from dprec.arrays import Floats, Int32s, Ints, Uint64s
from dprec.kernels.compilation import Table, Written, compiled

_HALF = np.uint64(32)


@compiled
def shuffle(indptr: Ints, words: Uint64s, items: Written[Int32s]) -> None:
    """Put each user's items in random order, by a word for each (Fisher and Yates)."""
    for user in range(indptr.size - 1):
        first = indptr[user]
        for last in range(indptr[user + 1] - 1, first, -1):
            place = first + np.int64((words[last] >> _HALF) * np.uint64(last - first + 1) >> _HALF)
            items[last], items[place] = items[place], items[last]


@compiled
def sample_pairs(
    indptr: Ints,
    items: Int32s,
    weights: Floats,
    starts: Floats,
    least: float,
    firsts: Written[Table[Ints]],
    seconds: Written[Table[Ints]],
    beyond: Written[Floats],
) -> None:
    """Find the pairs at equal distances on each user's line of all of them, each as long as its weight.

    The distance is ``least`` times the root of the line's length at least. A pair that is longer than it is
    found once. ``beyond``, shape (longest row + 1,): room for the weights of a user's items from each on.
    """
    slots = firsts.shape[1]
    for user in range(indptr.size - 1):
        start, size = indptr[user], indptr[user + 1] - indptr[user]
        length, beyond[size] = 0.0, 0.0
        for place in range(size - 1, -1, -1):
            weight = weights[items[start + place]]
            beyond[place] = beyond[place + 1] + weight
            length += weight * beyond[place]
        distance = max(length / slots, math.sqrt(length) * least)
        passed, row, before = 0.0, 0, -1
        for slot in range(slots):
            point = (starts[user] + slot) * distance
            if point >= length:
                break
            weight = weights[items[start + row]]
            while row < size - 1 and point >= passed + weight * beyond[row]:
                passed, row, before = passed + weight * beyond[row], row + 1, -1
                weight = weights[items[start + row]]
            left = beyond[row] - (point - passed) / weight
            # The last item from which on so much is left.
            low, high = row, size - 1
            while low < high:
                middle = (low + high + 1) // 2
                if beyond[middle] >= left:
                    low = middle
                else:
                    high = middle - 1
            if low != before:
                firsts[user, slot], seconds[user, slot] = items[start + row], items[start + low]
            before = low
