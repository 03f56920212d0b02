"""What devices predict from few own ratings, and who is worse off than alone: RMSE on MovieLens 100K.

    python benchmarks/newcomers.py [--path ../shared/data/ml-100k] [--epsilon 1] [--seeds 3] [--choose]

Newcomers: ratings come in periods of 7 days. A newcomer of a period has no rating before it. Its device has
the table that was learned from all earlier periods, by one-bit-on-device with years and genres, every rating
answered once; and it is given the user's first k ratings by time, in a random order within a second (half of
the ratings share theirs with another, and in the order of the catalogue known films would come first). Judged
are the newcomer's other ratings of that period: those after the first k, and, so that the k are comparable,
those after the first 50, the same for every k, with the standard error over users of the difference to k = 0.

Alone: five random folds, so that each rating is predicted once, by devices that have the table of the other
ratings, and by devices that nothing was sent to or by (nothing-sent without public data). By quarters of
users, by number of ratings: RMSE, users with the larger squared error, and how many that would be by chance
if all of the quarter gained as much as the mean.

With --choose, the ratings of u1's test are left out of everything, and the constants that matter to
newcomers take other values. Fails if another value of one is better by more than 0.002 in the mean over k and
the folds.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from choose_on_device import COMPLETION, PROCESS, PROTOCOL
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dprec import groups
from dprec.accounting import PrivacyBudget
from dprec.catalogue import Catalogue
from dprec.completion import own_averages
from dprec.datasets import MovieLens100K
from dprec.observations import Observations
from dprec.personalization import Devices, OrdinalProcess
from dprec.personalization.broadcast import calibrated_broadcast
from dprec.randomness import generator, words
from dprec.ratings import Ratings
from dprec.reports import CellFamily
from dprec.schedules.periods import Periods
from dprec.wire import ItemTable
from simulation.protocols.baselines import NothingSentProtocol

GIVEN = (0, 1, 2, 5, 20, 50)
POSITIONS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 1000)
FOLDS, QUARTERS, TOLERANCE = 5, 4, 0.002
OTHER_VALUES = {"level": (0.1, 0.4), "agreement": (0.0, 0.05, 0.2)}

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Answered:
    """Ratings, each with its one answer, whenever that is read."""

    ratings: Ratings
    catalogue: Catalogue | None
    family: CellFamily
    words: NDArray[np.uint64]

    @classmethod
    def of(cls, ratings: Ratings, catalogue: Catalogue | None, epsilon: float, seed: int) -> Answered:
        """Draw the answers."""
        budget = PrivacyBudget(epsilon=epsilon)
        family = CellFamily(PROTOCOL.mechanism, budget, ratings.scale, ratings.n_items)
        return cls(ratings, catalogue, family, words(seed, "reports", 0, ratings.count))

    def table(self, kept: Bools) -> ItemTable:
        """Return what devices decode of the table learned from some ratings."""
        part = self.ratings.select(kept)
        symbols = self.family.perturb(part.counts, part.levels, self.words[kept])
        seen = Observations.of(
            part.users.astype(np.int32),
            part.items,
            self.family.read(part.counts, symbols),
            (part.n_users, part.n_items),
            part.scale,
            evidence=self.family.evidence_of(part.counts, symbols, part.counts >= 0),
        )
        model = COMPLETION.fit(replace(seen, catalogue=self.catalogue), seed=1)
        sent = calibrated_broadcast(model, part).encode()
        return ItemTable.decode(sent, n_levels=part.scale.levels, n_items=part.n_items)


def errors(process: OrdinalProcess, table: ItemTable, held: Ratings, asked: Ratings) -> Floats:
    """Return rating minus prediction of what is asked, on devices that hold some ratings."""
    predicted = Devices(process, table, held).predict(asked.users, asked.items)
    missed: Floats = asked.values - np.clip(predicted, asked.scale.low, asked.scale.high)
    return missed


@dataclass(frozen=True, eq=False)
class Weekly:
    """What newcomers of every period are predicted, given the tables learned before."""

    periods: Periods
    tables: list[ItemTable]

    @classmethod
    def of(cls, answered: Answered, seed: int) -> Weekly:
        """Learn the tables."""
        ratings = answered.ratings
        assert ratings.times is not None
        within_second = generator(seed, "ties").random(ratings.count)
        periods = Periods.of(replace(ratings, times=ratings.times + within_second / 2), days=7)
        return cls(periods, [answered.table(periods.held(each)) for each in range(periods.count - 1)])

    def judged(self, given: int, process: OrdinalProcess) -> tuple[NDArray[np.int64], Floats]:
        """Return the places of the judged ratings among all, and their errors."""
        ratings, places, missed = self.periods.ratings, [], []
        for period, table in enumerate(self.tables):
            first, rest = self.periods.newcomers(period, given)
            if rest.any():
                places.append(np.flatnonzero(rest))
                missed.append(errors(process, table, ratings.select(first), ratings.select(rest)))
        return np.concatenate(places), np.concatenate(missed)

    def on_all(self, given: int, process: OrdinalProcess) -> Floats:
        """Return the errors by place; NaN where none is judged."""
        by_place = np.full(self.periods.ratings.count, np.nan)
        places, missed = self.judged(given, process)
        by_place[places] = missed
        return by_place


def print_newcomers(weekly: Weekly) -> None:
    """Print the figures of every k, and the mean errors by position given nothing."""
    users = weekly.periods.ratings.users
    by_given = {given: weekly.on_all(given, PROCESS) for given in GIVEN}
    same = np.flatnonzero(~np.isnan(by_given[GIVEN[-1]]))
    for given, missed in by_given.items():
        squares = missed[same] ** 2 - by_given[0][same] ** 2
        of_users = np.bincount(users[same], squares - squares.mean())
        root = np.sqrt((missed[same] ** 2).mean())
        scatter = np.sqrt((of_users**2).sum()) / same.size / (2 * root)
        print(
            f"  {given:3d} own ratings: RMSE of those after {root_of(missed):.4f}, mean error "
            f"{np.nanmean(missed):+.3f}; RMSE of the same {root:.4f}, to none "
            f"{squares.mean() / (2 * root):+.4f} +- {scatter:.4f}"
        )
    nothing = by_given[0]
    newcomers = np.flatnonzero(~np.isnan(nothing))
    in_order = weekly.periods.order[np.isin(weekly.periods.order, newcomers)]
    own = np.bincount(users[in_order], minlength=weekly.periods.ratings.n_users)
    position = np.arange(in_order.size) - np.repeat(np.cumsum(own) - own, own)
    for low, high in itertools.pairwise(POSITIONS):
        there = nothing[in_order[(position >= low) & (position < high)]]
        print(f"  ratings {low + 1} to {high}: {there.size}, mean error {there.mean():+.3f}")


def root_of(missed: Floats) -> float:
    """Return the RMSE of what is judged."""
    return float(np.sqrt(np.nanmean(missed**2)))


@dataclass(frozen=True, eq=False)
class Folded:
    """Five folds, and the table that is learned without each."""

    ratings: Ratings
    fold: NDArray[np.int64]
    tables: list[ItemTable]

    @classmethod
    def of(cls, answered: Answered, seed: int) -> Folded:
        """Learn the tables."""
        fold = generator(seed, "folds").integers(FOLDS, size=answered.ratings.count)
        return cls(answered.ratings, fold, [answered.table(fold != each) for each in range(FOLDS)])

    def parts(self) -> Iterator[tuple[Bools, ItemTable, Ratings, Ratings]]:
        """Yield which ratings each fold asks about, its table, and what devices hold and are asked."""
        for each, table in enumerate(self.tables):
            asked = self.fold == each
            yield asked, table, self.ratings.select(~asked), self.ratings.select(asked)

    def missed(self, process: OrdinalProcess) -> Floats:
        """Return the errors on all ratings."""
        missed = np.empty(self.ratings.count)
        for asked, table, held, questions in self.parts():
            missed[asked] = errors(process, table, held, questions)
        return missed

    def missed_alone(self) -> Floats:
        """Return the errors of devices that nothing is sent to."""
        missed = np.empty(self.ratings.count)
        weight = NothingSentProtocol().prior_ratings
        middle = (self.ratings.scale.low + self.ratings.scale.high) / 2
        for asked, _, held, questions in self.parts():
            own = own_averages(held, middle, weight)
            missed[asked] = questions.values - own.predict(questions.users, questions.items)
        return missed


def print_alone(folded: Folded) -> None:
    """Print who is worse off than alone, by quarters."""
    users, counts = folded.ratings.users, folded.ratings.counts
    squares, alone = folded.missed(PROCESS) ** 2, folded.missed_alone() ** 2
    gains = np.bincount(users, alone - squares, minlength=counts.size)
    scatter = np.bincount(users, (alone - squares) ** 2, minlength=counts.size)
    quarter = np.argsort(np.argsort(counts, kind="stable")) * QUARTERS // counts.size
    for name, members in (
        ("all users", counts > 0),
        *((f"quarter {each + 1}", (quarter == each) & (counts > 0)) for each in range(QUARTERS)),
    ):
        of_group = members[users]
        found = groups._worse(counts[members].astype(np.float64), gains[members], scatter[members])
        print(
            f"  {name}: RMSE {np.sqrt(squares[of_group].mean()):.4f}, "
            f"alone {np.sqrt(alone[of_group].mean()):.4f}, worse off {100 * found['worse']:.1f} %, "
            f"by chance {100 * found['worse_by_chance']:.1f} %"
        )


def constants_stand(weekly: list[Weekly], folded: list[Folded]) -> bool:
    """Print the figures of every value of every constant; return whether those that dprec has stand."""

    def figure(process: OrdinalProcess) -> float:
        of_newcomers = [[root_of(each.judged(given, process)[1]) for each in weekly] for given in GIVEN]
        own = [float(np.mean(row)) for row in of_newcomers]
        own.append(float(np.mean([root_of(each.missed(process)) for each in folded])))
        print(*(f"{each:.4f}" for each in own), f"mean {np.mean(own):.4f}", flush=True)
        return float(np.mean(own))

    stand = True
    for name, others in OTHER_VALUES.items():
        print(f"{name} {getattr(PROCESS, name):g}", end=": ")
        present = figure(PROCESS)
        for value in others:
            print(f"{name} {value:g}", end=": ")
            changed: Any = {name: value}
            stand &= present - figure(replace(PROCESS, **changed)) <= TOLERANCE
    return stand


def without_tested(ratings: Ratings, path: str) -> Ratings:
    """Leave out the ratings of u1's test, by their identifiers."""
    _, test = MovieLens100K(path=path).load_fold("u1")
    users = np.searchsorted(ratings.user_ids, test.user_ids[test.users])
    items = np.searchsorted(ratings.item_ids, test.item_ids[test.items])
    cells = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    return ratings.select(~np.isin(cells, users * ratings.n_items + items))


def main() -> int:
    """Print all figures; return 1 if a constant does not stand."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    arguments.add_argument("--epsilon", type=float, default=1.0, help="of one rating")
    arguments.add_argument("--seeds", type=int, default=3, help="draws of answers, folds and ties")
    arguments.add_argument("--choose", action="store_true", help="hold constants against other values")
    chosen = arguments.parse_args()
    dataset = MovieLens100K(path=chosen.path, items=True)
    ratings = dataset.load_timed()
    if chosen.choose:
        ratings = without_tested(ratings, chosen.path)
    seeds = range(1, chosen.seeds + 1)
    catalogue = dataset.catalogue(ratings.item_ids)
    answered = {seed: Answered.of(ratings, catalogue, chosen.epsilon, seed) for seed in seeds}
    if chosen.choose:
        weekly = [Weekly.of(each, seed) for seed, each in answered.items()]
        return 0 if constants_stand(weekly, [Folded.of(each, seed) for seed, each in answered.items()]) else 1
    for seed, each in answered.items():
        print(f"seed {seed}, epsilon {chosen.epsilon:g}")
        print_newcomers(Weekly.of(each, seed))
        print_alone(Folded.of(each, seed))
    return 0


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        sys.exit(main())
