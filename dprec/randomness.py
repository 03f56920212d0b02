"""Random draws of the experiment, the server and the network; devices have their own (`dprec.randomness.devices`).

Philox is keyed by the seed, the purpose of the draws and the round; the counter is the global index of what
the draw belongs to, so any division of the work gives the same bits.

This module also turns words into other random values (a number below a limit, a coin, a subset). If privacy
depends on a probability, it is an integer of `DRAWS`, with which the word itself is compared.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

DRAW_BITS = 60
"""Bits of a word that are used to choose a draw."""

DRAWS = 1 << DRAW_BITS
"""Number of equally likely draws; a probability is an integer of them."""

_WORDS_PER_BLOCK = 4


def words(seed: int, purpose: str, start: int, count: int, *, round_index: int = 0) -> NDArray[np.uint64]:
    """Return the random words of ``count`` global indices from ``start`` on.

    Parameters
    ----------
    seed : int
        Of the experiment, the server or the network; see `dprec.randomness.keys`.
    purpose : str
        What the draws are for; different purposes have independent draws.
    start, count : int
        First global index and number of indices.
    round_index : int
        The round of the protocol.

    Returns
    -------
    ndarray of uint64, shape (count,)
        Independent and uniform on all 64 bits (Salmon et al. [salmon2011]).
    """
    digest = hashlib.blake2b(f"{seed}/{purpose}/{round_index}".encode(), digest_size=16).digest()
    block, skipped = divmod(start, _WORDS_PER_BLOCK)
    philox = np.random.Philox(key=np.frombuffer(digest, dtype="<u8"), counter=block)
    return philox.random_raw(skipped + count)[skipped:]


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a sequential generator for draws that belong to nobody (splits, initial factors)."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest, dtype="<u8")))


def integer_weights(random_words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Map words to integers uniform on 0 to `DRAWS` - 1."""
    return random_words >> np.uint64(64 - DRAW_BITS)


def coins(heads: NDArray[np.uint64], random_words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return True with probability ``heads / DRAWS``, one coin per word.

    Parameters
    ----------
    heads : ndarray of uint64, shape (words,)
        From 0 (never) to `DRAWS` (always).
    random_words : ndarray of uint64, shape (words,)
    """
    return integer_weights(random_words) < heads


def uniform_below(limit: int, random_words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return integers uniform on 0 to ``limit`` - 1, up to 2**31, one per word.

    No number is more likely than another by more than 2**-32.
    """
    return ((random_words >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32)).astype(np.int64)


def uniforms(random_words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Map words to floating-point numbers uniform on [0, 1), 53 bits each."""
    return (random_words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def categories(cumulative: NDArray[np.float64], draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the category of each draw; the number of categories if it is past the last sum.

    Parameters
    ----------
    cumulative : ndarray of float64, shape (categories,)
        Sums of the probabilities, in the units of the draws.
    draws : ndarray of float64
        Uniform on [0, 1), or on any range from 0.
    """
    return np.searchsorted(cumulative, draws, side="right")


def subset(size: int, random_words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Choose ``size`` of all indices, all subsets equally likely; return a mask, shape (words,)."""
    chosen = np.ones(random_words.size, dtype=np.bool_)
    chosen[np.argsort(random_words, kind="stable")[size:]] = False
    return chosen


def shuffled_within(groups: NDArray[np.integer], random_words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return all indices ordered by group, in random order within a group."""
    return np.lexsort((random_words, groups))
