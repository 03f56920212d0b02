"""PLDs dominate every pair of a channel's rows; composed, they agree with exact sums and samples."""

import math
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom

from dprec.accounting import ComposedLoss, PrivacyLossDistribution, compose, dominating_channel
from dprec.accounting.pld import common_grid, compose_many, rare_epsilon
from dprec.channel import Channel
from dprec.mechanisms import BoundedLaplace, ZhengLaplace, ZhengRandomizedResponse
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.ratings import RatingScale
from dprec.reports import CellFamily
from tests import make
from tests.make import STARS


def random_channel(seed: int) -> Channel:
    """Return a channel whose worst pair of inputs differs from one divergence to the next."""
    rows = np.random.default_rng(seed).dirichlet(np.full(7, 2.0), size=4)
    return Channel.from_probabilities(rows, np.arange(4.0), np.arange(7.0), math.inf)


CHANNELS = {
    **{f"random {seed}": random_channel(seed) for seed in range(5)},
    "bounded Laplace": BoundedLaplace().channel(STARS, 1.0),
    "randomised response": RandomizedResponse().channel(STARS, 3.0),
    "Zheng's Laplace": ZhengLaplace().channel(STARS, 0.01),
}


def divergences(one: NDArray[np.float64], other: NDArray[np.float64], losses: NDArray[np.float64]) -> object:
    """Return sum max(0, one - exp(loss) other) for every loss."""
    return np.maximum(0, one - np.exp(losses)[:, None] * other).sum(axis=1)


@pytest.mark.parametrize("name", CHANNELS)
def test_no_pair_of_inputs_is_easier_to_tell_apart(name: str) -> None:
    channel = CHANNELS[name]
    dominating = PrivacyLossDistribution.of(channel)
    losses = np.linspace(-1.1, 1.1, 301) * channel.epsilon
    other = dominating.masses * np.exp(-dominating.losses)
    bound = divergences(dominating.masses, other, losses)
    rows = channel.probabilities
    pairs = [divergences(one, another, losses) for one, another in permutations(rows, 2)]
    worst = np.max(pairs, axis=0)
    assert (bound >= worst - 1e-12).all()
    # A mass between two points of the grid lifts the polygon by at most a quarter of a step.
    assert (bound <= worst + dominating.step / 4 + 1e-12).all()
    if name.startswith("random"):
        assert len(set(np.argmax(pairs, axis=0)[120:180])) > 1


@pytest.mark.parametrize("seed", range(3))
def test_one_order_of_a_pair_is_not_made_harder_to_tell_apart(seed: int) -> None:
    one, other = np.random.default_rng(seed).dirichlet(np.full(9, 0.5), size=2)
    one[0], other[1] = 0.0, 0.0
    dominating = PrivacyLossDistribution.of_pair(one, other, 0.01)
    assert dominating.infinite == pytest.approx(1 - one[2:].sum())
    assert dominating.masses.sum() == pytest.approx(one[2:].sum())
    assert dominating.masses @ np.exp(-dominating.losses) == pytest.approx(other[2:].sum())
    losses = np.linspace(-3, 3, 301)
    under_other = dominating.masses * np.exp(-dominating.losses)
    bound = divergences(dominating.masses, under_other, losses) + dominating.infinite
    exact = divergences(one, other, losses) + (1 - one.sum())
    assert (bound >= exact - 1e-12).all()
    assert (bound <= exact + dominating.step / 4).all()


FAMILIES = {
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


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(("epsilon", "draws"), [(0.02, 50), (0.1, 685), (1.0, 7), (1.0, 685), (8.0, 30)])
def test_a_randomised_bit_composes_as_the_binomial_distribution_says(
    epsilon: float, draws: int, delta: float
) -> None:
    channel = dominating_channel(epsilon)
    exact = one_bit_exactly(channel, draws, delta)
    assert exact * (1 - 1e-12) <= composed(channel, draws).epsilon(delta) <= exact * (1 + 1e-5)


@pytest.mark.parametrize("delta", [1e-6, 1e-12, 1e-40])
@pytest.mark.parametrize(("epsilon", "draws"), [(0.1, 685), (0.5, 20_000), (8.0, 30)])
def test_errors_are_a_small_part_of_a_small_delta(epsilon: float, draws: int, delta: float) -> None:
    channel = dominating_channel(epsilon)
    exact = one_bit_exactly(channel, draws, delta)
    pair = PrivacyLossDistribution.of(channel)
    assert exact * (1 - 1e-9) <= rare_epsilon([(pair, draws)], delta, 1.0) <= exact * (1 + 1e-4)


def test_an_infinite_loss_is_a_part_of_delta() -> None:
    one, other = np.array([0.6, 0.4 - 1e-7, 1e-7]), np.array([0.4, 0.6, 0.0])
    pair = PrivacyLossDistribution.of_pair(one, other, 0.01)
    plain = compose([(pair, 9)])
    for delta in (1e-6, 1e-2):
        assert rare_epsilon([(pair, 9)], delta, 1.0) == pytest.approx(plain.epsilon(delta), rel=1e-3)
    assert math.isinf(rare_epsilon([(pair, 9)], 8e-7, 1.0))


def test_mechanisms_that_are_equal_per_rating_are_not_equal_per_user() -> None:
    measured = {name: composed(at(1.0), 685).epsilon(1e-6) for name, at in FAMILIES.items()}
    assert {name: round(epsilon, 1) for name, epsilon in measured.items()} == {
        "bounded Laplace": 181.8,
        "randomised response": 260.0,
        "one bit": 422.5,
    }


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


def test_no_exponential_overflows_where_a_long_tail_holds_delta() -> None:
    """A tail that falls to delta over thousands of losses counts whole, and nothing is infinite or NaN."""
    losses = np.arange(20_001.0)
    tail = np.exp(-losses / 2000)
    masses = np.append(-np.diff(tail), tail[-1])
    total, wrong = ComposedLoss(losses, masses, 1e-9, math.inf), []
    with np.errstate(divide="call", over="call", invalid="call", call=lambda kind, _: wrong.append(kind)):
        found = total.epsilon(0.3)
    assert not wrong
    # From one point to the next, each loss counts 1 - exp(epsilon - loss).
    assert found == pytest.approx(brentq(lambda epsilon: total.delta(epsilon) - 0.3, 0.0, 20_000.0), rel=1e-9)
    assert found == pytest.approx(-2000 * math.log(0.3), rel=1e-3)


def test_no_epsilon_holds_with_a_delta_below_the_error() -> None:
    total = ComposedLoss(np.arange(3000.0), np.full(3000, 1 / 3000), 0.25, 4000.0)
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        assert total.epsilon(0.2) == 4000.0


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("draws", [10, 1000, 100_000, 1_000_000])
def test_any_number_of_randomised_bits_composes_without_a_number_that_is_none(
    epsilon: float, draws: int
) -> None:
    one = PrivacyLossDistribution.of(dominating_channel(epsilon))
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        total = compose([(one, draws)])
        for delta in (1e-6, 0.3):
            found = total.epsilon(delta)
            assert total.delta(found) <= delta * (1 + 1e-5)
            assert found == 0.0 or total.delta(found * (1 - 1e-6)) > delta


def test_what_is_not_drawn_from_changes_nothing() -> None:
    # The transform of two equal masses is 0 somewhere.
    halves = PrivacyLossDistribution(0.5, np.array([0.5, 0.0, 0.5]))
    other = PrivacyLossDistribution(0.5, np.array([0.2, 0.3, 0.5]))
    alone, beside = compose([(other, 3)]), compose([(other, 3), (halves, 0)])
    assert beside.masses.tolist() == alone.masses.tolist()
    assert np.isfinite(halves.spectrum(8)[0]).all()


def test_users_of_losses_that_hardly_vary_are_accounted_for() -> None:
    # What rounding leaves of the variance is below 0.
    nearly = PrivacyLossDistribution(1.0, np.append(np.zeros(60), 1.0))
    assert nearly.variance <= 0.0
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        assert compose_many([nearly], np.array([[2]]), 1e-6) == pytest.approx([60.0])


def test_a_bit_of_any_epsilon_is_a_channel() -> None:
    assert dominating_channel(1000.0).epsilon == dominating_channel(100.0).epsilon


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


COUNTS = np.array([1, 2, 20, 0, 150])
EVERYBODY = np.ones(5, dtype=np.bool_)


def shared(mechanism: Mechanism, epsilon: float, delta: float = 1e-6) -> CellFamily:
    budget = make.user_budget(epsilon, delta)
    return mechanism.family(budget, STARS, 200)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    "mechanism", [BoundedLaplace(), RandomizedResponse(), ZhengRandomizedResponse()], ids=lambda one: one.kind
)
def test_every_profile_together_costs_what_is_asked_for(mechanism: Mechanism, epsilon: float) -> None:
    calibrated = shared(mechanism, epsilon)
    spent = calibrated.accountant(COUNTS, EVERYBODY).get_epsilon(1e-6)
    assert (spent <= epsilon).all()
    cells = calibrated.cells(COUNTS)
    # A channel spends at most 20.
    whole = np.minimum(epsilon, 20.0 * cells)
    assert (spent >= whole * (1 - 1.1e-3)).all()
    for size in cells[cells >= 150].tolist():
        assert calibrated.channel(size).epsilon > 1.5 * epsilon / size
