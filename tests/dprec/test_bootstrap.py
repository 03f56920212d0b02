"""Intervals over users against what they must be when there is a formula."""

from __future__ import annotations

import numpy as np
import pytest

from dprec.metrics import REPLICATES, interval, resampled_sums
from dprec.randomness import generator

USERS = 400


def test_every_replicate_draws_as_many_users_as_there_are() -> None:
    totals = resampled_sums(np.eye(7))
    assert totals.shape == (REPLICATES, 7)
    assert np.all(totals.sum(axis=1) == 7)
    assert np.array_equal(totals, np.rint(totals))
    assert set(totals[:, 0]) >= {0, 1, 2, 3}


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution() -> None:
    """Within a tenth: the standard error of an end is 0.03 standard errors of the mean, six of them 0.2."""
    values = generator(1, "values").normal(2.0, 3.0, USERS)
    low, high = interval(resampled_sums(values[:, None])[:, 0] / USERS)
    error = float(values.std()) / np.sqrt(USERS)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_the_same_users_are_drawn_for_what_is_compared() -> None:
    values = generator(2, "values").normal(size=(USERS, 1))
    together = resampled_sums(np.concatenate([values, values + 0.25], axis=1))
    apart = np.concatenate([resampled_sums(values), resampled_sums(values + 0.25)], axis=1)
    assert np.array_equal(together, resampled_sums(np.concatenate([values, values + 0.25], axis=1)))
    for totals in (together, apart):
        np.testing.assert_allclose(totals[:, 1] - totals[:, 0], 0.25 * USERS)


def test_many_users_are_drawn_in_parts() -> None:
    users = 50_000
    totals = resampled_sums(np.ones((users, 1)), replicates=100)
    assert np.all(totals == users)


def test_replicates_without_a_value_are_left_out() -> None:
    assert interval(np.array([np.nan, 1.0, 1.0])) == (1.0, 1.0)


def test_intervals_of_paired_differences_cover_at_their_nominal_rate() -> None:
    """The difference of two protocols' errors per rating, over users with unequal numbers of ratings.

    Of 2,000 populations, 1,900 intervals should hold the true difference. Fewer than 1,832 or more than
    1,945 do with probability 1e-6 or less as long as the rate is from 94.3 to 95 %: the percentile
    interval of 300 users may lack a few tenths of a per cent.
    """
    users, populations, true = 300, 2000, 0.05
    random = generator(3, "populations")
    ratings = random.integers(1, 40, (users, 1)).astype(float)
    hard = random.gamma(4.0, 0.25, (users, populations))
    first = hard * ratings + random.normal(size=hard.shape) * np.sqrt(ratings)
    second = first + (true + 0.6 * random.normal(size=hard.shape)) * ratings
    totals = resampled_sums(np.concatenate([ratings, first, second], axis=1))
    differences = (totals[:, 1 + populations :] - totals[:, 1 : 1 + populations]) / totals[:, :1]
    low, high = np.transpose([interval(each) for each in differences.T])
    covered = int(((low <= true) & (true <= high)).sum())
    assert 1832 <= covered <= 1945
