"""Numbers of a bounded norm as whole steps of a grid: random rounding that leaves the norm bounded.

Each number is rounded up or down at random, so that it is right on average, and a device rounds again until
its vector is no longer than the bound (Kairouz, Liu and Steinke [kairouz2021], Section 4): then the
sensitivity is the bound itself, in whole steps, whatever was rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import offsets, rows_of, segments
from dprec.secure_aggregation.secrets import derived_key, stream

_ATTEMPTS = 64
"""Attempts of a device; each succeeds with probability 0.39 or more, so one in 10**13 needs more."""

_WORD = np.dtype("<u4")


def steps_of_unit(norm: int, numbers: int) -> float:
    """Return into how many steps a unit is divided, for vectors of a norm of at most one unit.

    Rounding makes a vector of c steps longer: with probability 1 - exp(-1/2) or more, its squared norm stays
    within c^2 + d / 4 + c + sqrt(d) / 2 for d numbers that are rounded [kairouz2021]. The result is the
    largest c at which that is within the bound.

    Parameters
    ----------
    norm : int
        Bound on the norm of a rounded vector, in steps.
    numbers : int
        Largest number of a vector's entries other than 0.

    Returns
    -------
    float
        Not above 0 if the bound is too small for so many numbers.
    """
    spent = numbers / 4 + math.sqrt(numbers) / 2
    return (math.sqrt(max(0.0, 1 + 4 * (norm**2 - spent))) - 1) / 2


def rounded_rows(
    values: NDArray[np.float64], counts: NDArray[np.int64], norm: int, keys: Sequence[bytes]
) -> NDArray[np.int64]:
    """Round the numbers of every device to whole ones.

    Parameters
    ----------
    values : ndarray of float64, shape (cells,)
        In steps; the norm of a device's numbers is at most the bound.
    counts : ndarray of int64, shape (devices,)
        How many of them are each device's.
    norm : int
        Bound on the norm of a device's rounded numbers.
    keys : sequence of bytes
        A key of each device.

    Returns
    -------
    ndarray of int64, shape (cells,)
    """
    # Towards 0, which makes no vector longer: what a device sends that finds no other in all its attempts.
    result = np.trunc(values).astype(np.int64)
    waiting = np.flatnonzero(counts)
    starts = offsets(counts)
    for attempt in range(_ATTEMPTS):
        if not waiting.size:
            break
        sizes = counts[waiting]
        cells = segments(starts[waiting], sizes)
        words = [
            stream(derived_key(keys[device], "rounding", attempt.to_bytes(4, "little")), size, _WORD)
            for device, size in zip(waiting.tolist(), sizes.tolist(), strict=True)
        ]
        below = np.floor(values[cells])
        up = np.concatenate(words) * 2.0**-32 < values[cells] - below
        tried = below.astype(np.int64) + up
        lengths = np.bincount(rows_of(sizes), weights=tried.astype(np.float64) ** 2, minlength=waiting.size)
        kept = lengths <= norm**2
        of_kept = np.repeat(kept, sizes)
        result[cells[of_kept]] = tried[of_kept]
        waiting = waiting[~kept]
    return result
