"""What sums with noise cost: Gaussian and Skellam noise, against brute force and another library."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.special import ive
from scipy.stats import norm

from dprec.accounting import (
    ChannelDraws,
    FixedSize,
    HiddenMessages,
    NoisySum,
    Poisson,
    SubsampledGaussian,
    closed_form_epsilon,
    gaussian_epsilon,
    hidden_epsilon,
    largest_mu,
    sampled_gaussian_epsilon,
    skellam_epsilon,
    skellam_multiplier,
)
from dprec.accounting.events import gaussian_delta, renyi_divergences
from dprec.channel import Channel

DELTA = 1e-6

CASES = [(0.05, 1e-6), (0.25, 1e-5), (1.0, 1e-6), (4.0, 1e-9), (12.0, 1e-5)]


@pytest.mark.parametrize("mu", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 2.0])
def test_delta_is_the_divergence_of_two_normal_distributions(mu: float, epsilon: float) -> None:
    # The densities cross where the loss is epsilon.
    crossing = epsilon / mu + mu / 2
    divergence = norm.sf(crossing - mu) - math.exp(epsilon) * norm.sf(crossing)
    assert gaussian_delta(mu, epsilon) == pytest.approx(divergence, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("mu", "delta"), CASES)
def test_epsilon_and_mu_are_the_ends_of_what_delta_allows(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_delta(mu, epsilon * (1 - 1e-6)) > delta
    assert largest_mu(epsilon, delta) == pytest.approx(mu, rel=1e-9)
    assert gaussian_epsilon(largest_mu(epsilon, delta), delta) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("mu", "delta"), CASES)
def test_a_library_for_accounting_agrees_to_a_thousandth(mu: float, delta: float) -> None:
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    assert gaussian_epsilon(mu, delta) == pytest.approx(get_epsilon_gaussian(1 / mu, delta), rel=1e-3)


def exact_divergence(contribution: tuple[int, ...], variance: float, order: int) -> float:
    """Return the Renyi divergence of a shift by brute force: numbers are independent, so it adds up."""
    values = np.arange(-250, 251)
    total = 0.0
    for shift in contribution:
        at, moved = ive(np.abs(values), variance), ive(np.abs(values - shift), variance)
        seen = (at > 1e-50) & (moved > 1e-50)
        total += math.log((at[seen] ** order * moved[seen] ** (1.0 - order)).sum()) / (order - 1)
    return total


@pytest.mark.parametrize("contribution", [(1,), (3,), (1, 1), (2, -1, 1)])
@pytest.mark.parametrize("variance", [2.0, 9.0, 60.0])
def test_the_bound_holds_by_brute_force(contribution: tuple[int, ...], variance: float) -> None:
    norm = math.sqrt(sum(shift**2 for shift in contribution))
    orders = np.array([2, 3, 6])
    bounds = renyi_divergences(math.sqrt(variance) / norm, norm, orders)
    exact = [exact_divergence(contribution, variance, order) for order in orders.tolist()]
    assert (np.array(exact) <= bounds).all()
    assert exact[0] >= 0.3 * bounds[0]


@pytest.mark.parametrize(
    ("variance", "square", "order", "excess"),
    [
        # Noise of 4 times the norm: (19 * 64 + 6 * 64) / (4 * 1024^2).
        (1024.0, 64.0, 10, 1600 / 4_194_304),
        (30.0, 1.0, 48, (95 + 6) / 3600),
        # Noise as large as the norm: 3 D1 / (2 v), where the other is 6.25.
        (1.0, 1.0, 10, 1.5),
        (2.0, 3.0, 48, 2.25),
    ],
)
def test_the_bound_is_as_published(variance: float, square: float, order: int, excess: float) -> None:
    """By v, D^2 and D1 = D^2 as in the paper; shifts by brute force are too far below to tell."""
    (bound,) = renyi_divergences(math.sqrt(variance / square), math.sqrt(square), np.array([order]))
    assert bound - order * square / (2 * variance) == pytest.approx(excess, rel=1e-9)


@pytest.mark.parametrize("multiplier", [0.8, 3.0, 20.0])
def test_on_a_fine_grid_it_costs_what_gaussian_noise_does(multiplier: float) -> None:
    accountant = RdpAccountant(orders=list(range(2, 1000)))
    accountant.compose(GaussianDpEvent(multiplier))
    expected = accountant.get_epsilon(DELTA)
    assert skellam_epsilon(multiplier, 1e6, DELTA) == pytest.approx(expected, rel=1e-3)
    assert skellam_epsilon(multiplier, 1e6, DELTA) >= expected
    assert skellam_epsilon(multiplier, 8.0, DELTA) > skellam_epsilon(multiplier, 1e6, DELTA)


def test_releases_cost_no_more_than_one_with_their_joint_multiplier() -> None:
    orders = np.arange(2, 50)
    several = sum(renyi_divergences(multiplier, 4.0, orders) for multiplier in (2.0, 3.0, 5.0))
    joint = (2.0**-2 + 3.0**-2 + 5.0**-2) ** -0.5
    assert (several <= renyi_divergences(joint, 4.0, orders) * (1 + 1e-12)).all()
    accountant = RdpAccountant(orders=list(range(2, 1000)))
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(6.0), 9))
    assert skellam_epsilon(2.0, 1e6, DELTA) == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 20.0])
def test_the_multiplier_is_the_smallest_that_the_budget_allows(epsilon: float) -> None:
    multiplier = skellam_multiplier(epsilon, 256.0, DELTA)
    assert skellam_epsilon(multiplier, 256.0, DELTA) <= epsilon
    assert skellam_epsilon(multiplier * (1 - 1e-6), 256.0, DELTA) > epsilon


CHANNEL = Channel.from_probabilities([[0.6, 0.4], [0.4, 0.6]], [1.0, 2.0], [1.0, 2.0], 1.0)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: NoisySum(-0.5),
        lambda: NoisySum(math.nan),
        lambda: ChannelDraws((CHANNEL,), draws=-5),
        lambda: ChannelDraws((CHANNEL,), draws=np.array([5.7])),  # type: ignore[arg-type]
        lambda: Poisson(-0.1),
        lambda: FixedSize(5, 4),
        lambda: SubsampledGaussian(math.nan, Poisson(0.1), 10),
        lambda: SubsampledGaussian(1.0, Poisson(0.1), -10),
        lambda: sampled_gaussian_epsilon(math.nan, Poisson(0.1), 10, DELTA),
        lambda: HiddenMessages(0, 202.0),
        lambda: hidden_epsilon([HiddenMessages(10, 202.0, 16.0)], DELTA, "replace_one"),  # type: ignore[arg-type]
        lambda: gaussian_epsilon(-1.0, DELTA),
        lambda: skellam_epsilon(math.nan, 32.0, DELTA),
        lambda: closed_form_epsilon(10_000, -1.0, DELTA),
    ],
)
def test_what_is_no_event_has_no_loss(asked: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="; accepted: "):
        asked()
