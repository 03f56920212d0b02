"""The noise of a total: honest devices that are left add what the claim needs, and an audit agrees."""

import math

import numpy as np
import pytest

from dprec.privacy.audit import measured
from dprec.privacy.evidence import Sent
from dprec.privacy.skellam import skellam_epsilon, skellam_multiplier
from dprec.secure_aggregation import honest_shares, noise_rows
from dprec.secure_aggregation.secrets import derived_key

USERS, DROPOUTS, COLLUDERS, NORM = 12, 0.5, 4, 16
EPSILON, DELTA = 1.0, 0.01
TRIALS = 60_000


def keys(users: int, purpose: str) -> list[bytes]:
    return [derived_key(purpose.encode(), "test", bytes([number])) for number in range(users)]


def totals_seen(contribution: int, shares: int, purpose: str) -> np.ndarray:
    """Return totals less what colluding devices know, one per trial, with all tolerated dropouts."""
    multiplier = skellam_multiplier(EPSILON, NORM, DELTA)
    variance = (multiplier * NORM) ** 2 / shares
    left = USERS - math.floor(DROPOUTS * USERS) - COLLUDERS
    return contribution + noise_rows(keys(left, purpose), TRIALS, variance).sum(axis=0)


def loss_seen(shares: int) -> float:
    """Return a lower bound on epsilon that fails once in a million."""
    sides = [totals_seen(value, shares, f"{value}") for value in (0, NORM)]
    binned = [np.clip(side // NORM + 12, 0, 24) for side in sides]
    return measured([(Sent.of_rounds([binned[0]]), Sent.of_rounds([binned[1]]))], 1e-6, DELTA).at_least


def test_the_audit_of_a_total_bounds_its_epsilon_with_colluding_devices_and_dropouts() -> None:
    shares = honest_shares(USERS, DROPOUTS, COLLUDERS)
    assert shares > 0
    assert 0.3 * EPSILON < loss_seen(shares) <= EPSILON


@pytest.mark.parametrize("shares", [USERS - COLLUDERS, USERS - math.floor(DROPOUTS * USERS)])
def test_the_audit_notices_shares_that_count_on_dropouts_or_colluding_devices(shares: int) -> None:
    assert loss_seen(shares) > EPSILON


def test_shares_add_up_to_the_variance_that_is_accounted_for() -> None:
    # Skellam noise of variance v: the mean of its squares is off by 6 deviations once in 10**8.
    noise = totals_seen(0, honest_shares(USERS, DROPOUTS, COLLUDERS), "variance")
    variance = (skellam_multiplier(EPSILON, NORM, DELTA) * NORM) ** 2
    assert abs((noise.astype(float) ** 2).mean() / variance - 1) < 6 * math.sqrt(2 / TRIALS)
    assert skellam_epsilon(math.sqrt(variance) / NORM, NORM, DELTA) <= EPSILON


def test_no_variance_is_no_noise_and_each_device_draws_alone() -> None:
    assert not noise_rows(keys(3, "a"), 5, 0.0).any()
    np.testing.assert_array_equal(
        noise_rows(keys(3, "a"), 5, 2.0)[1:2], noise_rows(keys(3, "a")[1:2], 5, 2.0)
    )
