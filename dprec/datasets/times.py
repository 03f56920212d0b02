"""When ratings were made: numbers that grow with time, such as seconds since 1970, or dates."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError

ACCEPTED = "a number, or a date such as 2005-09-06 or 2005-09-06 17:30:00"


def times_of(column: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Return times as numbers; dates become seconds since 1970.

    A date counts as UTC, unless it says its offset from it.

    Parameters
    ----------
    column : ndarray, shape (rows,)
        Numbers, dates or texts.
    where : str
        What the column is, for the error.

    Raises
    ------
    InputError
        When one is neither a number nor a date.
    """
    kind = column.dtype.kind
    try:
        times = column.astype(np.float64) if kind in "iuf" else _seconds(column)
    except (TypeError, ValueError):
        raise InputError(where, f"values such as {str(column[0])!r}", ACCEPTED) from None
    if not np.all(np.isfinite(times)):
        raise InputError(where, "a time that is missing or infinite", ACCEPTED)
    return times


def _seconds(column: NDArray[Any]) -> NDArray[np.float64]:
    if column.dtype.kind != "M":
        distinct, places = np.unique(column.astype(np.str_), return_inverse=True)
        with warnings.catch_warnings():
            # NumPy warns of an offset such as +02:00, which it takes into account.
            warnings.simplefilter("ignore", UserWarning)
            column = np.char.rstrip(np.char.strip(distinct), "Z").astype("datetime64[us]")[places]
    seconds = column.astype("datetime64[us]").astype(np.int64) / 1e6
    return np.where(np.isnat(column), np.nan, seconds)
