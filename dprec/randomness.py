"""Counter-based randomness: a draw depends on whose it is, never on who computed it.

Philox is keyed by the seed, the purpose of the draws and the round; the counter is the global index
of the cell or user that the draw belongs to. A cohort reads just the stretch that its users own, so
any division of the users over nodes, workers or machines gives the same bits.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_WORDS_PER_BLOCK = 4


def words(seed: int, purpose: str, start: int, count: int, *, round_index: int = 0) -> NDArray[np.uint64]:
    """Return the random words that belong to the global indices start to start + count.

    Parameters
    ----------
    seed : int
        The seed of the run.
    purpose : str
        What the draws are for; different purposes never share a draw.
    start, count : int
        First global index and number of indices.
    round_index : int
        The round of the protocol.

    Returns
    -------
    ndarray of uint64, shape (count,)
        Independent and uniform on all 64 bits (Salmon et al., "Parallel random numbers: as easy as
        1, 2, 3", SC 2011).
    """
    digest = hashlib.blake2b(f"{seed}/{purpose}/{round_index}".encode(), digest_size=16).digest()
    block, skipped = divmod(start, _WORDS_PER_BLOCK)
    generator = np.random.Philox(key=np.frombuffer(digest, dtype="<u8"), counter=block)
    return generator.random_raw(skipped + count)[skipped:]


def uniforms(random_words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Map words to floating-point numbers uniform on [0, 1), 53 bits each."""
    return (random_words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a sequential generator for draws that belong to nobody (splits, initial factors)."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest, dtype="<u8")))
