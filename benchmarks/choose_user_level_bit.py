"""Shows what answers about whole profiles buy on validation ratings of MovieLens 100K, by budget and users.

    python benchmarks/choose_user_level_bit.py [--path ../shared/data/ml-100k] [--users 943 6040] [--draws 2]

The ratings are those of benchmarks/choose_on_device.py; no test rating is read. Larger populations are users
drawn again with all their ratings: devices of the 943 users predict from what so many report. Columns are the
defaults, and what differs from them in one thing. The first line is without reports, the second with the
exact numbers of users above and below their means, of infinitely many users.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from choose_on_device import error, validation_split
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets, rows_of
from dprec.completion import CalibratedModel
from dprec.datasets import MovieLens100K
from dprec.mechanisms.thresholds import UserLevelBit
from dprec.observations import Observations, ProfileReports
from dprec.randomness import generator, words
from dprec.ratings import Ratings
from dprec.reports import ProfileFamily
from simulation import load

EPSILONS, AT_ONCE = (1.0, 2.0, 4.0, 8.0, 20.0), 20_000
PROTOCOL: Any = load("user-level-bit").protocol


def mechanisms(epsilon: float) -> Iterator[tuple[str, UserLevelBit]]:
    """Yield the defaults, and what differs from them in one thing."""
    usual = UserLevelBit()
    yield "default", usual
    yield "profile 32", UserLevelBit(profile=32)
    yield "profile 128", UserLevelBit(profile=128)
    if usual.asked(epsilon) > 1:
        yield "fewer answers", UserLevelBit(answers=usual.asked(epsilon) - 1)
    yield "more answers", UserLevelBit(answers=usual.asked(epsilon) + 1)


def drawn_again(learned: Ratings, users: int, draw: int) -> NDArray[np.int64]:
    """Return the users of a population, each some user of the data."""
    if users == learned.n_users:
        return np.arange(users)
    return generator(draw, "users").integers(0, learned.n_users, users)


def reported(learned: Ratings, calibrated: ProfileFamily, users: int, draw: int) -> ProfileReports:
    """Return what a population answers."""
    code, people = calibrated.code, drawn_again(learned, users, draw)
    counts, elements = calibrated.elements(learned.counts, learned.items, learned.levels)
    starts, total = offsets(counts), np.zeros(code.elements, dtype=np.int64)
    for first in range(0, users, AT_ONCE):
        part = people[first : first + AT_ONCE]
        sizes = counts[part]
        cells = np.arange(sizes.sum()) + (starts[part] - offsets(sizes)[:-1])[rows_of(sizes)]
        for answer in range(calibrated.answers):
            choice, noise = (
                words(draw, f"{purpose} {answer}", first, part.size) for purpose in ("choice", "noise")
            )
            total += code.counted(code.answers(sizes, elements[cells], choice, noise))
    return calibrated.profile_reports(total, users * calibrated.answers)


def judged(learned: Ratings, validation: Ratings, reports: ProfileReports) -> float:
    """Return the RMSE of devices behind what a server makes of answers."""
    nothing = np.zeros(0, dtype=np.int32)
    seen = Observations.of(
        nothing,
        nothing,
        np.zeros(0),
        (learned.n_users, learned.n_items),
        learned.scale,
        evidence=reports,
    )
    model: CalibratedModel = PROTOCOL.completion.fit(seen, seed=1)
    return error(model, PROTOCOL.process, learned, validation)


def exact(learned: Ratings, answers: int) -> ProfileReports:
    """Return so many answers about single ratings of all users, without noise, rounded."""
    budget = PrivacyBudget(epsilon=4.0, per="user")
    calibrated = ProfileFamily(UserLevelBit(), budget, learned.scale, learned.n_items)
    _, elements = calibrated.elements(learned.counts, learned.items, learned.levels)
    shares = np.bincount(elements, minlength=2 * learned.n_items) / learned.n_users
    pairs = np.rint(answers * (1e-6 + 0.01 * shares)).astype(np.int64).reshape(-1, 2)
    return ProfileReports(pairs[:, 1], pairs[:, 0], answers, (1e-6, 1e-6), 0.01)


def main() -> None:
    """Print the mean RMSE of every mechanism at every budget, for every population."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--users", type=int, nargs="+", default=[943, 6040, 100_000])
    arguments.add_argument("--draws", type=int, default=2, help="draws of the noise")
    arguments.add_argument("--defaults", action="store_true", help="no other mechanisms than the default")
    chosen = arguments.parse_args()
    learned, validation = validation_split(*MovieLens100K(path=chosen.path).load_fold("u1"))
    with threadpool_limits(limits=1):
        none = np.zeros(learned.n_items, dtype=np.int64)
        print(f"no reports {judged(learned, validation, ProfileReports(none, none, 1, (0, 0), 0.01)):.4f}")
        print(f"exact {judged(learned, validation, exact(learned, 10**12)):.4f}")
        for users in chosen.users:
            for epsilon in EPSILONS:
                print(f"{users:,} users, epsilon {epsilon:g} per user:", end="")
                for name, mechanism in mechanisms(epsilon):
                    if chosen.defaults and name != "default":
                        continue
                    budget = PrivacyBudget(epsilon=epsilon, per="user")
                    calibrated = ProfileFamily(mechanism, budget, learned.scale, learned.n_items)
                    errors = [
                        judged(learned, validation, reported(learned, calibrated, users, draw))
                        for draw in range(chosen.draws)
                    ]
                    print(f"  {name} {np.mean(errors):.4f}", end="", flush=True)
                print()


if __name__ == "__main__":
    main()
