"""What sums with Gaussian noise cost, against brute force and another library; and what costs nothing."""

import math
from collections.abc import Callable

import numpy as np
import pytest
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
)
from dprec.accounting.events import gaussian_delta
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
