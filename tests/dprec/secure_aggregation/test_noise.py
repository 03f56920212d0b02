"""The noise of a total: honest devices that are left add what the claim needs, and an audit agrees.

Shares of noise: the distribution that the accounting assumes, drawn by comparing integers.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.special import ive
from scipy.stats import chisquare, poisson, skellam

from dprec.accounting import skellam_epsilon, skellam_multiplier
from dprec.auditing import Sent, measured
from dprec.errors import SettingError
from dprec.secure_aggregation import (
    CountSketch,
    Rotation,
    centred,
    check_modulus,
    honest_shares,
    largest_number,
    modulus_bits,
    noise_rows,
    padded_size,
    reduced,
    rounded_rows,
    steps_of_unit,
)
from dprec.secure_aggregation.encoding import OVERFLOW, skellam_tail
from dprec.secure_aggregation.noise import TOTAL_BITS, DrawTable, poisson_table, skellam_table
from dprec.secure_aggregation.streams import derived_key
from tests.refusals import refused_at

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


def draws_of_values(table: DrawTable) -> dict[int, int]:
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


@pytest.mark.parametrize("mean", [1e-4, 0.7, 9.5, 2000.0])
def test_the_table_holds_poisson_numbers(mean: float) -> None:
    counts = draws_of_values(poisson_table(mean))
    assert sum(counts.values()) == 1 << TOTAL_BITS
    values = np.array(sorted(counts))
    drawn = np.array([float(Fraction(counts[value], 1 << TOTAL_BITS)) for value in values.tolist()])
    exact = poisson.pmf(values, mean)
    np.testing.assert_allclose(drawn[exact > 1e-25], exact[exact > 1e-25], rtol=1e-9)
    found = sum(Fraction(value * draws, 1 << TOTAL_BITS) for value, draws in counts.items())
    assert float(found) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("mean", [0.0, -1.0, 2e6])
def test_a_mean_without_a_table_is_refused(mean: float) -> None:
    with pytest.raises(ValueError, match="mean"):
        poisson_table(mean)


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


@pytest.mark.parametrize("variance", [0.1, 3.0, 400.0, 1e6])
@pytest.mark.parametrize("probability", [1e-3, 1e-9])
def test_the_tail_is_a_bound_and_not_a_loose_one(variance: float, probability: float) -> None:
    tail = skellam_tail(variance, probability)
    beyond = 2 * skellam.sf(tail - 1, variance / 2, variance / 2)
    assert beyond <= probability
    assert 2 * skellam.sf(int(0.7 * tail) - 1, variance / 2, variance / 2) > probability


@pytest.mark.parametrize("bits", [2, 12, 16, 17, 33, 62])
def test_sums_of_either_sign_come_back(bits: int) -> None:
    largest = 2 ** (bits - 1)
    values = np.array([-largest, -1, 0, 1, largest - 1])
    np.testing.assert_array_equal(centred(reduced(values, bits), bits), values)
    assert (reduced(values, bits) < 2**bits).all()


def test_the_bits_hold_the_largest_sum_and_no_fewer_do() -> None:
    for largest in (1, 7, 8, 1000, 2**20):
        bits = modulus_bits(largest, 0.0, 100)
        assert 2 ** (bits - 1) - 1 >= largest > 2 ** (bits - 2) - 1
    tail = skellam_tail(50.0, OVERFLOW / 100)
    assert modulus_bits(0, 50.0, 100) == tail.bit_length() + 1


def test_a_sum_that_can_overflow_is_refused() -> None:
    assert check_modulus(None, 17) == 17
    assert check_modulus(20, 17) == 20
    with refused_at("modulus_bits"):
        check_modulus(16, 17)
    with pytest.raises(SettingError, match="sums of 63 bits"):
        check_modulus(None, 63)


DEVICES, NUMBERS = 400, 30


def encoding_keys(count: int) -> list[bytes]:
    return [derived_key(bytes([7]), "test", number.to_bytes(4, "little")) for number in range(count)]


def test_no_rounded_vector_is_longer_than_the_bound() -> None:
    norm = 12
    steps = steps_of_unit(norm, NUMBERS)
    values = np.random.default_rng(1).standard_normal((DEVICES, NUMBERS))
    values *= steps / np.linalg.norm(values, axis=1, keepdims=True)
    rounded = rounded_rows(values.ravel(), np.full(DEVICES, NUMBERS), norm, encoding_keys(DEVICES))
    lengths = np.linalg.norm(rounded.reshape(DEVICES, NUMBERS), axis=1)
    assert lengths.max() <= norm
    assert lengths.max() > norm - 0.5
    assert (np.abs(rounded - values.ravel()) < 1).all()


def test_rounding_is_right_on_average() -> None:
    # Sums of 4000 deviates of variance below 1/4: beyond 5.4 of their deviations once in 10**7.
    values = np.tile(np.array([0.25, -1.75, 3.0]), 4000)
    rounded = rounded_rows(values, np.full(4000, 3), 100, encoding_keys(4000)).reshape(-1, 3)
    assert np.abs(rounded.mean(axis=0) - [0.25, -1.75, 3.0]).max() < 5.4 * 0.5 / np.sqrt(4000)
    assert set(rounded[:, 2]) == {3}


def test_a_device_whose_attempts_all_fail_rounds_towards_zero() -> None:
    # Of 10,000 numbers at most one may be rounded up, and 100 are on average: e^-95 in an attempt.
    values = np.tile([0.01, -0.01], 5000)
    assert not rounded_rows(values, np.array([values.size]), 1, encoding_keys(1)).any()


@pytest.mark.parametrize("own", [[0.9, -0.9, 1.2], [3.0, 0.0, 0.0], [np.nan, 0.0, 0.0]])
def test_a_vector_that_is_longer_than_the_bound_is_not_sent(own: list[float]) -> None:
    values, counts = np.array([0.5, *own]), np.array([1, 3])
    with pytest.raises(ValueError, match="beyond 1"):
        rounded_rows(values, counts, 1, encoding_keys(2))


def test_devices_without_numbers_are_passed_over_and_each_rounds_alone() -> None:
    values = np.random.default_rng(2).standard_normal(10) * 5
    together = rounded_rows(values, np.array([4, 0, 6]), 100, encoding_keys(3))
    alone = rounded_rows(values[4:], np.array([6]), 100, encoding_keys(3)[2:])
    np.testing.assert_array_equal(together[4:], alone)


@pytest.mark.parametrize(("norm", "numbers"), [(256, 60), (64, 2000), (10, 300)])
def test_the_steps_of_a_unit_leave_room_for_rounding(norm: int, numbers: int) -> None:
    steps = steps_of_unit(norm, numbers)
    assert steps**2 + numbers / 4 + steps + np.sqrt(numbers) / 2 == pytest.approx(norm**2)
    assert steps_of_unit(5, 1000) <= 0


@pytest.mark.parametrize("size", [1, 5, 16, 100])
def test_a_rotation_keeps_the_norm_and_comes_back(size: int) -> None:
    rows = np.random.default_rng(size).standard_normal((7, size))
    rotation = Rotation.of(size, 1, "test")
    turned = rotation.turned(rows)
    assert turned.shape == (7, padded_size(size))
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(rows, axis=1))
    np.testing.assert_allclose(rotation.turned_back(turned), rows, atol=1e-12)


def test_it_is_the_matrix_of_walsh_and_hadamard_with_signs() -> None:
    rotation = Rotation.of(8, 1, "test")
    expected = hadamard(8) / np.sqrt(8) @ np.diag(rotation.signs)
    np.testing.assert_allclose(rotation.turned(np.eye(8)).T, expected, atol=1e-12)


def test_numbers_of_a_turned_vector_stay_below_the_bound() -> None:
    # The bound fails for one of 200,000 numbers with a probability of 1e-12 each.
    rows = np.zeros((100, 2000))
    rows[:, :50] = 3.0
    rotation = Rotation.of(2000, 1, "test")
    turned = rotation.turned(rows * np.random.default_rng(1).choice([-1, 1], rows.shape))
    bound = largest_number(3 * np.sqrt(50), 2048, 1e-12)
    assert np.abs(turned).max() < bound < 4
    assert largest_number(2.0, 4, 1e-12) == 2.0


def test_items_that_are_alone_come_back_and_others_are_right_on_average() -> None:
    totals = np.random.default_rng(1).standard_normal((40, 3))
    alone = CountSketch.of(40, 40, 1, "test")
    of_buckets = np.zeros((40, 3))
    np.add.at(of_buckets, alone.buckets, totals * alone.signs[:, None])
    np.testing.assert_array_equal(alone.estimates(of_buckets), totals)
    estimates = []
    for seed in range(400):
        sketch = CountSketch.of(40, 20, seed, "test")
        assert sketch.most_items == 2
        of_buckets = np.zeros((20, 3))
        np.add.at(of_buckets, sketch.buckets, totals * sketch.signs[:, None])
        estimates.append(sketch.estimates(of_buckets))
    # What another item adds has a deviation of about 1: means of 400 are off by 6 deviations once in 10**8.
    assert np.abs(np.mean(estimates, axis=0) - totals).max() < 6 * np.abs(totals).max() / 20
