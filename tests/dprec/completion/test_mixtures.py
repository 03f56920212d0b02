"""MoG-MF: expectation maximisation with point estimates, as published, and with uncertain factors."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dprec.completion import COMPLETIONS, Completed, FittedMixture, Observations
from dprec.completion.gradient_descent import PlainFactors, initial_factors, solve_weighted
from dprec.completion.mixtures import GaussianMixture
from dprec.mechanisms import MECHANISMS
from dprec.randomness import generator, words
from tests import make
from tests.make import STARS

PI, SIGMA = np.array([0.5, 0.3, 0.2]), np.array([0.2, 1.0, 4.0])


def planted(seed: int) -> Observations:
    """Return 30 % of a 400 x 300 matrix of rank 3, under noise that is a mixture of Gaussians."""
    random = generator(seed, "planted")
    truth = random.normal(size=(400, 3)) @ random.normal(size=(300, 3)).T
    users, items = np.nonzero(random.random(truth.shape) < 0.3)
    noise = SIGMA[random.choice(3, users.size, p=PI)] * random.normal(size=users.size)
    return make.observations(users, items, truth[users, items] + noise, truth.shape)


def test_responsibilities_are_those_of_the_densities() -> None:
    mixture = GaussianMixture(np.array([0.6, 0.4]), np.array([0.5, 3.0]))
    squares = np.array([0.0, 1.0, 9.0, 1e6])
    gamma, log_likelihood = mixture.responsibilities(squares)
    heights = mixture.shares / np.sqrt(2 * np.pi * mixture.variances)
    densities = heights[:, None] * np.exp(-squares / (2 * mixture.variances[:, None]))
    near = densities[:, :3]
    np.testing.assert_allclose(gamma[:, :3], near / near.sum(axis=0))
    # The density of the last underflows; in logarithms it still belongs to the wider component.
    np.testing.assert_array_equal(gamma[:, 3], [0.0, 1.0])
    last = np.log(heights[1]) - 1e6 / 6.0
    assert log_likelihood == pytest.approx(np.log(near.sum(axis=0)).sum() + last)


def fit(observations: Observations, kind: str = "mog-mf", **options: Any) -> Completed:
    return COMPLETIONS[kind](**{"rank": 3, **options}).fit(observations, seed=0)


def of(completed: Completed) -> FittedMixture:
    assert completed.mixture is not None
    return completed.mixture


@pytest.mark.parametrize(
    ("kind", "options"),
    [*(("mog-mf", {"ridge": ridge}) for ridge in (0.0, 1.0, 30.0)), ("mog-mf-variational", {})],
)
def test_the_penalised_log_likelihood_never_falls(kind: str, options: dict[str, float]) -> None:
    observations = planted(2)
    trace = np.array(of(fit(observations, kind, iterations=60, **options)).log_likelihood)
    assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[1:]))
    assert trace[-1] > trace[0]


def test_a_step_is_that_of_the_equations() -> None:
    random = generator(1, "one step")
    users, items = np.nonzero(random.random((9, 7)) < 0.6)
    values = random.normal(3.0, 1.0, users.size)
    observations = make.observations(users, items, values, (9, 7))
    ridge = 0.5
    left, right = initial_factors(observations, 2, 0)
    mixture = GaussianMixture.at_random(float(values.var()), 3, 0)
    pi, variances = mixture.shares, mixture.variances

    def shares() -> np.ndarray:
        residuals = values - np.einsum("ij,ij->i", left[users], right[items])
        heights = pi / np.sqrt(2 * np.pi * variances) * np.exp(-(residuals[:, None] ** 2) / (2 * variances))
        return heights / heights.sum(axis=1, keepdims=True), residuals

    gamma, residuals = shares()
    pi = gamma.mean(axis=0)
    variances = (gamma * residuals[:, None] ** 2).sum(axis=0) / gamma.sum(axis=0)
    weights = (gamma / (2 * variances)).sum(axis=1)
    for side, own, other in ((left, users, items), (right, items, users)):
        factors = right if side is left else left
        for entity in range(len(side)):
            mine = own == entity
            design = factors[other[mine]]
            normal = design.T @ (weights[mine, None] * design) + ridge * np.eye(2)
            side[entity] = np.linalg.solve(normal, design.T @ (weights[mine] * values[mine]))
    completed = fit(observations, rank=2, ridge=ridge, iterations=1)
    assert isinstance(completed, PlainFactors)
    np.testing.assert_allclose(completed.user_factors, left)
    np.testing.assert_allclose(completed.item_factors, right)
    np.testing.assert_allclose(of(completed).pi, pi[np.argsort(variances)])
    np.testing.assert_allclose(of(completed).sigma, np.sqrt(np.sort(variances)))


def test_bounded_laplace_noise_collapses_the_mixture_and_a_note_says_so() -> None:
    random = generator(4, "collapse")
    channel = MECHANISMS["bounded-laplace"]().channel(STARS, 1.0)
    users, items = np.nonzero(random.random((300, 200)) < 0.2)
    levels = random.integers(1, 6, users.size).astype(np.int8)
    values = channel.values[channel.sample(levels, words(0, "report", 0, levels.size))]
    cells = make.observations(users, items, values, (300, 200))
    completed = fit(cells, rank=1)
    assert len(completed.notes) == 1
    assert "collapsed to one Gaussian of standard deviation 1." in completed.notes[0]
    np.testing.assert_allclose(
        completed.predict(cells.users, cells.items),
        fit(cells, rank=1, components=1).predict(cells.users, cells.items),
        atol=0.05,
    )


def test_without_a_ridge_the_smallest_of_several_minima_is_taken() -> None:
    random = generator(6, "minima")
    items = random.normal(size=(4, 3))
    weights = sp.csr_array(np.array([[2.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]]))
    ratings = np.array([[4.0, 0, 0, 0], [1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0]])
    solved = solve_weighted(weights, sp.csr_array(weights.toarray() * ratings), items, 0.0)
    roots = np.sqrt(weights.toarray())
    for row in range(3):
        smallest = np.linalg.lstsq(roots[row][:, None] * items, roots[row] * ratings[row])[0]
        np.testing.assert_allclose(solved[row], smallest, atol=1e-9)
    nearly = solve_weighted(weights, sp.csr_array(weights.toarray() * ratings), items, 1e-7)
    np.testing.assert_allclose(solved, nearly, atol=1e-4)
