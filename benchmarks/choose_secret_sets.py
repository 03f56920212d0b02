"""Chooses what the sums of best-secret-set spend, on validation ratings of MovieLens 100K.

    python benchmarks/choose_secret_sets.py [--path ../shared/data/ml-100k] [NAME ...]

Each name is a number of users at an epsilon of 1. What counts is tau, the noise per number and user, so a
larger population is the 943 users of u1.base at the budget that gives them its tau: as if every user were
there several times. That is unfair to sums of tastes and profiles, which copies teach nothing new. A tenth of
u1.base judges; figures are RMSE of three such draws.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from validation import Parts, arguments, best_of, measured, tenth_of_u1

from dprec.secret_sets.settings import split_at
from dprec.sums import TrustedAggregation

DELTA = 1e-6
TRIED: dict[str, tuple[tuple[float, ...], ...]] = {
    "943": (
        (0.4, 0.15, 0.3, 0.15, 0.0, 0.0, 0.0, 0.0),
        (0.2, 0.15, 0.5, 0.15, 0.0, 0.0, 0.0, 0.0),
        (0.35, 0.1, 0.3, 0.15, 0.1, 0.0, 0.0, 0.0),
        (0.4, 0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 0.0),
    ),
    "6040": (
        (0.4, 0.15, 0.3, 0.15, 0.0, 0.0, 0.0, 0.0),
        (0.2, 0.1, 0.6, 0.1, 0.0, 0.0, 0.0, 0.0),
        (0.2, 0.1, 0.35, 0.05, 0.3, 0.0, 0.0, 0.0),
        (0.2, 0.1, 0.2, 0.05, 0.45, 0.0, 0.0, 0.0),
        (0.05, 0.1, 0.3, 0.05, 0.3, 0.2, 0.0, 0.0),
    ),
    "20000": (
        (0.2, 0.1, 0.35, 0.05, 0.3, 0.0, 0.0, 0.0),
        (0.1, 0.1, 0.25, 0.05, 0.3, 0.2, 0.0, 0.0),
        (0.05, 0.05, 0.2, 0.05, 0.1, 0.1, 0.15, 0.3),
    ),
    "100000": (
        (0.05, 0.1, 0.3, 0.05, 0.5, 0.0, 0.0, 0.0),
        (0.05, 0.1, 0.3, 0.05, 0.3, 0.2, 0.0, 0.0),
        (0.05, 0.05, 0.2, 0.05, 0.1, 0.1, 0.15, 0.3),
        (0.05, 0.05, 0.15, 0.05, 0.1, 0.1, 0.15, 0.35),
    ),
}


def epsilon_of(users: float, among: int) -> float:
    """Return the epsilon at which so many users have the tau that others have at an epsilon of 1."""
    central = TrustedAggregation()
    return central.epsilon(_OF_DEVICES * central.multiplier(1.0, DELTA) * among / users, DELTA)


_OF_DEVICES = 1.134
"""Noise of Skellam shares of which a tenth, and those of 5 colluders, may be missing."""


def judged(folder: str, name: str, draws: list[Parts], settings: dict[str, Any]) -> list[float]:
    """Return the RMSE on every draw of the split of a number in `TRIED`."""
    split, users = TRIED[name][settings["split"]], float(name)
    own = {
        "dataset": f"{{kind: movielens-100k, path: {folder}, items: true}}",
        "protocol.aggregation": "{kind: trusted}",
        "protocol.privacy.epsilon": epsilon_of(users, draws[0][0].n_users),
        "protocol.sums.split": list(split),
    }
    return [measured("best-secret-set", own, parts, seed) for seed, parts in enumerate(draws, start=1)]


def main() -> int:
    """Print every figure; return 1 if the public rule does not stand."""
    folder, names = arguments(__doc__, list(TRIED))
    draws, agree = [tenth_of_u1(folder, seed) for seed in (1, 2, 3)], True
    for name in names:
        tau = TrustedAggregation().multiplier(1.0, DELTA) / float(name)
        current = TRIED[name].index(split_at(tau))
        places = {"split": tuple(range(len(TRIED[name])))}
        agree &= best_of(name, places, partial(judged, folder, name, draws), {"split": current})
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
