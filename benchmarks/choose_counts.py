"""Chooses what is counted instead of sent as bits: RMSE on validation ratings of MovieLens 100K.

    python benchmarks/choose_counts.py [--path ../shared/data/ml-100k] [--draws 5] [--slopes 10] [--items]

The validation ratings are those of choose_on_device.py: no test rating is read. The first row of every
epsilon has a bit about every rating; the others have counts of the shares that have no bit, in one group of
items or in several of about the same popularity.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from choose_on_device import validation_split
from threadpoolctl import threadpool_limits

from dprec.accounting import PrivacyBudget
from dprec.completion import Calibrated
from dprec.datasets import MovieLens100K
from dprec.mechanisms import BitsAndCounts, Mechanism, ThresholdBit
from dprec.metrics import root_mean_squared_error
from dprec.observations import Observations
from dprec.randomness import DeviceDraws
from dprec.ratings import Ratings
from dprec.reports import Profiles, Wanted
from simulation import load

PROTOCOL: Any = load("counts-and-bits").protocol
COMPLETION: Calibrated = PROTOCOL.completion
SHARES, GROUPS = (0.2, 0.3, 0.5), (1, 2, 4)


def received(mechanism: Mechanism, epsilon: float, learned: Ratings, draw: int) -> Observations:
    """Return what the server has after both exchanges."""
    family = mechanism.family(PrivacyBudget(epsilon=epsilon), learned.scale, learned.n_items)
    profiles = Profiles(learned.counts, learned.items, learned.levels)
    everybody, master = np.arange(learned.n_users), draw.to_bytes(16, "little")
    draws = partial(
        DeviceDraws.of, master, 0, learned.indptr, learned.items, learned.scale.values[learned.levels - 1]
    )
    reader = family.reader(learned.n_users, Wanted(symbols=True))
    reader.take(everybody, family.encode(profiles, draws))
    if family.follow_up is None:
        return reader.observations()
    asking = family.follow_up.asking(reader.observations())
    asking.take(everybody, family.follow_up.encode(profiles, asking.question, draws))
    return asking.observations()


def error(completion: Calibrated, seen: Observations, validation: Ratings) -> float:
    """Return the RMSE of the server's predictions."""
    model = completion.fit(seen, seed=1)
    return root_mean_squared_error(model.predict(validation.users, validation.items), validation.values)


def main() -> None:
    """Print the mean RMSE of every setting, and its standard error over the draws."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--draws", type=int, default=5, help="draws of the noise")
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0, 1.6])
    arguments.add_argument("--slopes", type=int, default=0, help="dimensions of users' slopes")
    arguments.add_argument("--items", action="store_true", help="use the films' years and genres")
    chosen = arguments.parse_args()
    completion = replace(COMPLETION, slopes=chosen.slopes)
    dataset = MovieLens100K(path=chosen.path, items=chosen.items)
    learned, validation = validation_split(*dataset.load_fold("u1"))
    catalogue = dataset.catalogue(learned.item_ids)
    mechanisms: dict[str, Mechanism] = {"bits alone": ThresholdBit()}
    for groups in GROUPS:
        for share in SHARES:
            mechanisms[f"bits {share:g}, groups {groups}"] = BitsAndCounts(bits=share, groups=groups)
    with threadpool_limits(limits=1):
        for epsilon in chosen.epsilons:
            for name, mechanism in mechanisms.items():
                errors = []
                for draw in range(chosen.draws):
                    seen = received(mechanism, epsilon, learned, draw)
                    errors.append(error(completion, replace(seen, catalogue=catalogue), validation))
                spread = np.std(errors, ddof=1) / np.sqrt(chosen.draws)
                print(
                    f"epsilon {epsilon:<4g} {name:20s} RMSE {np.mean(errors):.4f} +- {spread:.4f}", flush=True
                )


if __name__ == "__main__":
    main()
