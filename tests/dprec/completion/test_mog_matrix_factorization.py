"""MoG-MF as published: expectation maximisation with point estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dprec.completion.factors as factors_module
from dprec.completion import COMPLETIONS, Observations
from dprec.completion.gradient_descent import PlainFactors, initial_factors, solve_weighted
from dprec.completion.mixtures import GaussianMixture
from dprec.errors import InputError, RunError
from dprec.mechanisms import MECHANISMS
from dprec.randomness import generator, words
from dprec.ratings import RatingScale
from tests.dprec.completion.planted import PI, SIGMA, STARS, planted


def fit(observations: Observations, **options: Any) -> PlainFactors:
    completed = COMPLETIONS["mog-mf"](**{"rank": 3, **options}).fit(observations, seed=0)
    assert isinstance(completed, PlainFactors)
    return completed


def error_of(completed: PlainFactors, truth: np.ndarray) -> float:
    users, items = np.divmod(np.arange(truth.size), truth.shape[1])
    return float(np.sqrt(np.mean((completed.predict(users, items) - truth.ravel()) ** 2)))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_mixture_is_recovered_and_beats_one_gaussian(seed: int) -> None:
    observations, truth = planted(seed)
    completed = fit(observations)
    np.testing.assert_allclose(completed.diagnostics["pi"], PI, atol=0.05)
    np.testing.assert_allclose(completed.diagnostics["sigma"], SIGMA, rtol=0.2)
    assert error_of(completed, truth) <= 0.8 * error_of(fit(observations, components=1), truth)


@pytest.mark.parametrize("ridge", [0.0, 1.0, 30.0])
def test_the_penalised_log_likelihood_never_falls(ridge: float) -> None:
    observations, _ = planted(2)
    trace = np.array(fit(observations, iterations=60, ridge=ridge).diagnostics["log_likelihood"])
    assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[1:]))
    assert trace[-1] > trace[0]


def test_a_step_is_that_of_the_equations() -> None:
    random = generator(1, "one step")
    users, items = np.nonzero(random.random((9, 7)) < 0.6)
    values = random.normal(3.0, 1.0, users.size)
    observations = Observations(users.astype(np.int32), items.astype(np.int32), values, (9, 7), STARS)
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
    np.testing.assert_allclose(completed.user_factors, left)
    np.testing.assert_allclose(completed.item_factors, right)
    np.testing.assert_allclose(completed.diagnostics["pi"], pi[np.argsort(variances)])
    np.testing.assert_allclose(completed.diagnostics["sigma"], np.sqrt(np.sort(variances)))


def test_bounded_laplace_noise_collapses_the_mixture_and_a_note_says_so() -> None:
    random = generator(4, "collapse")
    channel = MECHANISMS["bounded-laplace"]().channel(STARS, 1.0)
    users, items = np.nonzero(random.random((300, 200)) < 0.2)
    levels = random.integers(1, 6, users.size).astype(np.int8)
    values = channel.values[channel.sample(levels, words(0, "report", 0, levels.size))]
    cells = Observations(users.astype(np.int32), items.astype(np.int32), values, (300, 200), STARS)
    completed = fit(cells, rank=1)
    assert len(completed.notes) == 1
    assert "collapsed to one Gaussian of standard deviation 1." in completed.notes[0]
    np.testing.assert_allclose(
        completed.predict(cells.users, cells.items),
        fit(cells, rank=1, components=1).predict(cells.users, cells.items),
        atol=0.05,
    )


@pytest.mark.parametrize("components", [1, 3])
def test_a_mixture_that_stands_has_no_note(components: int) -> None:
    observations, _ = planted(0)
    assert fit(observations, components=components, iterations=20).notes == ()


def test_steps_end_at_the_tolerance() -> None:
    observations, _ = planted(0)
    early = fit(observations, tolerance=1e-2).diagnostics
    assert 1 < early["steps"] < 100
    trace = early["log_likelihood"]
    assert abs(trace[-1] - trace[-2]) <= 1e-2 * abs(trace[-2])


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


def test_users_and_items_without_ratings_are_predicted_the_mean() -> None:
    scale = RatingScale.evenly(1, 5, 1)
    seen = Observations(
        np.array([0, 0, 1, 1], np.int32),
        np.array([0, 1, 0, 1], np.int32),
        np.array([5.0, 4.0, 4.0, 3.0]),
        (4, 3),
        scale,
    )
    completed = fit(seen, rank=1, ridge=0.01)
    np.testing.assert_array_equal(completed.predict(np.array([3, 0, 3]), np.array([0, 2, 2])), 4.0)
    assert completed.predict(np.array([0]), np.array([0]))[0] > 4.0


def test_results_do_not_depend_on_the_number_of_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec.completion.gradient_descent.BLOCK", 16)
    monkeypatch.setattr("dprec.completion.mixtures.BLOCK", 1000)
    observations, _ = planted(5)
    predictions = []
    for processors in (1, 3):
        monkeypatch.setattr(factors_module.os, "cpu_count", lambda processors=processors: processors)
        completed = fit(observations, iterations=5)
        predictions.append(completed.predict(observations.users, observations.items))
    np.testing.assert_array_equal(*predictions)


@pytest.mark.parametrize(
    "options", [{"components": 0}, {"ridge": -1.0}, {"tolerance": -1.0}, {"iterations": 0}, {"rank": 0}]
)
def test_settings_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        COMPLETIONS["mog-mf"](**options)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_ratings_that_overflow_end_in_an_error_that_names_the_iteration() -> None:
    observations, _ = planted(0)
    huge = Observations(
        observations.users, observations.items, observations.values * 1e160, observations.shape, STARS
    )
    with pytest.raises(RunError, match="iteration 1"):
        fit(huge)
