"""Losses of integer weights and draws within a loss, against decimal arithmetic of 80 digits."""

import math
import sys
from dataclasses import fields
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dprec.randomness import (
    DRAWS,
    InstalledKeys,
    NoiseGrid,
    RunKeys,
    coins,
    counters,
    even_share,
    fewest_draws,
    fine_deviates,
    generator,
    loss_of_draws,
    most_draws,
    normal_steps,
    permutation,
    uniform_below,
    uniforms,
    words,
)
from dprec.randomness.counters import discrete_laplace
from tests.distributions import check_drawn, check_share
from tests.interpreted import interpreted

MILLION = 1_000_000


@given(st.integers(0, 300), st.integers(0, 300))
def test_a_stretch_is_the_same_wherever_it_is_cut(start: int, count: int) -> None:
    whole = words(7, "report", 0, 600)
    assert words(7, "report", start, count).tolist() == whole[start : start + count].tolist()


def test_the_words_do_not_change_from_release_to_release() -> None:
    first = [10444859541723225495, 6840357338804703175, 18117867909872558782]
    assert words(0, "report", 0, 3).tolist() == first
    assert generator(0, "split").integers(0, 1000, 5).tolist() == [42, 48, 998, 144, 585]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000, 70_000])
def test_a_permutation_is_that_of_numpy(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    expected = generator(5, "split").permutation(count).tolist()
    assert permutation(5, "split", count).tolist() == expected
    monkeypatch.setattr(counters, "_WORDS_AT_ONCE", 7)
    monkeypatch.setitem(sys.modules, "dprec.kernels.draws", interpreted("dprec.kernels.draws"))
    assert permutation(5, "split", count).tolist() == expected


def test_uniforms() -> None:
    assert uniforms(np.array([0, 2**64 - 1], dtype=np.uint64)).tolist() == [0.0, 1 - 2.0**-53]
    # Kolmogorov and Smirnov's test; rejects a true uniform with probability 1e-7.
    assert stats.kstest(uniforms(words(4, "uniform", 0, 10_000)), "uniform").pvalue > 1e-7


def test_a_coin_compares_the_draw_with_its_heads() -> None:
    last = np.uint64((DRAWS // 2 - 1) << 4 | 15)
    random_words = np.array([0, 2**64 - 1, last, last + 1], dtype=np.uint64)
    heads = np.array([0, DRAWS, DRAWS // 2, DRAWS // 2], dtype=np.uint64)
    assert coins(heads, random_words).tolist() == [False, True, True, False]


@pytest.mark.parametrize("limit", [1, 2, 3, 1000, 2**31])
def test_numbers_below_a_limit_are_uniform_and_in_range(limit: int) -> None:
    # The mean lies within 5 standard errors; a uniform one fails with probability 6e-7.
    drawn = uniform_below(limit, words(2, "coordinate", 0, MILLION))
    assert drawn.min() >= 0
    assert drawn.max() < limit
    assert abs(drawn.mean() - (limit - 1) / 2) <= 5 * limit / math.sqrt(12 * MILLION)
    if limit <= 3:
        assert set(drawn.tolist()) == set(range(limit))


DIGITS = Context(prec=80)
epsilons = st.floats(1e-9, 50.0) | st.floats(1e-9, 1e-3)


def exponential(epsilon: float) -> Decimal:
    return Decimal(epsilon).exp(DIGITS)


@given(st.integers(1, DRAWS), st.integers(1, DRAWS))
def test_a_loss_is_the_next_number_above_the_logarithm(one: int, other: int) -> None:
    most, fewest = max(one, other), min(one, other)
    loss = loss_of_draws(most, fewest)
    exact = DIGITS.divide(Decimal(most), Decimal(fewest)).ln(DIGITS)
    assert Decimal(loss) >= exact
    assert most == fewest or Decimal(math.nextafter(loss, 0.0)) < exact


@given(epsilons, st.lists(st.integers(0, DRAWS), min_size=1, max_size=5))
def test_the_most_draws_are_within_epsilon_and_one_more_is_hardly(epsilon: float, fewest: list[int]) -> None:
    most = most_draws(np.array(fewest, dtype=np.int64), epsilon).tolist()
    for high, low in zip(most, fewest, strict=True):
        allowed = exponential(epsilon) * low
        assert low <= high <= min(allowed, DRAWS)
        assert high == DRAWS or high + 1 >= low + (allowed - low) * Decimal(1 - 1e-14)


@given(epsilons)
def test_the_fewest_draws_of_a_coin(epsilon: float) -> None:
    fewest = fewest_draws(epsilon)
    assert loss_of_draws(DRAWS - fewest, fewest) <= epsilon
    assert fewest == 1 or loss_of_draws(DRAWS - fewest + 1, fewest - 1) > epsilon


@given(st.floats(1e-300, 1e300), st.integers(1, 10**6))
def test_even_shares_never_exceed_the_whole(epsilon: float, parts: int) -> None:
    share = even_share(epsilon, parts)
    assert Fraction(share) * parts <= Fraction(epsilon)
    assert Fraction(share) * parts >= Fraction(epsilon) * (1 - Fraction(parts + 1, 2**52))
    assert share * parts <= epsilon


ENTROPY = bytes(range(32))


def numbers(keys: RunKeys) -> dict[str, int]:
    installed = {field.name: int(getattr(keys.installed, field.name), 16) for field in fields(InstalledKeys)}
    return {**installed, "server": keys.server}


def test_no_two_domains_have_the_same_key() -> None:
    derived = [numbers(RunKeys.derive(seed, run)) for seed in (0, 1, 10**40) for run in ("", "a")]
    devices = {keys["devices"] for keys in derived}
    # A device keeps its secret from run to run; its draws differ by the run.
    assert len(devices) == 3
    assert len({keys["server"] for keys in derived}) == len({keys["run"] for keys in derived}) == 6
    everything = [number for keys in derived for number in set(keys.values())]
    assert len({*everything}) == 3 + 3 + 3 + 6 + 6


def test_no_key_of_the_server_leads_to_the_devices() -> None:
    """Deriving from what the server has, in place of the seed, yields no key of the devices."""
    keys = RunKeys.derive(7, "run")
    known = [keys.server, keys.installed.public_seed, keys.installed.network_seed]
    again = [RunKeys.derive(number, run).installed.devices for number in known for run in ("run", "")]
    raw = [RunKeys.derive(0, "run", number.to_bytes(16, "big")).installed.devices for number in known]
    assert keys.installed.devices not in again + raw
    assert RunKeys.derive(7, "another").installed.devices == keys.installed.devices


def test_entropy_replaces_the_seed_where_secrets_are_drawn() -> None:
    seeded, drawn = numbers(RunKeys.derive(1, "run")), numbers(RunKeys.derive(1, "run", ENTROPY))
    differing = {name for name in seeded if seeded[name] != drawn[name]}
    assert differing == {"devices", "server"}
    assert (
        RunKeys.derive(2, "run", ENTROPY).installed.devices
        == RunKeys.derive(1, "", ENTROPY).installed.devices
    )


@pytest.mark.parametrize("bits", [1, 3])
def test_every_integer_is_as_likely_as_it_should_be(bits: int) -> None:
    drawn = discrete_laplace(5, "test", np.arange(MILLION), bits)
    ratio, most = math.exp(-(2.0**-bits)), 8 * 2**bits
    numbers = np.arange(-most, most + 1)
    shares = (1 - ratio) / (1 + ratio) * ratio ** np.abs(numbers)
    shares[0] = shares[-1] = ratio**most / (1 + ratio)  # With all that lies beyond.
    observed = np.bincount(np.clip(drawn, -most, most) + most, minlength=numbers.size)
    statistic = ((observed - MILLION * shares) ** 2 / (MILLION * shares)).sum()
    # Exact draws are rejected with probability 1e-6.
    assert MILLION * shares.min() > 20
    assert stats.chi2.sf(statistic, numbers.size - 1) > 1e-6


def test_fine_noise_has_the_distribution_of_laplace() -> None:
    drawn = discrete_laplace(5, "test", np.arange(200_000), 32) / 2.0**32
    assert stats.kstest(drawn, stats.laplace().cdf).pvalue > 1e-6


def test_a_draw_is_the_same_whichever_others_are_asked_for() -> None:
    whole = discrete_laplace(1, "test", np.arange(1000), 32)
    some = np.random.default_rng(0).permutation(1000)[:50]
    assert discrete_laplace(1, "test", some, 32).tolist() == whole[some].tolist()
    assert discrete_laplace(1, "test", some[:0], 32).size == 0
    assert np.unique(whole).size == whole.size
    assert not np.any(discrete_laplace(2, "test", np.arange(1000), 32) == whole)


def test_draws_that_need_many_words_are_drawn_again_with_more(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = discrete_laplace(1, "test", np.arange(1000), 32).tolist()
    monkeypatch.setattr("dprec.randomness.counters._WORDS", 1)
    assert discrete_laplace(1, "test", np.arange(1000), 32).tolist() == drawn


@given(st.floats(1e-9, 1e9), st.floats(1e-3, 1e6), st.integers(0, 10_000))
def test_the_loss_is_never_more_than_what_was_asked_for(
    sensitivity: float, epsilon: float, rounded: int
) -> None:
    grid = NoiseGrid.of(sensitivity, epsilon, rounded)
    # Moving what the noise is added to by some steps multiplies no probability by more than this.
    steps = math.ceil(Fraction(sensitivity) / Fraction(grid.step)) + rounded
    assert Fraction(steps, 2**grid.bits) <= Fraction(epsilon)
    assert Fraction(steps, 2**grid.bits) <= Fraction(grid.loss(sensitivity, rounded)) <= Fraction(epsilon)
    if rounded <= 100 and epsilon <= 100:
        assert grid.scale == pytest.approx(sensitivity / epsilon, rel=1e-4)


@pytest.mark.parametrize("bits", [30, 40, 56])
def test_normal_noise_leaves_no_integer_out_however_large_it_is(bits: int) -> None:
    steps = normal_steps(np.random.default_rng(bits), 2.0**bits, (40_000,))
    check_drawn(steps / 2.0**bits, stats.norm())
    check_share(int((steps % 2).sum()), steps.size, 0.5)


def test_noise_in_steps_is_drawn_as_if_at_once() -> None:
    shape, deviation = (3, 20_000), 2.0**30
    random = np.random.default_rng(1)
    coarse, fine = random.standard_normal(shape), random.standard_normal(shape)
    expected = np.rint(coarse * deviation) + np.rint(fine * (deviation * 2.0**-20))
    assert np.array_equal(normal_steps(np.random.default_rng(1), deviation, shape), expected)


def test_deviates_of_two_words_are_normal_in_the_tails_too() -> None:
    first, further = words(1, "first", 0, 40_000), words(1, "further", 0, 40_000)
    check_drawn(fine_deviates(first, further), stats.norm())
    # All that a device draws with these first words, of which it has one in 2**56.
    rare = first & np.uint64(255)
    low = fine_deviates(rare, further)
    check_drawn(stats.norm.cdf(low) * 2.0**56, stats.uniform())
    np.testing.assert_array_equal(fine_deviates(~rare, further), -low)
    nothing, everything = np.zeros(1, dtype=np.uint64), np.full(1, 2**64 - 1, dtype=np.uint64)
    assert fine_deviates(nothing, nothing)[0] == pytest.approx(stats.norm.ppf(2.0**-117), rel=1e-12)
    assert fine_deviates(everything, nothing)[0] == -fine_deviates(nothing, nothing)[0] < 12.5
