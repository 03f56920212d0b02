"""The noise of a total: honest devices that are left add what the claim needs, and an audit agrees.

Shares of noise: the distribution that the accounting assumes, drawn by comparing integers.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive
from scipy.stats import binom, chisquare, norm, poisson, skellam

from dprec.accounting import SkellamLoss, skellam_epsilon, skellam_multiplier
from dprec.arrays import Floats, Ints, Uint64s
from dprec.auditing import Sent, measured
from dprec.errors import SettingError
from dprec.randomness import generator
from dprec.randomness import words as random_words
from dprec.secure_aggregation import (
    centred,
    check_modulus,
    honest_shares,
    modulus_bits,
    noise_rows,
    reduced,
    rounded_rows,
    shrunk,
    skellam_numbers,
    steps_of_unit,
)
from dprec.secure_aggregation.encoding import OVERFLOW, skellam_tail
from dprec.secure_aggregation.noise import TOTAL_BITS, DrawTable, poisson_table, skellam_table
from dprec.secure_aggregation.streams import derived_key
from tests.distributions import check_drawn, check_independent, check_share

USERS, DROPOUTS, COLLUDERS, NORM = 12, 0.5, 4, 16
EPSILON, DELTA = 1.0, 0.01
TRIALS = 60_000


def keys(users: int, purpose: str) -> list[bytes]:
    return [derived_key(purpose.encode(), "test", bytes([number])) for number in range(users)]


def totals_seen(contribution: int, shares: int, purpose: str) -> np.ndarray:
    """Return totals less what colluding devices know, one per trial, with all tolerated dropouts."""
    multiplier = skellam_multiplier(EPSILON, SkellamLoss(NORM, NORM), DELTA)
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
    variance = (skellam_multiplier(EPSILON, SkellamLoss(NORM, NORM), DELTA) * NORM) ** 2
    assert abs((noise.astype(float) ** 2).mean() / variance - 1) < 6 * math.sqrt(2 / TRIALS)
    together, alone = noise_rows(keys(3, "a"), 5, 2.0), noise_rows(keys(3, "a")[1:2], 5, 2.0)
    np.testing.assert_array_equal(together[1:2], alone)
    assert skellam_epsilon(math.sqrt(variance) / NORM, NORM, DELTA) <= EPSILON


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


@pytest.mark.parametrize(
    ("table", "probabilities", "moment_of"),
    [
        *(
            (skellam_table(variance), lambda values, v=variance: ive(np.abs(values), v), (2, variance))
            for variance in (0.01, 0.7, 9.5, 900.0)
        ),
        *(
            (poisson_table(mean), lambda values, m=mean: poisson.pmf(values, m), (1, mean))
            for mean in (1e-4, 0.7, 9.5, 2000.0)
        ),
    ],
    ids=lambda given: given[1] if isinstance(given, tuple) else "",
)
def test_a_table_holds_the_probabilities_of_its_distribution(
    table: DrawTable, probabilities: Callable[[Floats], Floats], moment_of: tuple[int, float]
) -> None:
    counts = draws_of_values(table)
    assert sum(counts.values()) == 1 << TOTAL_BITS
    values = np.array(sorted(counts))
    drawn = np.array([float(Fraction(counts[value], 1 << TOTAL_BITS)) for value in values.tolist()])
    exact = probabilities(values)
    np.testing.assert_allclose(drawn[exact > 1e-25], exact[exact > 1e-25], rtol=1e-9)
    power, expected = moment_of
    moment = sum(Fraction(value**power * draws, 1 << TOTAL_BITS) for value, draws in counts.items())
    assert float(moment) == pytest.approx(expected, rel=1e-12)
    if power == 2:
        assert all(counts[value] == counts[-value] for value in counts)


@pytest.mark.parametrize("parameter", [0.0, -1.0, 1e9])
@pytest.mark.parametrize("table", [skellam_table, poisson_table])
def test_a_parameter_without_a_table_is_refused(
    table: Callable[[float], DrawTable], parameter: float
) -> None:
    with pytest.raises(ValueError, match=r"variance|mean"):
        table(parameter)


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
    # Sums without a sign need room for noise below 0 alone.
    assert modulus_bits(2**20 - 1 - 2 * tail, 50.0, 100, signed=False) == 20
    assert modulus_bits(2**20 - 2 * tail, 50.0, 100, signed=False) == 21
    assert (check_modulus(None, 17), check_modulus(20, 17)) == (17, 20)
    for chosen, needed in ((16, 17), (None, 63)):
        with pytest.raises(SettingError):
            check_modulus(chosen, needed)


@pytest.mark.parametrize("variance", [0.5, 7.0, 2.0**24, 1e13])
def test_numbers_of_any_variance_are_skellam_numbers(variance: float) -> None:
    drawn = skellam_numbers(generator(1, "test"), variance, 40_000)
    # Of the two Poisson numbers that add up to a large variance, SciPy tells no probabilities.
    expected = skellam(variance / 2, variance / 2) if variance < 1e12 else norm(scale=math.sqrt(variance))
    check_drawn(drawn, expected)
    assert not skellam_numbers(generator(1, "test"), 0.0, 9).any()


DEVICES, NUMBERS = 400, 30


def encoding_keys(count: int) -> Uint64s:
    return random_words(7, "test", 0, 2 * count).reshape(count, 2).T


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


def test_numbers_are_rounded_up_as_often_as_they_are_nearer_to_it() -> None:
    users, numbers, part = 360, 200, 0.3
    values, counts = np.full(users * numbers, part), np.full(users, numbers)
    rounded = rounded_rows(values, counts, 1000, encoding_keys(users)).reshape(users, numbers)
    check_share(int(rounded.sum()), rounded.size, part)
    assert set(np.unique(rounded).tolist()) == {0, 1}
    # Numbers of a device, and devices.
    check_independent(rounded[:, ::2], rounded[:, 1::2])
    check_independent(rounded[::2], rounded[1::2])


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
    alone = rounded_rows(values[4:], np.array([6]), 100, encoding_keys(3)[:, 2:])
    np.testing.assert_array_equal(together[4:], alone)


@pytest.mark.parametrize(("norm", "numbers"), [(256, 60), (64, 2000), (10, 300)])
def test_the_steps_of_a_unit_leave_room_for_rounding(norm: int, numbers: int) -> None:
    steps = steps_of_unit(norm, numbers)
    assert steps**2 + numbers / 4 + steps + np.sqrt(numbers) / 2 == pytest.approx(norm**2)
    assert steps_of_unit(5, 1000) <= 0


def lengths_in_mean(values: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Return the mean and the deviation of the squared norms of rounded vectors, number by number."""
    below = np.floor(values)
    above = values - below
    means = below**2 * (1 - above) + (below + 1) ** 2 * above
    squares = below**4 * (1 - above) + (below + 1) ** 4 * above
    owners = np.repeat(np.arange(counts.size), counts)
    variances = np.bincount(owners, squares - means**2, minlength=counts.size)
    return np.bincount(owners, means, minlength=counts.size), np.sqrt(np.maximum(variances, 0))


@given(
    norm=st.integers(2, 300),
    usual=st.integers(1, 3000),
    counts=st.lists(st.integers(0, 4000), min_size=1, max_size=4),
    spread=st.floats(0, 4),
    key=st.integers(0, 1 << 30),
)
@settings(max_examples=60, deadline=None)
def test_whatever_a_device_holds_its_rounded_vector_keeps_to_the_norm(
    norm: int, usual: int, counts: list[int], spread: float, key: int
) -> None:
    """Also with far more numbers than the grid is made for; with no more, nothing is scaled down."""
    steps, sizes = max(steps_of_unit(norm, usual), 0.9 * norm), np.array(counts)
    random = np.random.default_rng(key)
    parts = [random.standard_normal(size) * np.exp(spread * random.random(size)) for size in counts]
    values = np.concatenate([steps * part / (np.linalg.norm(part) or 1.0) for part in parts])
    scaled = shrunk(values, sizes, norm)
    owners = np.repeat(np.arange(sizes.size), sizes)
    rounded = rounded_rows(scaled, sizes, norm, encoding_keys(sizes.size))
    assert np.bincount(owners, rounded**2, minlength=sizes.size).max() <= norm**2
    means, deviations = lengths_in_mean(scaled, sizes)
    assert (means + deviations <= norm**2 * (1 + 1e-9)).all()
    factors = np.bincount(owners, scaled * values, minlength=sizes.size) / steps**2
    np.testing.assert_allclose(scaled, values * factors[owners], atol=1e-9)
    # No larger factor will do, as far as they are told apart.
    for device in np.flatnonzero((factors < 1 - 2.0**-13) & (sizes > 0)):
        own = values[owners == device]
        mean, deviation = lengths_in_mean(own * (factors[device] + 2.0**-12), np.array([own.size]))
        assert mean[0] + deviation[0] > norm**2 * (1 - 1e-9)
    if steps == steps_of_unit(norm, usual):
        np.testing.assert_array_equal(scaled[sizes[owners] <= usual], values[sizes[owners] <= usual])


def test_what_a_device_scales_down_depends_on_no_other_and_finds_room_every_second_time() -> None:
    random, norm, devices = np.random.default_rng(4), 16, 300
    values = np.tile(15.0 * random.dirichlet(np.ones(900)) ** 0.5, devices)
    counts = np.full(devices, 900)
    scaled = shrunk(values, counts, norm)
    np.testing.assert_array_equal(scaled[900:1800], shrunk(values[:900], counts[:1], norm))
    assert 0.3 < scaled[0] / values[0] < 0.9
    below = np.floor(scaled)
    tried = below + (random.random(scaled.size) < scaled - below)
    found = np.count_nonzero((tried.reshape(devices, -1) ** 2).sum(axis=1) <= norm**2)
    # Below the one in 300 tries with a chance of 1e-6, if each succeeds with one of 1/2.
    assert found > binom.ppf(1e-6, devices, 0.5)


@pytest.mark.parametrize("lowest", [None, -5, 0])
def test_integers_of_a_modulus_are_those_from_the_lowest_on(lowest: int | None) -> None:
    first = -32 if lowest is None else lowest
    values = np.arange(first, first + 64)
    np.testing.assert_array_equal(centred(reduced(values, 6), 6, lowest), values)
