"""Secure aggregation of statistics: near the exact sums, with the noise that is claimed, within bounds."""

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dprec.accounting import skellam_epsilon
from dprec.errors import SettingError
from dprec.gradients import Aggregate, RoundDraws
from dprec.private_als.statistics import (
    StatisticsContributions,
    StatisticsLayout,
    encode_contributions,
)
from dprec.randomness import DeviceDraws, ReleaseDraws
from dprec.secure_aggregation import MOST_VARIANCE
from dprec.sums import UNIT, CentralAggregation, Layout, Release, SecureAggregation
from dprec.sums.secure import MOST_ADDED, MOST_NORM
from dprec.sums.secure import RULED as SKELLAM
from tests.dprec.private_als.partitions import LAYOUTS, a_partition, some_users, summed
from tests.summing import contributed, dense, pairs, popularity

USERS = 40
SECURE = SecureAggregation(norm=256, colluders=2).among(USERS)
RELEASE = ReleaseDraws(1, 1)


def draws(users: int = USERS) -> RoundDraws:
    return RoundDraws(DeviceDraws(np.arange(2 * users, dtype=np.uint64).reshape(2, users)), 1, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_noise_the_release_is_the_exact_sum_but_for_rounding(layout: StatisticsLayout) -> None:
    partition = a_partition(layout)
    reports = SECURE.encode(partition, layout, 0.0, draws())
    assert [len(report) * 8 for report in reports] == [SECURE.report_bits(layout, 3, 0.0)] * USERS
    valid, aggregate = SECURE.decode(reports, layout, 0.0)
    assert valid.all()
    exact = summed(partition, layout) * UNIT * layout.scales
    released = SECURE.release(aggregate, layout, 0.0, RELEASE)
    # Each of at most 40 numbers is off by a deviate of deviation 1/2 step at most; seeds are fixed.
    assert (np.abs(released - exact) < 6 * 0.5 * math.sqrt(USERS) / 240 * layout.scales).all()


@pytest.mark.parametrize("layout", [*LAYOUTS, popularity(6), pairs(6)], ids=str)
@pytest.mark.parametrize("together", [1, 1 << 18])
def test_without_noise_a_sum_is_that_of_the_reports_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, layout: Layout, together: int
) -> None:
    monkeypatch.setattr("dprec.sums.secure._NUMBERS", together)
    sets = np.sort(np.random.default_rng(1).random((USERS, 6)).argsort(axis=1)[:, :3], axis=1)
    own: Any = contributed(3 * np.arange(USERS + 1), sets.ravel(), 6)
    if isinstance(layout, StatisticsLayout):
        own = a_partition(layout)
    present = np.arange(USERS) % 7 != 3
    sizes, summed = SECURE.summed(own, layout, 0.0, draws(), present)
    reports = SECURE.encode(own, layout, 0.0, draws())
    _, expected = SECURE.decode(reports.chosen(np.flatnonzero(present)), layout, 0.0)
    assert sizes.tolist() == reports.sizes.tolist()
    assert summed.total.tolist() == expected.total.tolist()
    assert summed.users == summed.undrawn == expected.users == present.sum()
    released = [SECURE.release(each, layout, 0.0, RELEASE) for each in (summed, expected)]
    np.testing.assert_array_equal(*released)


def test_with_all_dropouts_and_colluders_the_noise_is_what_the_multiplier_says() -> None:
    layout = StatisticsLayout(np.full(4000, 256), 0, 1.0, 1.5, 0.5, 4)
    nobody = replace(a_partition(layout, USERS), indptr=np.zeros(USERS + 1, dtype=np.int64))
    nobody = replace(nobody, items=nobody.items[:0], targets=nobody.targets[:0])
    reports = SECURE.encode(nobody, layout, 2.0, draws())
    # The server takes the shares of 2 colluding devices off, and 4 dropped out.
    _, aggregate = SECURE.decode(reports[6:], layout, 2.0)
    noise = SECURE.release(aggregate, layout, 2.0, RELEASE) / layout.scales
    # 8000 deviates: the mean square is off by 6 deviations once in 10**8.
    steps = SECURE.norm / math.sqrt((noise**2).mean()) * 2.0
    assert steps == pytest.approx(SECURE.norm, rel=6 * math.sqrt(0.5 / noise.size) + 0.01)


def test_devices_draw_anew_in_every_round() -> None:
    layout = LAYOUTS[0]
    again = replace(draws(), round_index=2)
    partition = a_partition(layout)
    first, second = (SECURE.encode(partition, layout, 1.0, drawn) for drawn in (draws(), again))
    assert all(one != other for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("together", [1, 100])
def test_vectors_and_totals_are_the_same_however_many_are_made_together(
    monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    layout = LAYOUTS[0]
    partition = a_partition(layout)
    at_once = SECURE.encode(partition, layout, 1.0, draws())
    _, whole = SECURE.decode(at_once, layout, 1.0)
    monkeypatch.setattr("dprec.sums.secure._NUMBERS", together)
    reports = SECURE.encode(partition, layout, 1.0, draws())
    assert list(reports) == list(at_once)
    valid, total = SECURE.decode(reports, layout, 1.0)
    assert valid.all()
    assert total.users == whole.users == USERS
    assert (total.total == whole.total).all()


def test_more_dropouts_than_are_borne_fail_the_release() -> None:
    present = np.ones(USERS, dtype=bool)
    assert SECURE.can_release(present, present.sum(), 1, 7)
    present[:4] = False
    assert SECURE.can_release(present, present.sum(), 1, 7)
    present[4] = False
    assert not SECURE.can_release(present, present.sum(), 1, 7)


def test_a_total_that_lacks_a_report_and_its_noise_is_not_released() -> None:
    everybody, layout = np.ones(USERS, dtype=bool), LAYOUTS[0]
    assert not SECURE.can_release(everybody, USERS - 1, 1, 7)
    sizes = np.array([len(report) for report in SECURE.encode(a_partition(layout), layout, 1.0, draws())])
    assert SECURE.whole(sizes, layout, 1.0).all()
    assert not SECURE.whole(sizes + 1, layout, 1.0).any()


def test_a_report_beyond_its_bounds_contributes_nothing() -> None:
    layout = LAYOUTS[2]
    partition = a_partition(layout)
    reports = encode_contributions(partition, layout)
    user = int(np.argmax(np.diff(partition.indptr)))
    one = some_users(partition, [user])
    too_long = replace(one, factors=one.factors * np.float32(3))
    too_large = replace(one, targets=one.targets * 0 + 4097)
    not_a_number = replace(one, factors=one.factors * np.float32(np.nan))
    every_item = StatisticsContributions(
        np.array([0, 6]), np.arange(6, dtype=np.int32), np.zeros(6, dtype=np.int64), one.factors
    )
    hostile = [
        encode_contributions(one, layout)[0] for one in (too_long, too_large, not_a_number, every_item)
    ]
    hostile += [reports[user][:-1], reports[user] + b"\0", b"\xff" * 20]
    for report in hostile:
        received = [*reports[:user], report, *reports[user + 1 :]]
        valid, aggregate = CentralAggregation().decode(received, layout, 1.0)
        assert valid.tolist() == [other != user for other in range(partition.n_users)]
        others = some_users(partition, [other for other in range(partition.n_users) if other != user])
        assert np.array_equal(aggregate.total, summed(others, layout))


def test_the_noise_is_normal_far_into_its_tails() -> None:
    """A million deviates: each of 14 counts is within what chance allows but with a probability of 1e-9."""
    layout = StatisticsLayout(np.full(500_000, 256), 0, 1.0, 1.0, 0.5, 1)
    nothing = Aggregate(np.zeros((layout.n_rows, layout.width), dtype=np.int64), None, 3)
    noise = (CentralAggregation().release(nothing, layout, 2.0, RELEASE) / layout.scales / 2.0).ravel()
    for edge in (0.25, 0.5, 1.0, 2.0, 2.75, 3.25, 4.0):
        share = stats.norm.sf(edge)
        least, most = stats.binom.ppf([5e-10, 1 - 5e-10], noise.size, share)
        for side in (noise, -noise):
            assert least <= np.count_nonzero(side > edge) <= most


def test_other_sums_and_the_same_sums_in_another_round_get_other_noise() -> None:
    layout = StatisticsLayout(np.full(80, 256), 0, 1.0, 1.0, 0.5, 1)
    one = Aggregate(np.zeros((layout.n_rows, layout.width), dtype=np.int64), None, 3)
    noise = [
        np.rint(CentralAggregation().release(aggregate, layout, 3.0, draws) / layout.scales / UNIT)
        - aggregate.total
        for aggregate, draws in (
            (one, RELEASE),
            (replace(one, numbers=one.total + 1), RELEASE),
            (one, ReleaseDraws(1, 2)),
            (one, ReleaseDraws(2, 1)),
        )
    ]
    for first, second in combinations(noise, 2):
        # Of 960 pairs of numbers in steps of 2^-36, two are the same with a chance of 2e-9.
        assert not np.any(first == second)


def test_the_multiplier_keeps_to_its_budget() -> None:
    for aggregation in (CentralAggregation, SecureAggregation):
        for epsilon in (0.1, 1.0, 20.0):
            multiplier = aggregation().multiplier(epsilon, 1e-6)
            spent = aggregation().epsilon(multiplier, 1e-6)
            assert 0.999 * epsilon < spent <= epsilon * (1 + 1e-9)
    assert CentralAggregation().epsilon(0.0, 1e-6) == np.inf


RULED = SecureAggregation(colluders=2)
PUBLIC = st.builds(
    lambda items, table, few: popularity(items) if few else pairs(table),
    st.integers(2, 100_000),
    st.integers(2, 1000),
    st.booleans(),
)


@given(
    layout=PUBLIC,
    users=st.integers(20, 1_000_000),
    multiplier=st.floats(0.2, 300),
)
@example(layout=popularity(1000), users=1_000_000, multiplier=3.0)
@settings(max_examples=30, deadline=None)
def test_a_grid_by_rule_adds_little_to_the_noise_with_the_fewest_bits_and_is_never_refused(
    layout: Release, users: int, multiplier: float
) -> None:
    among = RULED.among(users)
    among.check(layout, multiplier)
    assert multiplier < among.largest_multiplier
    plan, noise = among._plan(layout, multiplier), among._noise(multiplier)
    plain = multiplier * math.sqrt(users / noise.shares)
    told = among.deviation(layout, multiplier, users)
    assert plain <= told <= plain * math.sqrt(1 + MOST_ADDED) or plan.norm == MOST_NORM
    bits = plan.bits(noise)
    finer = replace(plan, norm=plan.norm + 1)
    assert finer.bits(noise) > bits or noise.share(finer.norm) > MOST_VARIANCE or finer.norm > MOST_NORM
    # Of all norms from which losses are counted on, those with fewer bits add more.
    least = math.ceil(SKELLAM.norm(1 / multiplier))
    coarser = [replace(plan, norm=norm) for norm in range(least, plan.norm, 1 + plan.norm // 10)]
    assert all(each.added(noise) > MOST_ADDED for each in coarser if each.bits(noise) < bits)


@pytest.mark.parametrize("multiplier", [0.01, 0.3, 4.0, 80.0])
def test_losses_are_counted_for_no_finer_noise_than_any_round_has(multiplier: float) -> None:
    for users, further in ((20, 1.0), (5000, 1.0), (5000, 3.0)):
        norm = RULED.among(users)._plan(popularity(9), further * multiplier).norm
        assert further * multiplier * norm >= SKELLAM.norm(1 / multiplier) * multiplier * (1 - 1e-9)
    assert RULED.epsilon(multiplier, 1e-6) == skellam_epsilon(multiplier, SKELLAM.norm(1 / multiplier), 1e-6)
    # A norm that is stated may make noise coarse.
    assert SecureAggregation(norm=2).epsilon(multiplier, 1e-6) == skellam_epsilon(multiplier, 2, 1e-6)


def test_who_holds_more_than_is_typical_keeps_to_the_norm_by_saying_less() -> None:
    """Of all pairs of 300 items a device says less than of those of 100, whose contribution is as long."""
    layout, among = pairs(300), RULED.among(USERS)
    own = contributed([0, 100, 400], [*range(100), *range(300)], 300)
    plan = among._plan(layout, 30.0)
    few, many = plan.vectors(own, layout, draws(2).devices.keys).astype(np.float64)
    assert max(np.linalg.norm(few), np.linalg.norm(many)) <= plan.norm
    exact = dense(own, layout)
    assert few.sum() / plan.steps == pytest.approx(exact[0].sum(), rel=0.02)
    assert 0.8 < many.sum() / plan.steps / exact[1].sum() < 0.95
    sizes = among.encode(own, layout, 30.0, draws(2)).sizes
    assert sizes[0] == sizes[1] == among.report_bits(layout, 0, 30.0) / 8


@pytest.mark.parametrize("fewest", [1, 20])
def test_a_modulus_holds_the_largest_sum_of_all_users_and_noise_below_nothing(fewest: int) -> None:
    """Everybody has the same item, and no other: a number can be no larger, nor one without users smaller."""
    layout, among = popularity(50, fewest), RULED.among(USERS)
    same = contributed(np.arange(USERS + 1), np.full(USERS, 7), 50)
    for multiplier in (0.0, 5.0):
        _, total = among.decode(among.encode(same, layout, multiplier, draws()), layout, multiplier)
        released = among.release(total, layout, multiplier, RELEASE)[:, 0]
        off = 7 * among.deviation(layout, multiplier, USERS) + USERS / among._plan(layout, multiplier).norm
        assert released[7] == pytest.approx(USERS / math.sqrt(fewest), abs=off)
        assert np.abs(np.delete(released, 7)).max() <= off
        assert (released.min() < 0) == (multiplier > 0)
    # Numbers are as small as those of the fewest items.
    fixed = replace(among, norm=256)
    bits = [fixed.report_bits(popularity(50, several), 0, 0.1) for several in (1, 100)]
    assert bits[0] - bits[1] >= 2 * 50


@pytest.mark.parametrize(("users", "most"), [(40, 1 << 32), (1 << 20, 1 << 24)])
def test_more_numbers_than_losses_are_bounded_for_are_refused(users: int, most: int) -> None:
    among = RULED.among(users)
    among.check_numbers(most)
    with pytest.raises(SettingError, match=f"at most {most:,} numbers"):
        among.check_numbers(most + 1)
