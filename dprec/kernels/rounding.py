"""Rounding at random: how long vectors become by it, and vectors that are no longer than a bound."""

import math

import numpy as np

from dprec.arrays import Floats, Ints, Uint64s
from dprec.kernels.compilation import Table, Written, compiled
from dprec.kernels.draws import threefry

_UNUSED = np.uint64(11)


@compiled
def bound_squares(
    values: Floats, indptr: Ints, devices: Ints, factors: Floats, squares: Written[Floats]
) -> None:
    """Find the mean of the squared norm of some devices' numbers, scaled and rounded, and a deviation more.

    A number of b steps and a part f of one becomes b or b + 1 in absolute value, the latter with probability
    f. So the squared norm has the mean sum b^2 + f (2 b + 1), and the variance sum f (1 - f) (2 b + 1)^2.
    """
    for place in range(devices.size):
        mean = variance = 0.0
        for cell in range(indptr[devices[place]], indptr[devices[place] + 1]):
            size = abs(values[cell]) * factors[place]
            below = math.floor(size)
            above = size - below
            mean += below * below + above * (2 * below + 1)
            variance += above * (1 - above) * (2 * below + 1) * (2 * below + 1)
        squares[place] = mean + math.sqrt(variance)


@compiled
def round_within(
    values: Floats, indptr: Ints, bound: int, keys: Table[Uint64s], attempts: int, rounded: Written[Ints]
) -> None:
    """Round each device's numbers up or down at random, again until their squares are within a bound in all.

    Who finds none in so many attempts rounds towards 0, which makes no vector longer.
    """
    for device in range(indptr.size - 1):
        first, end, squares = indptr[device], indptr[device + 1], bound + 1
        for attempt in range(attempts):
            squares = 0
            for cell in range(first, end):
                place = np.uint64(cell - first)
                word, _ = threefry(keys[0, device], keys[1, device], place, np.uint64(attempt))
                below = math.floor(values[cell])
                above = float(word >> _UNUSED) * 2.0**-53 < values[cell] - below
                rounded[cell] = int(below) + int(above)
                squares += rounded[cell] * rounded[cell]
            if squares <= bound:
                break
        if squares > bound:
            for cell in range(first, end):
                rounded[cell] = int(values[cell])
