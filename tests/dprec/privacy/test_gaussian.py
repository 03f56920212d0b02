"""What Gaussian noise costs, against closed forms and a library for accounting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from dprec.accounting import NoisySum, gaussian_epsilon, largest_mu
from dprec.accounting.noisy_sums import gaussian_delta

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


def test_nothing_is_lost_with_so_much_noise_and_everything_without() -> None:
    assert gaussian_epsilon(1e-7, 1e-6) == 0.0
    assert gaussian_epsilon(0.0, 1e-6) == 0.0
    assert gaussian_epsilon(math.inf, 1e-6) == math.inf


@pytest.mark.parametrize(("mu", "delta"), CASES)
def test_a_library_for_accounting_agrees_to_a_thousandth(mu: float, delta: float) -> None:
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    assert gaussian_epsilon(mu, delta) == pytest.approx(get_epsilon_gaussian(1 / mu, delta), rel=1e-3)


@pytest.mark.parametrize(("mu", "delta"), CASES)
def test_three_releases_lose_no_more_than_renyi_accounting_says(mu: float, delta: float) -> None:
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    # Orders as fine as the optimum of the conversion needs.
    accountant = RdpAccountant([1 + 1.01**power for power in range(-500, 1500)])
    accountant.compose(dp_event.GaussianDpEvent(math.sqrt(3) / mu), 3)
    exact = gaussian_epsilon(mu, delta)
    assert exact <= accountant.get_epsilon(delta) <= exact * 1.5 + 0.1


def test_releases_cost_those_whom_they_are_about() -> None:
    releases = NoisySum(largest_mu(2.0, 1e-6), np.array([True, False, True]))
    np.testing.assert_allclose(releases.losses(1e-6), [2.0, 0.0, 2.0])
    assert releases.losses(1e-9)[0] > 2.5
