"""A trusted server reads reports, adds up, and adds the noise that its multiplier says."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dprec.gradients import Aggregate, RoundDraws
from dprec.private_als import AGGREGATIONS, UNIT, Contributions, StatisticsLayout, TrustedAggregation
from dprec.private_als.statistics import (
    decode_contributions,
    encode_contributions,
    report_bits,
    sum_of_contributions,
)
from dprec.randomness import DeviceDraws, ReleaseDraws
from tests.dprec.private_als.partitions import LAYOUTS, a_partition, some_users

RELEASE = ReleaseDraws(1, 1)
DRAWS = RoundDraws(DeviceDraws(np.zeros((2, 40), dtype=np.uint64)), 1, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reports_are_read_as_they_were_written(layout: StatisticsLayout) -> None:
    partition = a_partition(layout)
    reports = TrustedAggregation().encode(partition, layout, 1.0, DRAWS)
    valid, aggregate = TrustedAggregation().decode(reports, layout, 1.0)
    assert valid.all()
    assert aggregate.users == partition.n_users
    assert np.array_equal(aggregate.total, sum_of_contributions(partition, layout))
    assert TrustedAggregation().possible(aggregate, layout, 1.0)


def test_a_report_beyond_its_bounds_contributes_nothing() -> None:
    layout = LAYOUTS[2]
    partition = a_partition(layout)
    reports = encode_contributions(partition, layout)
    user = int(np.argmax(np.diff(partition.indptr)))
    one = some_users(partition, [user])
    too_long = replace(one, factors=one.factors * np.float32(3))
    too_large = replace(one, targets=one.targets * 0 + 4097)
    not_a_number = replace(one, factors=one.factors * np.float32(np.nan))
    every_item = Contributions(
        np.array([0, 6]), np.arange(6, dtype=np.int32), np.zeros(6, dtype=np.int64), one.factors
    )
    hostile = [
        encode_contributions(one, layout)[0] for one in (too_long, too_large, not_a_number, every_item)
    ]
    hostile += [reports[user][:-1], reports[user] + b"\0", b"\xff" * 20]
    for report in hostile:
        received = [*reports[:user], report, *reports[user + 1 :]]
        valid, aggregate = TrustedAggregation().decode(received, layout, 1.0)
        assert valid.tolist() == [other != user for other in range(partition.n_users)]
        others = some_users(partition, [other for other in range(partition.n_users) if other != user])
        assert np.array_equal(aggregate.total, sum_of_contributions(others, layout))


def test_the_noise_has_the_deviation_that_the_multiplier_says() -> None:
    layout = StatisticsLayout(np.full(5000, 256), 2, 1.3, 1.5, 0.4, 4)
    nothing = Aggregate(np.zeros((layout.n_items, layout.width), dtype=np.int64), None, 3)
    noise = TrustedAggregation().release(nothing, layout, 3.0, RELEASE) / layout.scales
    # 25,000 deviates: the mean square is within 5.5 % with a probability of 1 - 1e-9.
    assert np.mean(noise**2) == pytest.approx(9.0, rel=0.055)
    assert np.allclose(noise / UNIT, np.rint(noise / UNIT), rtol=0, atol=1e-3)
    assert np.array_equal(noise * layout.scales, TrustedAggregation().release(nothing, layout, 3.0, RELEASE))
    assert not np.any(TrustedAggregation().release(nothing, layout, 0.0, RELEASE))


def test_the_noise_is_normal_far_into_its_tails() -> None:
    """A million deviates: each of 14 counts is within what chance allows but with a probability of 1e-9."""
    layout = StatisticsLayout(np.full(500_000, 256), 0, 1.0, 1.0, 0.5, 1)
    nothing = Aggregate(np.zeros((layout.n_items, layout.width), dtype=np.int64), None, 3)
    noise = (TrustedAggregation().release(nothing, layout, 2.0, RELEASE) / layout.scales / 2.0).ravel()
    for edge in (0.25, 0.5, 1.0, 2.0, 2.75, 3.25, 4.0):
        share = stats.norm.sf(edge)
        least, most = stats.binom.ppf([5e-10, 1 - 5e-10], noise.size, share)
        for side in (noise, -noise):
            assert least <= np.count_nonzero(side > edge) <= most


def test_other_sums_and_the_same_sums_in_another_round_get_other_noise() -> None:
    layout = StatisticsLayout(np.full(80, 256), 0, 1.0, 1.0, 0.5, 1)
    one = Aggregate(np.zeros((layout.n_items, layout.width), dtype=np.int64), None, 3)
    noise = [
        np.rint(TrustedAggregation().release(aggregate, layout, 3.0, draws) / layout.scales / UNIT)
        - aggregate.total
        for aggregate, draws in (
            (one, RELEASE),
            (replace(one, total=one.total + 1), RELEASE),
            (one, ReleaseDraws(1, 2)),
            (one, ReleaseDraws(2, 1)),
        )
    ]
    for first, second in combinations(noise, 2):
        # Of 960 pairs of numbers in steps of 2^-36, two are the same with a chance of 2e-9.
        assert not np.any(first == second)


def test_the_multiplier_keeps_to_its_budget() -> None:
    for aggregation in AGGREGATIONS:
        for epsilon in (0.1, 1.0, 20.0):
            multiplier = aggregation().multiplier(epsilon, 1e-6)
            spent = aggregation().epsilon(multiplier, 1e-6)
            assert 0.999 * epsilon < spent <= epsilon * (1 + 1e-9)
    assert TrustedAggregation().epsilon(0.0, 1e-6) == np.inf


def test_the_size_of_a_report_is_described() -> None:
    layout = StatisticsLayout(np.full(100, 256), 3, 1.0, 1.0, 0.5, 10)
    items = np.linspace(0, 99, 10).astype(np.int32)
    one = Contributions(
        np.array([0, 10]), items, np.zeros(10, dtype=np.int64), np.ones((1, 3), dtype=np.float32)
    )
    assert len(encode_contributions(one, layout)[0]) * 8 == report_bits(layout, 10)
    assert decode_contributions([b""], layout)[0].all()
