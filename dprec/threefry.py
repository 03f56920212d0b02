"""Threefry-2x64-20 on arrays: 128 random bits for every key and counter (Salmon et al. [salmon2011]).

The output is a keyed function of the counter: it can be computed at any place and in any order, and
without the key it looks random. The function descends from the cipher Threefish, but is made for statistical
quality and not for secrecy: in a simulation it stands in for the cipher that a real device would use.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.uint64]
"""Numbers of 128 bits, shape (2, count): one row of low words and one of high words."""

_ROUNDS, _ROUNDS_PER_KEY = 20, 4

# Constants are arrays, which NumPy need not convert in every step.
_PARITY = np.array(0x1BD11BDAA9FC1A22, dtype=np.uint64)
_ROTATIONS = tuple(
    (np.array(bits, dtype=np.uint64), np.array(64 - bits, dtype=np.uint64))
    for bits in (16, 42, 12, 31, 16, 32, 24, 21)
)
_STEPS = tuple(np.array(step, dtype=np.uint64) for step in range(1 + _ROUNDS // _ROUNDS_PER_KEY))

_BLOCK = 1 << 14
"""Counters that are worked on together: their arrays stay in the processor's cache."""


def threefry(keys: Pairs, low: NDArray[np.integer] | int, high: NDArray[np.integer] | int) -> Pairs:
    """Return 128 random bits for each key and its counter.

    Parameters
    ----------
    keys : ndarray of uint64, shape (2, count)
    low, high : ndarray of int, shape (count,), or int
        The two words of each counter, or of all; at least 0.

    Returns
    -------
    ndarray of uint64, shape (2, count)
    """
    count = keys.shape[1]
    result = np.empty((2, count), dtype=np.uint64)
    spare = np.empty((2, min(count, _BLOCK)), dtype=np.uint64)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        first, second = result[:, part]
        first[...] = low if isinstance(low, int) else low[part]
        second[...] = high if isinstance(high, int) else high[part]
        _encrypt(keys[:, part], first, second, spare[0, : first.size], spare[1, : first.size])
    return result


def _encrypt(
    keys: Pairs,
    first: NDArray[np.uint64],
    second: NDArray[np.uint64],
    third_key: NDArray[np.uint64],
    turned: NDArray[np.uint64],
) -> None:
    """Replace the words of some counters by random ones; the last two arrays are working space."""
    np.bitwise_xor(keys[0], keys[1], out=third_key)
    np.bitwise_xor(third_key, _PARITY, out=third_key)
    schedule = (keys[0], keys[1], third_key)
    np.add(first, keys[0], out=first)
    np.add(second, keys[1], out=second)
    for done in range(_ROUNDS):
        left, right = _ROTATIONS[done % len(_ROTATIONS)]
        np.add(first, second, out=first)
        np.left_shift(second, left, out=turned)
        np.right_shift(second, right, out=second)
        np.bitwise_or(second, turned, out=second)
        np.bitwise_xor(second, first, out=second)
        step, between = divmod(done + 1, _ROUNDS_PER_KEY)
        if between == 0:
            np.add(first, schedule[step % 3], out=first)
            np.add(second, schedule[(step + 1) % 3], out=second)
            np.add(second, _STEPS[step], out=second)
