"""Intervals over users against what they must be when there is a formula."""

from __future__ import annotations

import numpy as np
import pytest

from dprec.bootstrap import REPLICATES, interval, resampled_sums
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
