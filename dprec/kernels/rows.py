"""Loops over rows of numbers: which of each are the least or the best, and sums without the largest."""

import numpy as np

from dprec.arrays import Bools, Floats, Ints, Uint64s
from dprec.kernels.compilation import Table, Written, compiled


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
        remaining = min(wanted[row], size)
        if remaining <= 0:
            continue
        for place in range(size):
            line[place] = numbers[first + place]
        largest = _at_place(line, size, remaining - 1)
        for cell in range(first, first + size):
            if numbers[cell] < largest:
                chosen[cell] = True
                remaining -= 1
        for cell in range(first, first + size):
            if remaining > 0 and numbers[cell] == largest:
                chosen[cell] = True
                remaining -= 1


@compiled
def add_without_largest(
    sums: Written[Floats], indptr: Ints, values: Floats, counts: Ints, left_out: int
) -> None:
    """Write the sum of each row's values without the largest positive ones of so many.

    ``counts``: how many times each value stands in its row.
    """
    for row in range(sums.size):
        first, total, remaining = indptr[row], 0.0, left_out
        for place in np.argsort(-values[first : indptr[row + 1]], kind="mergesort"):
            value, count = values[first + place], counts[first + place]
            if value > 0:
                without = min(remaining, count)
                remaining -= without
                count -= without
            total += count * value
        sums[row] = total


@compiled
def _sink(
    places: Written[Table[Ints]],
    best: Written[Table[Floats]],
    row: int,
    size: int,
    place: int,
    score: float,
    ties: Uint64s,
) -> None:
    """Put a place and its score into a heap in which no parent is better than a child, from its root."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        sibling, child_score = child + 1, best[row, child]
        if sibling < size and (
            best[row, sibling] < child_score
            or (best[row, sibling] == child_score and ties[places[row, sibling]] > ties[places[row, child]])
        ):
            child, child_score = sibling, best[row, sibling]
        if score < child_score or (score == child_score and ties[place] > ties[places[row, child]]):
            break
        places[row, at], best[row, at] = places[row, child], child_score
        at = child
    places[row, at], best[row, at] = place, score


@compiled
def choose_best(
    places: Written[Table[Ints]],
    best: Written[Table[Floats]],
    scores: Table[Floats],
    wanted: Table[Bools],
    ties: Uint64s,
) -> None:
    """Write the places and scores of each row's largest scores that are wanted, the largest first.

    Of equal scores those of the least words of ``ties`` come first. As many are written as there are columns,
    or as are wanted.
    """
    length = places.shape[1]
    if length == 0:
        return
    for row in range(scores.shape[0]):
        size, least = 0, -np.inf
        for place in range(scores.shape[1]):
            score = scores[row, place]
            if score < least or not wanted[row, place]:
                continue
            if size < length:
                # Up while its parent is better.
                at = size
                while at > 0:
                    parent = (at - 1) // 2
                    parent_score = best[row, parent]
                    if parent_score < score or (
                        parent_score == score and ties[places[row, parent]] > ties[place]
                    ):
                        break
                    places[row, at], best[row, at] = places[row, parent], parent_score
                    at = parent
                places[row, at], best[row, at] = place, score
                size += 1
            elif score > least or ties[place] < ties[places[row, 0]]:
                _sink(places, best, row, size, place, score, ties)
            if size == length:
                least = best[row, 0]
        for last in range(size - 1, 0, -1):
            place, score = places[row, last], best[row, last]
            places[row, last], best[row, last] = places[row, 0], best[row, 0]
            _sink(places, best, row, last, place, score, ties)
