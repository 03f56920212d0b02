"""The one-bit randomiser of a coordinate in [-1, 1], and the encoding of its reports.

Shin et al. [shin2018], Algorithm 1: a coordinate x is answered by a bit T with
Pr(T = 1) = (x (e - 1) + e + 1) / (2 (e + 1)), e = exp(epsilon); (2 T - 1) (e + 1) / (e - 1) is an
unbiased estimate of x. Probabilities are integers of draws out of 2**60, monotone in x, so the
exact loss follows from the two extremes; that of these is rounded so that it keeps to epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.randomness import DRAWS, coins, fewest_draws, loss_of_draws

_HALF = DRAWS // 2


def randomize(
    coordinates: NDArray[np.float64], epsilon: float, random_words: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Answer each coordinate in [-1, 1] with one bit.

    Parameters
    ----------
    coordinates : ndarray of float64, shape (users,)
        Clipped to [-1, 1] first. NaN counts as 0: whatever a device computes from hostile item factors,
        its answer stays within the budget.
    random_words : ndarray of uint64, shape (users,)
    """
    inside = np.clip(np.where(np.isnan(coordinates), 0.0, coordinates), -1.0, 1.0)
    return coins(_thresholds(inside, epsilon), random_words)


def unbiased_scale(epsilon: float) -> float:
    """Return (e + 1) / (e - 1): the sign of a bit times this is an unbiased estimate."""
    return 1.0 / math.tanh(epsilon / 2)


def exact_epsilon(epsilon: float) -> float:
    """Return the exact loss of the bit, from the draws of the two extreme coordinates, rounded up."""
    heads = int(_thresholds(np.ones(1), epsilon)[0])
    return loss_of_draws(heads, DRAWS - heads)


def _thresholds(coordinates: NDArray[np.float64], epsilon: float) -> NDArray[np.uint64]:
    # (x (e - 1) + e + 1) / (2 (e + 1)) is one half and x times the largest distance from it.
    largest = _HALF - fewest_draws(epsilon)
    # In floating point, the product with 1 can exceed the integer.
    distances = np.minimum(np.floor(np.abs(coordinates) * largest).astype(np.int64), largest)
    heads: NDArray[np.uint64] = (_HALF + np.where(coordinates < 0, -distances, distances)).astype(np.uint64)
    return heads


def pack_answers(
    coordinates: NDArray[np.int64], answers: NDArray[np.bool_], n_coordinates: int
) -> list[bytes]:
    """Encode the coordinate that each user drew and the answer: ceil(log2(coordinates)) + 1 bits."""
    size = _report_bytes(n_coordinates)
    fields = (coordinates << 1 | answers) << (size * 8 - report_bits(n_coordinates))
    packed = fields.astype(">u8").tobytes()
    return [packed[end - size : end] for end in range(8, len(packed) + 1, 8)]


def unpack_answers(
    reports: Sequence[bytes], n_coordinates: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]:
    """Decode and validate the reports that `pack_answers` returns.

    Returns
    -------
    valid : ndarray of bool, shape (users,)
        False for a wrong length, a coordinate out of range or padding that is not zero.
    coordinates : ndarray of int64, shape (users,)
    answers : ndarray of bool, shape (users,)
    """
    size = _report_bytes(n_coordinates)
    sound = np.fromiter((len(report) == size for report in reports), dtype=np.bool_, count=len(reports))
    blank = bytes(size)
    whole = b"".join(
        bytes(8 - size) + (report if ok else blank)
        for report, ok in zip(reports, sound.tolist(), strict=True)
    )
    fields = np.frombuffer(whole, dtype=">u8").astype(np.int64)
    padding = size * 8 - report_bits(n_coordinates)
    coordinates = fields >> (padding + 1)
    valid = sound & (coordinates < n_coordinates) & (fields & ((1 << padding) - 1) == 0)
    return valid, coordinates, (fields >> padding & 1).astype(np.bool_)


def report_bits(n_coordinates: int) -> int:
    """Return the bits of a report: those of the coordinate, and the answer."""
    return max(1, (n_coordinates - 1).bit_length()) + 1


def _report_bytes(n_coordinates: int) -> int:
    return -(-report_bits(n_coordinates) // 8)
