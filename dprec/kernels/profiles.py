"""Loops that make up profiles: which items users have, and what they think of them."""

import numpy as np

from dprec.arrays import Floats, Int32s, Ints
from dprec.kernels.compilation import Table, Written, compiled


@compiled
def draw_distinct(
    items: Written[Int32s],
    missing: Written[Ints],
    holders: Written[Int32s],
    indptr: Ints,
    users: Ints,
    available: Ints,
    thresholds: Floats,
    guide: Int32s,
    draws: Floats,
) -> None:
    """Add the items of some draws, one for each that is missing, but for those that the user has already.

    ``missing``: how many each user misses, at the end of its cells; ``holders``: by item, a user who has it;
    ``available``: how many of the items, the first of all, each of ``users`` can have. The guide says by the
    first bits of a draw where the search begins (as in `dprec.kernels.draws.invert`).
    """
    used = 0
    for row in range(users.size):
        user, last = users[row], available[row] - 1
        place = indptr[user + 1] - missing[user]
        for cell in range(indptr[user], place):
            holders[items[cell]] = user
        for at in range(used, used + missing[user]):
            draw = thresholds[last] * draws[at]
            item = min(np.int64(guide[int(draw * guide.size)]), last)
            while item < last and thresholds[item] <= draw:
                item += 1
            if holders[item] != user:
                holders[item] = user
                items[place] = item
                place += 1
        used += missing[user]
        missing[user] = indptr[user + 1] - place


@compiled
def add_opinions(
    opinions: Written[Floats],
    indptr: Ints,
    items: Int32s,
    user_biases: Floats,
    item_biases: Floats,
    user_factors: Table[Floats],
    item_factors: Table[Floats],
    noise: float,
) -> None:
    """Make opinions of standard normal deviates: the biases, the inner product of the factors, and noise."""
    for user in range(indptr.size - 1):
        for cell in range(indptr[user], indptr[user + 1]):
            item, product = items[cell], 0.0
            for k in range(user_factors.shape[1]):
                product += user_factors[user, k] * item_factors[item, k]
            biases = user_biases[user] + item_biases[item]
            opinions[cell] = biases + product + noise * opinions[cell]
