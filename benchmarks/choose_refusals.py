"""Holds the constants of `dprec.personalization.refusals` against others, by the bias of item means.

    python benchmarks/choose_refusals.py [--path ../shared/data/ml-100k]

Reports are on the train ratings of MovieLens 100K (u1), and so is what they are held against: how much higher
the items of these ratings are predicted for newcomers than they were rated. Choices are at random, or those
of critics or fans who refuse; each completion is fitted once, and the constants only move what follows it.
Each is halved and doubled; fails if one of these lowers the mean absolute bias by more than 0.02 stars.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
from validation import arguments

from dprec.accounting import BudgetChoice, OwnBudgets
from dprec.arrays import Ints, offsets
from dprec.completion import Calibrated
from dprec.datasets import MovieLens100K
from dprec.mechanisms import FisherOptimal
from dprec.observations import Observations
from dprec.personalization import OrdinalProcess, TableOptions, broadcast_of, for_everybody, refusals
from dprec.randomness import DeviceDraws
from dprec.ratings import Ratings
from dprec.reports import Profiles, Wanted
from dprec.wire import ItemTable
from simulation.protocols.one_shot import bias_of_item_means

MIXED, HALF = {0: 0.2, 0.1: 0.3, 1: 0.4, 3: 0.1}, {0: 0.5, 1: 0.5}
CHOICES = (
    (MIXED, None),
    (MIXED, BudgetChoice(by="taste")),
    (MIXED, BudgetChoice(by="taste", strength=-1.0)),
    (HALF, None),
    (HALF, BudgetChoice(by="taste")),
)
CONSTANTS = ("_PUBLIC", "_OFF_THE_LINE", "_SLOPE", "_GROUP")
SEEDS = (1, 2, 3)
TOLERANCE = 0.02

Case = tuple[ItemTable, Observations, Ints]


def reported(train: Ratings, budgets: OwnBudgets, seed: int) -> tuple[Observations, Ints]:
    """Return what arrives of users who have chosen, and the numbers of their budgets."""
    numbers = budgets.chosen(train.counts, train.user_means(), seed)
    family = FisherOptimal(histogram="netflix").family(budgets, train.scale, train.n_items)
    master, ends = seed.to_bytes(16, "little"), offsets(train.counts)
    draws = partial(DeviceDraws.of, master, 0, ends, train.items, train.values)
    reports = family.encode(Profiles(train.counts, train.items, train.levels, numbers), draws)
    senders = np.flatnonzero(numbers > 0)
    reader = family.reader(train.n_users, Wanted(symbols=True))
    reader.take(senders, [reports[user] for user in senders.tolist()])
    return reader.observations(), numbers.astype(np.int64)


def cases(train: Ratings) -> Iterator[Case]:
    """Yield tables as they follow from reports, with these and the numbers of the budgets."""
    completion = Calibrated(histogram="netflix", factors=5)
    for shares, choice in CHOICES:
        for seed in SEEDS:
            seen, numbers = reported(train, OwnBudgets.of(shares, choice=choice), seed)
            table = broadcast_of(completion.fit(seen, seed), seen, TableOptions(), seed)
            before = bias_of_item_means(OrdinalProcess(), table, train)
            after = bias_of(train, (table, seen, numbers))
            by = "at random" if choice is None else f"by taste {choice.strength:+g}"
            print(f"{shares} {by}, seed {seed}: {before:+.3f} before, {after:+.3f} after", flush=True)
            yield table, seen, numbers


def bias_of(train: Ratings, case: Case) -> float:
    """Return the bias of the corrected table."""
    table, seen, numbers = case
    corrected = for_everybody(table, seen, numbers, public=True)
    return bias_of_item_means(OrdinalProcess(), corrected, train)


def main() -> int:
    """Print all biases; return 1 if a constant does not stand."""
    path, _ = arguments(__doc__, ())
    train, _ = MovieLens100K(path=path).load_fold("u1")
    every = list(cases(train))

    def error() -> float:
        return float(np.mean([abs(bias_of(train, case)) for case in every]))

    chosen, failed = error(), False
    print(f"as they are: {chosen:.4f}")
    for name in CONSTANTS:
        own = getattr(refusals, name)
        for factor in (0.5, 2.0):
            setattr(refusals, name, factor * own)
            other = error()
            failed |= other < chosen - TOLERANCE
            print(f"{name} {factor * own:g} for {own:g}: {other:.4f}", flush=True)
        setattr(refusals, name, own)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
