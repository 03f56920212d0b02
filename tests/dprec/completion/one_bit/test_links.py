"""The links, their tails, and the steepness that bounds are made of."""

from __future__ import annotations

import numpy as np
import pytest

from dprec.completion import Link, link_of
from dprec.completion.one_bit.solver import Gaussian, Logistic, steepness
from dprec.errors import InputError

LINKS: list[Link] = [Logistic(), Gaussian(1.0), Gaussian(0.3), Gaussian(5.0)]
links = pytest.mark.parametrize("link", LINKS, ids=str)
X = np.linspace(-6, 6, 241)


def derivative(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (values[2:] - values[:-2]) / (x[2:] - x[:-2])


@links
def test_derivatives_are_those_of_the_logarithm(link: Link) -> None:
    x = np.linspace(-3, 3, 20001)
    np.testing.assert_allclose(link.hazard(x)[1:-1], derivative(link.log_probability(x), x), atol=1e-5)
    np.testing.assert_allclose(link.curvature(x)[1:-1], -derivative(link.hazard(x), x), atol=1e-4)
    np.testing.assert_allclose(link.density(x)[1:-1], derivative(link.probability(x), x), atol=1e-5)
    assert link.curvature(x).max() <= link.largest_curvature * (1 + 1e-12)


@links
def test_a_link_is_symmetric_and_agrees_with_itself(link: Link) -> None:
    np.testing.assert_allclose(link.probability(X) + link.probability(-X), 1, atol=1e-15)
    np.testing.assert_allclose(np.exp(link.log_probability(X)), link.probability(X), rtol=1e-12)
    np.testing.assert_allclose(link.expected_sign(X), 2 * link.probability(X) - 1, atol=1e-15)


@links
def test_the_tails_keep_their_digits(link: Link) -> None:
    sigma = link.sigma if isinstance(link, Gaussian) else 1.0
    far = np.array([-1e6, -1e3, -50, 50, 1e3, 1e6]) * sigma
    with np.errstate(over="ignore"):
        for values in (link.log_probability(far), link.hazard(far), link.curvature(far)):
            assert np.all(np.isfinite(values))
    if isinstance(link, Logistic):
        np.testing.assert_allclose(link.log_probability(far[:3]), far[:3], rtol=1e-12)
        np.testing.assert_allclose(link.hazard(far[:3]), 1, rtol=1e-12)
    else:
        # log Phi(-t) ~ -t^2 / 2 - log(t sqrt(2 pi)), and the hazard ~ t, for large t.
        t = -far[:2] / sigma
        np.testing.assert_allclose(
            link.log_probability(far[:2]), -(t**2) / 2 - np.log(t * np.sqrt(2 * np.pi)), rtol=1e-9
        )
        np.testing.assert_allclose(link.hazard(far[:2]), t / sigma, rtol=1e-5)


@links
def test_the_expected_sign_has_the_sign_of_the_entry(link: Link) -> None:
    tiny = np.array([-1e-300, -1e-18, 0.0, 1e-18, 1e-300])
    np.testing.assert_array_equal(np.sign(link.expected_sign(tiny)), np.sign(tiny))


@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
def test_steepness_has_its_closed_form(alpha: float) -> None:
    assert steepness(Logistic(), alpha) == pytest.approx(1)
    for sigma in (0.5, 1.0, 2.0):
        link = Gaussian(sigma)
        ends = np.array([alpha])
        product = link.probability(ends) * link.probability(-ends)
        assert steepness(link, alpha) == pytest.approx(float((link.density(ends) / product)[0]))
        assert steepness(link, alpha) <= 8 * (alpha / sigma + 1) / sigma


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: link_of("gaussian", 0.0), "sigma: 0.0; accepted: greater than 0"),
        (lambda: link_of("gaussian", -1.0), "sigma: -1.0; accepted: greater than 0"),
        (lambda: link_of("cauchy", 1.0), "link: 'cauchy'; accepted: logistic, gaussian"),
        (lambda: steepness(Logistic(), 0.0), "alpha: 0.0; accepted: greater than 0"),
    ],
)
def test_bad_settings_are_one_line(call: object, line: str) -> None:
    with pytest.raises(InputError, match=line):
        call()  # type: ignore[operator]
