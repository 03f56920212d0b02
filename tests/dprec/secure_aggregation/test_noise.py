"""The noise of a total: honest devices that are left add what the claim needs, and an audit agrees.

Shares of noise: the distribution that the accounting assumes, drawn by comparing integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import chisquare

from dprec.accounting import skellam_epsilon, skellam_multiplier
from dprec.auditing import Sent, measured
from dprec.secure_aggregation import honest_shares, noise_rows
from dprec.secure_aggregation.noise import TOTAL_BITS, SkellamTable, skellam_table
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


def draws_of_values(table: SkellamTable) -> dict[int, int]:
    """Return how many of 2**128 draws yield each value."""
    capacity = 1 << (TOTAL_BITS - table.column_bits)
    counts: dict[int, int] = {}
    columns = zip(*(part.tolist() for part in (table.high, table.low, table.own, table.other)), strict=True)
    for high, low, own, other in columns:
        limit = (high << 64) | low
        for value, draws in ((own, limit), (other, capacity - limit)):
            counts[value] = counts.get(value, 0) + draws
    return {value: draws for value, draws in counts.items() if draws}


@pytest.mark.parametrize("variance", [0.01, 0.7, 9.5, 900.0])
def test_the_table_holds_the_probabilities_of_bessel_functions(variance: float) -> None:
    counts = draws_of_values(skellam_table(variance))
    assert sum(counts.values()) == 1 << TOTAL_BITS
    assert all(counts[value] == counts[-value] for value in counts)
    values = np.array(sorted(counts))
    drawn = np.array([float(Fraction(counts[value], 1 << TOTAL_BITS)) for value in values.tolist()])
    exact = ive(np.abs(values), variance)
    np.testing.assert_allclose(drawn[exact > 1e-25], exact[exact > 1e-25], rtol=1e-9)
    spread = sum(Fraction(value**2 * draws, 1 << TOTAL_BITS) for value, draws in counts.items())
    assert float(spread) == pytest.approx(variance, rel=1e-12)


def test_draws_follow_the_table() -> None:
    # The chance of a false alarm is that of the test's level, 1e-9; the seed is fixed.
    table = skellam_table(2.0)
    words = np.random.default_rng(5).integers(0, 2**64, 200_000, dtype=np.uint64)
    drawn = table.draw(words, lambda places: words[places])
    inner = np.arange(-4, 5)
    probabilities = ive(np.abs(inner), 2.0)
    counts = [int((drawn == value).sum()) for value in inner]
    expected = np.append(probabilities, 1 - probabilities.sum()) * drawn.size
    assert chisquare([*counts, drawn.size - sum(counts)], expected).pvalue > 1e-9


def test_a_draw_that_its_first_word_leaves_open_is_decided_by_the_second() -> None:
    table = skellam_table(2.0)
    shift = np.uint64(64 - table.column_bits)
    column = int(np.flatnonzero((table.own != table.other) & (table.high > 0) & (table.low > 0))[0])
    word = np.array([(column << int(shift)) | int(table.high[column])] * 2, dtype=np.uint64)
    low = table.low[column]
    drawn = table.draw(word, lambda places: np.array([low - 1, low], dtype=np.uint64)[places])
    assert drawn.tolist() == [table.own[column], table.other[column]]


@pytest.mark.parametrize("variance", [0.0, -1.0, 1e9])
def test_a_variance_without_a_table_is_refused(variance: float) -> None:
    with pytest.raises(ValueError, match="variance"):
        skellam_table(variance)
