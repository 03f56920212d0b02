"""RMSE of private alternating least squares against epsilon per user, and how far it is from no noise at all.

    python benchmarks/choosing/private_als.py [--path ../shared/data/ml-100k] [NAME ...]

NAME is one of

planted : 100,000 users and 1,682 items with a planted matrix of rank 3; fails if epsilon 1 costs over 10 %.
generated : as many ratings as MovieLens 1M has: 6,040 users, 3,706 items, 1,000,000 ratings.
movielens : MovieLens 100K, fold u1.

For item biases alone and with factors: a figure for each epsilon, at delta 1e-6, and one without noise.
"nothing sent" is what devices predict alone. Seed 1; a fifth of generated ratings is for testing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from validation import Parts, measured

from dprec.datasets import MovieLens100K, Synthetic
from dprec.splits import Holdout

_MANY = (1.0, 2.0, 5.0, 10.0, 20.0)
EPSILONS = {"planted": (1.0,), "generated": _MANY, "movielens": _MANY}
ALLOWED = 1.1
"""How many times the error without noise the planted matrix's error may be at an epsilon of 1."""


def parts(name: str, folder: str) -> Parts:
    """Return train and test ratings."""
    if name == "movielens":
        return MovieLens100K(path=folder).load_fold("u1")
    if name == "planted":
        return Holdout().split(Synthetic(users=100_000, items=1682, ratings=5_000_000, rank=3), 1)
    return Holdout().split(Synthetic(users=6040, items=3706, ratings=1_000_000), 1)


def row(title: str, epsilons: Sequence[float], metric: Callable[[dict[str, Any]], float]) -> list[float]:
    """Print the figures of a preset; return them, the one without noise last."""
    settings: dict[str, dict[str, Any]] = {
        **{f"{epsilon:g}": {"protocol.privacy.epsilon": epsilon} for epsilon in epsilons},
        "no noise": {"protocol.privacy": "null"},
    }
    figures = []
    for name, own in settings.items():
        figures.append(metric(own))
        print(f"  {title}, {name}: {figures[-1]:.4f}", flush=True)
    return figures


def main() -> int:
    """Print every figure; return 1 if noise costs more than is allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    parser.add_argument("names", nargs="*", default=list(EPSILONS), help=f"of {', '.join(EPSILONS)}")
    given, kept = parser.parse_args(), True
    for name in given.names:
        began, both = time.perf_counter(), parts(name, given.path)
        print(f"{name}: {both[0].n_users} users, {both[0].count} train ratings", flush=True)

        alone = measured("nothing-sent", {}, both, 1)
        print(f"  nothing sent: {alone:.4f}", flush=True)
        row("item biases", EPSILONS[name], partial(measured, "dp-item-effects", parts=both, seed=1))
        figures = row("with factors", EPSILONS[name], partial(measured, "dp-als", parts=both, seed=1))
        ratio = figures[0] / figures[-1]
        kept &= name != "planted" or ratio <= ALLOWED
        print(f"  epsilon 1 over no noise: {ratio:.3f} ({time.perf_counter() - began:.0f} s)", flush=True)
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
