"""Loops over rows of numbers: which of each row are the least."""

import numpy as np

from dprec.arrays import Bools, Ints, Uint64s
from dprec.kernels.compilation import Written, compiled


@compiled
def _at_place(line: Written[Uint64s], size: int, place: int) -> np.uint64:
    """Return what stands at a place of a line once it is in order (Hoare, Algorithm 65: FIND, 1961)."""
    first, last = 0, size - 1
    while first < last:
        pivot, left, right = line[place], first, last
        while left <= right:
            while line[left] < pivot:
                left += 1
            while pivot < line[right]:
                right -= 1
            if left <= right:
                line[left], line[right] = line[right], line[left]
                left, right = left + 1, right - 1
        if right < place:
            first = left
        if place < left:
            last = right
    return line[place]


@compiled
def choose_least(
    chosen: Written[Bools], indptr: Ints, numbers: Uint64s, wanted: Ints, line: Written[Uint64s]
) -> None:
    """Choose the least numbers of each row, as many as are wanted or all, of equal ones the first.

    ``line`` has room for the longest row.
    """
    for row in range(wanted.size):
        first, size = indptr[row], indptr[row + 1] - indptr[row]
        left = min(wanted[row], size)
        if left <= 0:
            continue
        for place in range(size):
            line[place] = numbers[first + place]
        largest = _at_place(line, size, left - 1)
        for cell in range(first, first + size):
            if numbers[cell] < largest:
                chosen[cell] = True
                left -= 1
        for cell in range(first, first + size):
            if left > 0 and numbers[cell] == largest:
                chosen[cell] = True
                left -= 1
