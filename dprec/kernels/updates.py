"""Loops over the updates of federated models: clipped and rounded, and read back and added up."""

import numpy as np

from dprec.arrays import Bools, Floats, Int32s, Ints
from dprec.kernels.compilation import Table, Written, compiled


@compiled
def clip(
    steps: Written[Table[Int32s]], norms: Written[Floats], updates: Table[Floats], bound: float, unit: float
) -> None:
    """Write updates in whole steps, rounded towards 0, of which a norm of ``bound`` has ``unit``.

    A longer update is scaled down to it. The first columns of ``steps`` are written; ``norms`` gets the norms
    before, infinite for an update that is not finite, whose steps are 0.
    """
    for user in range(updates.shape[0]):
        # Four sums, since one alone waits for every addition.
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        fours = updates.shape[1] // 4 * 4
        for place in range(0, fours, 4):
            one += updates[user, place] * updates[user, place]
            two += updates[user, place + 1] * updates[user, place + 1]
            three += updates[user, place + 2] * updates[user, place + 2]
            four += updates[user, place + 3] * updates[user, place + 3]
        for place in range(fours, updates.shape[1]):
            one += updates[user, place] * updates[user, place]
        norm = np.sqrt(one + two + three + four)
        if not norm < np.inf:
            norms[user] = np.inf
            for place in range(updates.shape[1]):
                steps[user, place] = 0
        else:
            norms[user] = norm
            scale = unit / max(norm, bound)
            for place in range(updates.shape[1]):
                steps[user, place] = np.int32(updates[user, place] * scale)


@compiled
def add_up(
    total: Written[Ints],
    valid: Written[Bools],
    reports: Table[Int32s],
    size: int,
    longest: int,
    largest: int,
    bit: int,
) -> None:
    """Add up reports, and mark those that a device can have sent, which alone are added.

    No number is larger than ``largest``; with ``longest`` above 0, the norm of the first ``size`` numbers is
    at most this, and any further one is 0 or ``bit``, or minus it.
    """
    for user in range(reports.shape[0]):
        fits, squares = True, np.int64(0)
        for place in range(reports.shape[1]):
            number = np.int64(reports[user, place])
            fits = fits and bool(-largest <= number <= largest)
            if place < size:
                squares += number * number
            elif longest > 0:
                fits = fits and bool(number in (0, bit, -bit))
        # Numbers that fit are too small for their squares to wrap around.
        fits = fits and bool(longest == 0 or squares <= longest * longest)
        valid[user] = fits
        if fits:
            for place in range(reports.shape[1]):
                total[place] += reports[user, place]
