"""Sets with as many sampled negatives: what reports lose, by enumeration, beside what is claimed."""

import math
from collections import defaultdict
from functools import partial
from itertools import chain, combinations, product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets
from dprec.mechanisms import SampledNegatives
from dprec.randomness import DeviceDraws
from dprec.ratings import POSITIVE
from dprec.reports import ProfileLevels, ReportFamily, Wanted
from dprec.reports.sets import loss_of_a_report, loss_of_an_item
from dprec.testing.reports import FamilyContract

Report = tuple[int, ...]

SMALL = [(1, 3), (1, 5), (2, 5), (2, 6), (3, 7), (3, 5)]
"""Sizes of sets and of catalogues; in the last, all other items are asked about."""

EPSILONS = st.floats(0.05, 4.0)


class TestContract(FamilyContract):
    n_items: ClassVar[int] = 9

    @pytest.fixture
    def mechanism(self) -> SampledNegatives:
        return SampledNegatives()

    def test_losses_are_those_of_the_dominating_pair(self, family: ReportFamily) -> None:
        """Nothing bounds them, whatever a user has."""
        per_rating, per_user = family.losses(np.arange(5))
        assert np.isinf(per_rating).all()
        assert np.isinf(per_user).all()
        assert family.most_losses() == (math.inf, math.inf)


def enumerated(own: Report, n_items: int, epsilon: float) -> dict[Report, float]:
    """Return the probability of every report: all negatives that can be drawn, and all answers."""
    kept = math.exp(epsilon) / (1 + math.exp(epsilon))
    others = [item for item in range(n_items) if item not in own]
    choices = list(combinations(others, min(len(own), len(others))))
    found: dict[Report, float] = defaultdict(float)
    for negatives in choices:
        for answers in product((False, True), repeat=len(own) + len(negatives)):
            truth = [True] * len(own) + [False] * len(negatives)
            right = sum(map(bool.__eq__, answers, truth))
            asked = chain(own, negatives)
            report = tuple(sorted(item for item, yes in zip(asked, answers, strict=True) if yes))
            found[report] += kept**right * (1 - kept) ** (len(truth) - right) / len(choices)
    return found


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(SMALL), EPSILONS)
def test_one_item_read_alone_loses_more_than_is_claimed(sizes: tuple[int, int], epsilon: float) -> None:
    size, n_items = sizes
    one, other = (
        enumerated(own, n_items, epsilon) for own in (tuple(range(size)), tuple(range(1, size + 1)))
    )
    assert sum(one.values()) == pytest.approx(1)
    with_item, without = (
        sum(share for report, share in reports.items() if 0 in report) for reports in (one, other)
    )
    loss = loss_of_an_item(size, n_items, epsilon)
    assert math.log(with_item / without) == pytest.approx(loss)
    assert abs(math.log((1 - without) / (1 - with_item))) <= loss + 1e-12
    factor = max(1.0, (n_items - size) / size)
    assert loss == pytest.approx(epsilon + math.log(factor))


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(SMALL), EPSILONS, st.floats(0.001, 0.3))
def test_a_whole_report_has_no_bound_and_one_with_a_delta(
    sizes: tuple[int, int], epsilon: float, delta: float
) -> None:
    size, n_items = sizes
    one, other = (
        enumerated(own, n_items, epsilon) for own in (tuple(range(size)), tuple(range(1, size + 1)))
    )
    if n_items > 2 * size:
        assert any(report not in other for report in one)
    else:
        worst = max(math.log(share / other[report]) for report, share in one.items())
        assert worst == pytest.approx(2 * epsilon)
    loss = loss_of_a_report(size, n_items, epsilon, delta)
    beyond = [
        sum(max(0.0, share - math.exp(held) * other[report]) for report, share in one.items())
        for held in (loss, loss - 1e-6)
    ]
    assert beyond[0] <= delta + 1e-9
    assert loss < 1e-6 or math.isinf(loss) or beyond[1] > delta - 1e-9


def test_reports_follow_the_probabilities() -> None:
    """Each share within six standard errors: false alarm below 1e-7 for all items."""
    users, n_items, own = 40_000, 12, np.array([2, 3, 7])
    family = SampledNegatives().family(PrivacyBudget(epsilon=1.0, per="cell"), POSITIVE, n_items)
    people = ProfileLevels(
        np.full(users, 3), np.tile(own, users).astype(np.int32), np.ones(3 * users, np.uint8)
    )
    draws = partial(DeviceDraws.of, bytes(16), 0, offsets(people.counts), people.items, np.zeros(3 * users))
    reader = family.reader(users, Wanted())
    assert reader.take(np.arange(users), family.encode(people, draws)).all()
    seen = reader.observations()
    kept = math.e / (1 + math.e)
    expected = np.full(n_items, 3 / 9 * (1 - kept))
    expected[own] = kept
    shares = np.bincount(seen.items, minlength=n_items) / users
    assert (abs(shares - expected) <= 6 * np.sqrt(expected * (1 - expected) / users)).all()
    outside = np.bincount(seen.users[~np.isin(seen.items, own)], minlength=users)
    assert outside.max() == 3
