"""The noise that is told is the noise that is drawn: of every aggregation, at several sizes.

Each of less than 30 mean squares of thousands of numbers is beyond 5.8 of its deviations, which are those of
squared normal deviates, with a chance of 7e-9: 2e-7 in all, and below the least with one that is smaller.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats
from dprec.randomness import ReleaseDraws
from dprec.sums import (
    UNIT,
    Aggregation,
    CentralAggregation,
    Layout,
    LocalAggregation,
    Release,
    RepresentedAggregation,
    SecureAggregation,
    ShuffledAggregation,
)
from tests.dprec.sums.test_shuffled import Rows
from tests.summing import devices, pairs, popularity

USERS, NUMBERS, DEVIATIONS = 60, 12_000, 5.8
SECURE = SecureAggregation(colluders=2)
MESSAGES = ShuffledAggregation(messages=4, norm=0.8, colluders=2)
LOCAL = LocalAggregation(epsilon=2.0, shares=(0.3, 0.7))
BUDGET = PrivacyBudget(epsilon=2.0, per="user")


@dataclass(frozen=True, eq=False)
class OfSets(Rows):
    """Vectors that are told to a trusted server too."""

    def encode(self, layout: Any) -> list[bytes]:
        return [
            self.of_users(slice(user, user + 1)).vectors(layout).rows.tobytes()
            for user in range(self.n_users)
        ]


class Told(Release):
    """Numbers of any sign, of which a trusted server is told in which row a user has a whole contribution."""

    def added_up(self, reports: Any) -> tuple[Any, Any]:
        total = np.zeros((self.n_rows, 1), dtype=np.int64)
        for report in reports:
            total[np.frombuffer(report, dtype=np.int32)] += round(1 / UNIT)
        return np.ones(len(reports), dtype=np.bool_), total


TOLD = Told(**vars(replace(popularity(NUMBERS), negative=True)))


def error_of(
    aggregation: Aggregation, multiplier: float, own: Rows, layout: Layout, reporting: int, number: int
) -> tuple[Floats, float]:
    """Return by how much each number of a release is off, given who reports, and the noise that is told."""
    reports = list(aggregation.encode(own, layout, multiplier, devices(own.n_users, number, 5)))[:reporting]
    valid, total = aggregation.decode(reports, layout, multiplier)
    assert valid.all()
    assert total.users == reporting
    released = aggregation.release(total, layout, multiplier, ReleaseDraws(3, number))[:, 0] / layout.scales
    exact = own.numbers[:reporting].sum(axis=0) * (aggregation.counted(reporting) / reporting)
    return released - exact, aggregation.noise_in(total, layout, multiplier)


def whole(users: int, numbers: int) -> OfSets:
    """Return contributions of one number each."""
    own = np.zeros((users, numbers))
    own[np.arange(users), 7 * np.arange(users)] = 1.0
    return OfSets(own)


def represented(of: Aggregation) -> Aggregation:
    return RepresentedAggregation(of=of.among(9000), users=USERS, population=9000, rounds=2)


CASES: list[tuple[Aggregation, float, int]] = [
    (CentralAggregation(), 3.0, USERS),
    *((replace(SECURE, norm=norm).among(USERS), 2.0, USERS) for norm in (16, 128, 2048)),
    (replace(SECURE, norm=None).among(USERS), 0.7, USERS),
    # As many have dropped out as may, or fewer.
    (replace(SECURE, dropouts=0.3).among(USERS), 2.0, USERS - 18),
    (replace(SECURE, dropouts=0.3).among(USERS), 2.0, USERS - 5),
    (MESSAGES.among(USERS), 0.6, USERS),
    (replace(MESSAGES, dropouts=0.3).among(USERS), 1.5, USERS - 10),
    *(
        (LOCAL.among(USERS), LOCAL.among(USERS).multipliers(BUDGET, (0.3, 0.7), 2.0)[1], users)
        for users in (60, 31)
    ),
    *((represented(of), 40.0, USERS) for of in (CentralAggregation(), replace(SECURE, norm=64), MESSAGES)),
    (represented(LOCAL), LOCAL.among(9000).multipliers(BUDGET, (0.3, 0.7), 2.0)[1], USERS),
]


@pytest.mark.parametrize(("aggregation", "multiplier", "reporting"), CASES)
def test_releases_are_off_by_as_much_as_is_told(
    aggregation: Aggregation, multiplier: float, reporting: int
) -> None:
    own = whole(USERS, NUMBERS)
    error, told = error_of(aggregation, multiplier, own, TOLD, reporting, 2)
    # Rounding and sampling are told as what they are at most, which is little here.
    assert (error**2).mean() / told**2 == pytest.approx(1, abs=0.01 + DEVIATIONS * math.sqrt(2 / NUMBERS))


def test_rounding_is_in_the_noise_that_is_told() -> None:
    """Of numbers halfway between two steps, and hardly any noise beside."""
    grid = replace(SECURE, norm=64).among(USERS)
    steps, some = grid._plan(TOLD, 1e-3).steps, 100
    numbers = np.zeros((USERS, NUMBERS))
    numbers[:, :some] = 1.5 / steps
    layout = replace(popularity(some), negative=True)
    error, told = error_of(grid, 1e-3, OfSets(numbers[:, :some]), Told(**vars(layout)), USERS, 4)
    # Each of 100 squares of sums of 60 is beyond 5.8 deviations of their mean with a chance of 1e-8.
    assert (error**2).mean() / told**2 == pytest.approx(1, abs=0.02 + DEVIATIONS * math.sqrt(2 / some))


def test_more_is_told_than_counts_for_a_loss_and_a_grid_too_coarse_is_no_noise_that_can_be_told() -> None:
    layout = popularity(NUMBERS)
    for aggregation in (SECURE.among(USERS), MESSAGES.among(USERS)):
        assert aggregation.deviation(layout, 3.0, USERS) > 3.0
    assert replace(SECURE, norm=2).among(USERS).deviation(pairs(300), 3.0, USERS) == math.inf
