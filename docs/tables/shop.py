"""Writes what made-up customers of a shop bought, which nobody published, as a file of pairs.

    python -m docs.tables.shop [-o pairs.csv] [--customers 20000] [--products 3000] [--seed 1]
    dprec compare pairs.csv -o shop

Every customer buys ten products. The weights of products are their ranks to the power of -0.65, in random
order. Each is in one of 30 groups; a customer likes two groups, whose products are 20 times as likely, and
draws without replacement. So popularity alone misses what a table of pairs or groups can learn.
"""

from __future__ import annotations

import argparse

import numpy as np

from dprec.arrays import Ints

PURCHASES, GROUPS, LIKED = 10, 30, 2
POWER, LIKELIER = -0.65, 20.0
_CUSTOMERS_AT_ONCE = 2000


def bought(customers: int, products: int, seed: int) -> Ints:
    """Return what each customer bought, ascending; shape (customers, `PURCHASES`)."""
    random = np.random.default_rng(seed)
    weights = POWER * np.log(random.permutation(np.arange(1, products + 1)))
    groups = random.integers(0, GROUPS, products)
    likes = np.zeros((customers, GROUPS))
    liked = random.random((customers, GROUPS)).argsort(axis=1)[:, :LIKED]
    np.put_along_axis(likes, liked, np.log(LIKELIER), axis=1)
    found = []
    for first in range(0, customers, _CUSTOMERS_AT_ONCE):
        # The largest of independent Gumbel variables, each on a logarithm, are a draw without replacement.
        scores = likes[first : first + _CUSTOMERS_AT_ONCE][:, groups] + weights
        scores += random.gumbel(size=scores.shape)
        found.append(np.sort(np.argpartition(-scores, PURCHASES, axis=1)[:, :PURCHASES], axis=1))
    return np.concatenate(found)


def main() -> None:
    """Write the pairs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("-o", "--output", default="pairs.csv")
    parser.add_argument("--customers", type=int, default=20_000)
    parser.add_argument("--products", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sets = bought(options.customers, options.products, options.seed)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write("user,item\n")
        file.writelines(f"{user},{item}\n" for user, items in enumerate(sets) for item in items)


if __name__ == "__main__":
    main()
