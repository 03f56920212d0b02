"""The noise that devices add: a total is private against the server and the devices that collude with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.secure_aggregation.noise import skellam_table
from dprec.secure_aggregation.secrets import derived_key, stream

_WORD = np.dtype("<u8")


def honest_shares(users: int, dropouts: float, colluders: int) -> int:
    """Return how many shares of noise hide a contribution, at least: those of honest devices that are left.

    The shares of colluding devices do not count, as the server knows them, nor those of the tolerated
    dropouts.
    """
    return users - math.floor(dropouts * users) - colluders


def noise_rows(keys: Sequence[bytes], size: int, variance: float) -> NDArray[np.int32]:
    """Return each device's share of the noise of a total.

    Parameters
    ----------
    keys : sequence of bytes
        The devices' keys of the sum.
    size : int
        Numbers of a vector.
    variance : float
        Of a share, at least 0.

    Returns
    -------
    ndarray of int32, shape (devices, size)
    """
    rows = np.zeros((len(keys), size), dtype=np.int32)
    if variance == 0:
        return rows
    table = skellam_table(variance)
    for key, row in zip(keys, rows, strict=True):

        def second_words(places: NDArray[np.int64], key: bytes = key) -> NDArray[np.uint64]:
            return stream(derived_key(key, "noise, second"), size, _WORD).astype(np.uint64)[places]

        row[:] = table.draw(stream(derived_key(key, "noise"), size, _WORD).astype(np.uint64), second_words)
    return rows
