"""Mechanisms with a density of steps: unbiased, of the published variance, and not changed by the cutting."""

import numpy as np
import pytest
from scipy import integrate

from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.steps import _WORTH_IT, Steps, edges_of, half_width, wave
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
HALF_STARS = RatingScale.evenly(0.5, 5, 0.5)
UNBIASED = ["duchi", "piecewise", "hybrid", "square-wave"]


@pytest.mark.parametrize("kind", UNBIASED)
@pytest.mark.parametrize("epsilon", [1e-4, 0.3, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("scale", [STARS, HALF_STARS])
def test_the_values_are_unbiased(kind: str, epsilon: float, scale: RatingScale) -> None:
    channel = MECHANISMS[kind]().channel(scale, epsilon)
    np.testing.assert_allclose(channel.bias(), 0, atol=1e-9 * np.abs(channel.values).max())


def test_the_variance_of_one_bit_is_as_published() -> None:
    # On [-1, 1]: ((e + 1) / (e - 1))^2 - x^2; the scale is twice as long.
    x = (STARS.values - 3) / 2
    for epsilon in (0.5, 2.0):
        c = (np.exp(epsilon) + 1) / (np.exp(epsilon) - 1)
        variance = MECHANISMS["duchi"]().channel(STARS, epsilon).variance()
        np.testing.assert_allclose(variance, 4 * (c**2 - x**2))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_variance_of_the_piecewise_mechanism_is_less_than_published_by_that_of_the_steps(
    epsilon: float,
) -> None:
    # Published on [-1, 1]: x^2 / (r - 1) + (r + 3) / (3 (r - 1)^2), r = e^(epsilon / 2). Sending the middle
    # of a step in place of the noisy rating takes away the variance within the steps.
    channel = MECHANISMS["piecewise"]().channel(STARS, epsilon)
    middles = (channel.values - 3) / 2
    bound = 1 / np.tanh(epsilon / 4)
    edges = [-bound]
    for middle in middles:
        edges.append(2 * middle - edges[-1])
    assert edges[-1] == pytest.approx(bound)
    within = channel.probabilities @ (np.diff(edges) ** 2 / 12)
    root, x = np.exp(epsilon / 2), (STARS.values - 3) / 2
    published = x**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    np.testing.assert_allclose(channel.variance() / 4 + within, published)


def test_up_to_its_limit_the_hybrid_is_one_bit_and_beyond_it_no_worse_than_either_at_the_worst() -> None:
    assert pytest.approx(0.61, abs=0.005) == _WORTH_IT
    below, above = MECHANISMS["hybrid"]().channel(STARS, 0.6), MECHANISMS["hybrid"]().channel(STARS, 0.62)
    assert (below.symbols, above.symbols) == (2, 11)
    for epsilon in (0.7, 1.0, 2.0, 4.0):
        worst = {kind: MECHANISMS[kind]().channel(STARS, epsilon).variance().max() for kind in UNBIASED[:3]}
        # The piecewise part is sent without the variance within its steps, which published bounds include.
        assert worst["hybrid"] <= max(worst["duchi"], worst["piecewise"])


@pytest.mark.parametrize("epsilon", [1e-9, 9.99e-4, 1.01e-3, 0.1, 1.0, 10.0])
def test_the_window_maximises_the_bound_on_information(epsilon: float) -> None:
    # Its closed form in extended precision.
    e = np.longdouble(epsilon)
    if epsilon >= 1e-3:
        exact = (e * np.exp(e) - np.exp(e) + 1) / (2 * np.exp(e) * (np.exp(e) - 1 - e))
        assert half_width(epsilon) == pytest.approx(float(exact), rel=1e-7)
    assert half_width(epsilon) == pytest.approx(half_width(epsilon * 1.001), abs=1e-3)
    assert 0 < half_width(epsilon) <= 0.5


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_staircase_is_a_density_that_loses_epsilon_over_its_width(epsilon: float) -> None:
    noise = Steps(4.0, epsilon)
    falls = (np.arange(60) + noise.inner_share) * 4.0
    inner = 2 * integrate.quad(lambda x: noise.density(np.array(x)), 0, falls[-1], points=falls, limit=200)[0]
    assert inner + 2 * noise.tail(falls[-1:])[0] == pytest.approx(1.0, abs=1e-9)
    places = np.linspace(-30, 30, 1201) + 1e-3
    ratio = np.log(noise.density(places)) - np.log(noise.density(places + 4.0))
    assert np.abs(ratio).max() == pytest.approx(epsilon)
    starts = np.array([0.0, 0.3, 4.0, 7.7])
    for start, tail in zip(starts, noise.tail(starts), strict=True):
        within = integrate.quad(
            lambda x: noise.density(np.array(x)), start, falls[-1], points=falls, limit=200
        )
        assert within[0] + noise.tail(falls[-1:])[0] == pytest.approx(tail, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_staircase_is_smaller_than_laplace_noise_and_nearly_unbiased(epsilon: float) -> None:
    # Geng et al.: the mean magnitude is e^(epsilon / 2) / (e^epsilon - 1) widths.
    noise = Steps(4.0, epsilon)
    falls = (np.arange(80) + noise.inner_share) * 4.0
    magnitude = (
        2 * integrate.quad(lambda x: x * noise.density(np.array(x)), 0, falls[-1], points=falls, limit=200)[0]
    )
    assert magnitude == pytest.approx(4 * np.exp(epsilon / 2) / np.expm1(epsilon), rel=1e-6)
    assert magnitude < 4 / epsilon
    bias = MECHANISMS["staircase"]().channel(STARS, epsilon).bias()
    np.testing.assert_allclose(bias, 0, atol=5e-3)


def test_steps_are_cut_where_a_density_changes_and_nowhere_else() -> None:
    left = np.array([-1.0, -0.5, 0.0])
    probabilities, middles = wave(left, left + 1, -1.0, 1.0, np.log(3))
    np.testing.assert_allclose(middles, [-0.75, -0.25, 0.25, 0.75])
    np.testing.assert_allclose(probabilities * 8, [[3, 3, 1, 1], [1, 3, 3, 1], [1, 1, 3, 3]])
    assert edges_of(np.array([0.1 + 0.2, 1.0]), np.array([0.3])).size == 2
