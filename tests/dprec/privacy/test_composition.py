"""Composed losses: against exact sums, an independent convolution, and losses that are sampled."""

import math
import re

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom

from dprec.accounting import ComposedLoss, PrivacyLossDistribution, compose, dominating_channel
from dprec.accounting.pld import common_grid
from dprec.auditing import proportion_above, proportion_below
from dprec.channel import Channel
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.ratings import RatingScale
from tests.paths import ROOT

STARS = RatingScale.evenly(1, 5, 1)
CHANNELS = {
    "bounded Laplace": lambda epsilon: BoundedLaplace().channel(STARS, epsilon),
    "randomised response": lambda epsilon: RandomizedResponse().channel(STARS, epsilon),
    "one bit": dominating_channel,
}


def composed(channel: Channel, draws: int) -> ComposedLoss:
    return compose([(PrivacyLossDistribution.of(channel), draws)])


def one_bit_exactly(channel: Channel, draws: int, delta: float) -> float:
    """Return epsilon of a randomised bit from the binomial distribution of its losses."""
    losses = channel.epsilon * (2 * np.arange(draws + 1) - draws)
    chances = binom.pmf(np.arange(draws + 1), draws, channel.probabilities[0, 0])

    def excess(epsilon: float) -> float:
        above = losses > epsilon
        return float(chances[above] @ -np.expm1(epsilon - losses[above])) - delta

    return float(brentq(excess, 0, losses[-1], xtol=1e-12))


def by_convolution(channel: Channel, draws: int, delta: float, step: float, points: int) -> float:
    """Return epsilon of the first and the last input by NumPy's FFT, without domination and error bounds.

    Every loss is divided between the two points next to it so that its mean is kept.
    """
    one, other = channel.probabilities[0], channel.probabilities[-1]
    places = np.log(one / other) / step
    low = np.floor(places).astype(np.int64)
    grid = np.zeros(points)
    np.add.at(grid, low % points, one * (low + 1 - places))
    np.add.at(grid, (low + 1) % points, one * (places - low))
    total = np.fft.irfft(np.fft.rfft(grid) ** draws, points)
    # The sum lies around its mean.
    losses = step * np.arange(points)
    mean = draws * float(one @ np.log(one / other))
    losses += step * points * np.round((mean - losses) / (step * points))

    def excess(epsilon: float) -> float:
        return float(np.sum(total * np.maximum(0, -np.expm1(np.minimum(0, epsilon - losses))))) - delta

    return float(brentq(excess, 0, draws * channel.epsilon, rtol=1e-9))


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(("epsilon", "draws"), [(0.02, 50), (0.1, 685), (1.0, 7), (1.0, 685), (8.0, 30)])
def test_a_randomised_bit_composes_as_the_binomial_distribution_says(
    epsilon: float, draws: int, delta: float
) -> None:
    channel = dominating_channel(epsilon)
    exact = one_bit_exactly(channel, draws, delta)
    assert exact * (1 - 1e-12) <= composed(channel, draws).epsilon(delta) <= exact * (1 + 1e-5)


@pytest.mark.parametrize(("epsilon", "draws", "step"), [(0.1, 685, 2e-4), (1.0, 20, 1e-3), (1.0, 685, 2e-3)])
@pytest.mark.parametrize("name", ["bounded Laplace", "randomised response"])
def test_an_independent_convolution_agrees_to_a_thousandth(
    name: str, epsilon: float, draws: int, step: float
) -> None:
    channel = CHANNELS[name](epsilon)
    direct = by_convolution(channel, draws, 1e-5, step, 1 << 18)
    assert composed(channel, draws).epsilon(1e-5) == pytest.approx(direct, rel=1e-3)
    assert composed(channel, draws).epsilon(1e-5) >= direct * (1 - 2e-5)


def test_mechanisms_that_are_equal_per_rating_are_not_equal_per_user() -> None:
    text = (ROOT / "docs" / "losses.md").read_text(encoding="utf-8")
    documented = re.findall(r"\| 685 \| ([0-9.]+) \| 68.5 \| ([0-9.]+) \|", text)
    assert len(documented) == len(CHANNELS)
    for at, figures in zip(CHANNELS.values(), documented, strict=True):
        measured = [composed(at(epsilon), 685).epsilon(1e-5) for epsilon in (1.0, 0.1)]
        assert [f"{epsilon:.1f}" for epsilon in measured] == list(figures)


def lower_bound(losses: tuple[NDArray[np.float64], NDArray[np.float64]], delta: float) -> float:
    """Return a bound below epsilon from sampled losses, which fails with probability 1e-6.

    (epsilon, delta) means Pr(event | one) <= exp(epsilon) Pr(event | other) + delta for every event. A
    threshold is chosen on the first halves and measured on the second.
    """
    halves = [[side[part::2] for side in losses] for part in (0, 1)]

    def bounds(one: NDArray[np.float64], other: NDArray[np.float64], at: NDArray[np.float64]) -> object:
        counts = [(side[:, None] >= at).sum(axis=0) for side in (one, other)]
        low = proportion_below(counts[0], one.size, 5e-7) - delta
        return np.log(np.maximum(low, 1e-300)) - np.log(proportion_above(counts[1], other.size, 5e-7))

    thresholds = np.quantile(halves[0][0], np.linspace(0.01, 0.99, 50))
    best = int(np.argmax(bounds(*halves[0], thresholds)))
    return float(bounds(*halves[1], thresholds[[best]])[0])


@pytest.mark.parametrize("name", CHANNELS)
def test_no_sampled_loss_shows_more(name: str) -> None:
    channel, draws, delta = CHANNELS[name](0.25), 30, 0.05
    rng = np.random.default_rng(9)
    used = channel if channel.symbols < 10 else BoundedLaplace(symbols=9).channel(STARS, 0.25)
    one, other = used.probabilities[0], used.probabilities[-1]
    each = np.log(one / other)
    losses = tuple(rng.multinomial(draws, side, size=200_000) @ each for side in (one, other))
    bound, measured = composed(used, draws).epsilon(delta), lower_bound(losses, delta)  # type: ignore[arg-type]
    # Close enough that a composition with a sixth less would be found out.
    assert 5 / 6 * bound < measured <= bound


def test_different_channels_compose_on_one_grid() -> None:
    bits = [dominating_channel(0.5), dominating_channel(0.125)]
    first, second = common_grid(bits)
    assert first.step == second.step
    bits_of = [
        binom.pmf(np.arange(count + 1), count, bit.probabilities[0, 0])
        for bit, count in zip(bits, (6, 9), strict=True)
    ]
    # One bit moves the sum of losses four times as far as the other.
    exact = np.convolve(np.kron(bits_of[0], [1, 0, 0, 0])[:-3], bits_of[1])
    losses = 0.25 * np.arange(exact.size) - 6 * 0.5 - 9 * 0.125
    together = compose([(first, 6), (second, 9)])
    for epsilon in (0.0, 0.9, 2.3, 3.9):
        expected = float(exact @ np.maximum(0, -np.expm1(epsilon - losses)))
        assert together.delta(epsilon) == pytest.approx(expected, rel=1e-5)
    assert together.largest == pytest.approx(6 * 0.5 + 9 * 0.125)


def test_epsilon_and_delta_are_each_others_inverse() -> None:
    together = composed(BoundedLaplace().channel(STARS, 0.5), 40)
    for delta in (1e-9, 1e-6, 1e-2):
        assert together.delta(together.epsilon(delta)) == pytest.approx(delta)
    assert together.epsilon(0.99) == 0
    assert together.delta(together.largest) == 0
    assert together.delta(0) < 1


def test_a_delta_below_the_rounding_errors_leaves_the_sum() -> None:
    together = composed(dominating_channel(0.1), 1000)
    assert together.epsilon(together.error / 2) == together.largest == pytest.approx(100)
    assert together.epsilon(1e-6) < 0.2 * together.largest


@pytest.mark.parametrize("draws", [20, 2000])
def test_probabilities_are_wrong_by_no_more_than_the_error(draws: int) -> None:
    channel = dominating_channel(0.5)
    together = composed(channel, draws)
    values = channel.epsilon * (2 * np.arange(draws + 1) - draws)
    exact = binom.sf(np.arange(-1, draws), draws, channel.probabilities[0, 0])
    beyond = together.masses[::-1].cumsum()[::-1]
    seen = (values > together.losses[0]) & (values < together.losses[-1])
    short = exact[seen] - beyond[np.searchsorted(together.losses, values[seen] - 1e-9)]
    assert short.max() <= together.error
    # It holds the mass beyond the window, and the rounding of the transform, which grows with the draws.
    assert 1e-13 < together.error < 1e-9
    assert composed(channel, 4 * draws).error > 2 * together.error


def test_errors_are_counted_as_delta() -> None:
    losses = np.array([-1.0, 0.0, 1.0])
    exact = ComposedLoss(losses, np.array([0.2, 0.3, 0.5]), 0.0, 1.0)
    rounded = ComposedLoss(losses, np.array([0.2, 0.3, 0.5]), 0.01, 1.0)
    assert exact.epsilon(0.3) == pytest.approx(math.log((0.5 - 0.3) / (0.5 * math.exp(-1))))
    assert rounded.epsilon(0.3) == pytest.approx(exact.epsilon(0.29))
    assert rounded.delta(0.5) == pytest.approx(exact.delta(0.5) + 0.01)


def test_a_library_for_accounting_agrees_to_a_thousandth() -> None:
    # It takes a pair of distributions, and rounds upwards to a grid of its own.
    from dp_accounting.pld import privacy_loss_distribution

    channel = BoundedLaplace().channel(STARS, 1.0)
    lower, upper = (dict(enumerate(np.log(channel.probabilities[row]))) for row in (0, -1))
    of_library = privacy_loss_distribution.from_two_probability_mass_functions(
        lower, upper, value_discretization_interval=1e-4
    )
    for draws in (20, 200):
        expected = of_library.self_compose(draws).get_epsilon_for_delta(1e-5)
        assert expected * (1 - 1e-3) <= composed(channel, draws).epsilon(1e-5) <= expected


@pytest.mark.parametrize("seed", [1, 2, None])
def test_no_two_profiles_are_told_apart_more_easily_than_the_bound_says(seed: int | None) -> None:
    channel = RandomizedResponse().channel(RatingScale.evenly(1, 3, 1), 1.0)
    if seed is not None:
        rows = np.random.default_rng(seed).dirichlet(np.full(3, 3.0), size=3)
        channel = Channel.from_probabilities(rows, np.arange(3.0), np.arange(3.0), math.inf)
    one, bound = channel.probabilities, composed(channel, 3)
    # Every profile of three ratings, and what is sent for it.
    sent = np.einsum("ax,by,cz->abcxyz", one, one, one).reshape(27, 27)
    for epsilon in np.linspace(0, 0.95, 12) * bound.largest:
        worst = np.maximum(0, sent[:, None] - math.exp(epsilon) * sent[None, :]).sum(axis=2).max()
        assert bound.delta(epsilon) >= worst
        # If no pair of ratings is worse than another, there is nothing to lose.
        assert seed is not None or bound.delta(epsilon) == pytest.approx(worst, rel=1e-9)
