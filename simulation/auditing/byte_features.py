"""Numbers that a classifier can use, from the bytes of reports: their lengths, bits and padding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import sizes_of


def byte_features(reports: list[bytes], most: int) -> NDArray[np.float32]:
    """Return features of reports as they are sent.

    Parameters
    ----------
    most : int
        Largest number of features, at least 10.

    Returns
    -------
    ndarray of float32, shape (reports, features)
        The length, the number of zero bits at the end, and the bits of the first bytes; a report ends in
        zeros.
    """
    lengths = sizes_of(reports)
    width = max(1, min(int(lengths.max()), (most - 2) // 8))
    padded = b"".join([report[:width].ljust(width, b"\0") for report in reports])
    first = np.frombuffer(padded, dtype=np.uint8).reshape(-1, width)
    last = np.frombuffer(b"".join([report[-1:] or b"\0" for report in reports]), dtype=np.uint8)
    ending = np.unpackbits(last[:, None], axis=1)[:, ::-1]
    zeros = np.where(last > 0, ending.argmax(axis=1), 8)
    bits = np.unpackbits(first, axis=1)
    return np.column_stack([lengths, zeros, bits]).astype(np.float32)
