"""Secrets that a number of holders can put together, and of which fewer learn nothing (Shamir [shamir1979]).

A secret is `ELEMENTS` numbers modulo a prime, 154 bits. Each is the constant of a polynomial of its own, of
which the other coefficients are uniform; the holder at point x > 0 has the values there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PRIME = 2**31 - 1
"""Products of two numbers below it fit into 62 bits."""

ELEMENTS = 5
"""Numbers of a secret."""

_ELEMENT = np.dtype("<u4")
SECRET_BYTES = ELEMENTS * _ELEMENT.itemsize
"""Bytes of a secret, and of a share of it."""


def field_elements(random_words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Map pairs of random words to numbers modulo the prime.

    Parameters
    ----------
    random_words : ndarray of uint64, shape (..., 2)

    Returns
    -------
    ndarray of uint64, shape (...)
        No number is likelier than another by more than a factor of 1 + 2**-96.
    """
    # Words modulo a prime p: 2**64 = 4 (mod 2**31 - 1), since 2**62 = 1.
    high, low = random_words[..., 0] % PRIME, random_words[..., 1] % PRIME
    elements: NDArray[np.uint64] = (4 * high + low) % PRIME
    return elements


def shares(polynomials: NDArray[np.uint64], points: int) -> NDArray[np.uint64]:
    """Return the shares of many secrets, by Horner's rule.

    Parameters
    ----------
    polynomials : ndarray of uint64, shape (secrets, threshold, elements)
        The secret first, then the uniform coefficients of higher powers.
    points : int
        Number of holders; they stand at 1, 2, and so on.

    Returns
    -------
    ndarray of uint64, shape (secrets, points, elements)
    """
    x = np.arange(1, points + 1, dtype=np.uint64)[:, None]
    values = np.zeros((len(polynomials), points, polynomials.shape[2]), dtype=np.uint64)
    for power in range(polynomials.shape[1] - 1, -1, -1):
        values = (values * x + polynomials[:, None, power]) % PRIME
    return values


def secrets(points: NDArray[np.integer], held: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Put secrets together from as many shares as the threshold: the polynomials' values at 0 (Lagrange).

    Parameters
    ----------
    points : ndarray of int, shape (secrets, threshold)
        Distinct for each secret, from 1 on.
    held : ndarray of uint64, shape (secrets, threshold, elements)

    Returns
    -------
    ndarray of uint64, shape (secrets, elements)
    """
    x = points.astype(np.uint64)
    above, below = np.ones_like(x), np.ones_like(x)
    for other in range(x.shape[1]):
        factor = x[:, other, None]
        difference = (factor + PRIME - x) % PRIME
        itself = np.arange(x.shape[1]) == other
        above = np.where(itself, above, above * factor % PRIME)
        below = np.where(itself, below, below * difference % PRIME)
    weights = above * _inverses(below) % PRIME
    # Sums of fewer than 2**33 products, each reduced before it is added.
    whole: NDArray[np.uint64] = (weights[:, :, None] * held % PRIME).sum(axis=1, dtype=np.uint64) % PRIME
    return whole


def as_bytes(elements: NDArray[np.uint64]) -> list[bytes]:
    """Return secrets or shares as bytes, from shape (count, elements)."""
    return [row.tobytes() for row in elements.astype(_ELEMENT)]


def from_bytes(data: bytes) -> NDArray[np.uint64]:
    """Read secrets or shares that stand one after the other, shape (count, elements).

    Raises
    ------
    ValueError
        When they are damaged.
    """
    if len(data) % SECRET_BYTES:
        raise ValueError(f"{len(data)} bytes of shares, which have {SECRET_BYTES} each")
    elements = np.frombuffer(data, dtype=_ELEMENT).astype(np.uint64).reshape(-1, ELEMENTS)
    if (elements >= PRIME).any():
        raise ValueError("a share outside its field")
    return elements


def _inverses(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return values ** (PRIME - 2), modulo the prime."""
    result, power, exponent = np.ones_like(values), values, PRIME - 2
    while exponent:
        if exponent & 1:
            result = result * power % PRIME
        power = power * power % PRIME
        exponent >>= 1
    return result
