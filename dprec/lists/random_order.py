"""Orders of items that say nothing of anybody."""

import numpy as np

from dprec.arrays import AnyInts, Floats
from dprec.randomness import threefry, uniforms


def uniform_order(public_seed: int, users: AnyInts, items: AnyInts) -> Floats:
    """Return numbers from 0 to 1 that order all items of each user at random, for all who know the seed.

    ``users``, ``items``: of the same shape, which is that of the result.
    """
    low, high = items.ravel(), users.ravel()
    keys = np.zeros((2, low.size), dtype=np.uint64)
    keys[0] = public_seed & ((1 << 64) - 1)
    return uniforms(threefry(keys, low, high)[0]).reshape(items.shape)
