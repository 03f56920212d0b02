"""

MoG-MF as published: expectation maximisation with point estimates.


"""

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


def test_a_component_without_cells_keeps_its_variance() -> None:
    mixture = GaussianMixture(np.array([1.0, 0.0]), np.array([1.0, 5.0]))
    gamma, _ = mixture.responsibilities(np.array([1.0, 4.0]))
    again = mixture.estimated(gamma, np.array([1.0, 4.0]))
    np.testing.assert_allclose(again.shares, [1, 0])
    np.testing.assert_allclose(again.variances, [2.5, 5.0])


def test_precisions_are_averages_over_the_components() -> None:
    mixture = GaussianMixture(np.array([0.6, 0.4]), np.array([0.5, 4.0]))
    gamma = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    np.testing.assert_allclose(mixture.precisions(gamma), [2.0, 0.25, 1.125])


def test_a_random_start_is_a_mixture_around_the_variance_and_follows_the_seed() -> None:
    first, again, other = (GaussianMixture.at_random(2.0, 3, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.variances, again.variances)
    assert not np.array_equal(first.shares, other.shares)
    assert first.shares.sum() == pytest.approx(1)
    assert np.all((first.variances >= 0.5) & (first.variances <= 8))


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


def variational_error_of(
    kind: str, observations: Observations, truth: np.ndarray, **options: int
) -> tuple[float, dict]:
    completed = COMPLETIONS[kind](rank=3, **options).fit(observations, seed=0)
    users, items = np.divmod(np.arange(truth.size), truth.shape[1])
    error = completed.predict(users, items) - truth.ravel()
    return float(np.sqrt(np.mean(error**2))), completed.diagnostics


@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_mixture_is_recovered_and_beats_one_gaussian_of_mog_variational(seed: int) -> None:
    observations, truth = planted(seed)
    error, found = variational_error_of("mog-mf-variational", observations, truth)
    np.testing.assert_allclose(found["pi"], PI, atol=0.05)
    np.testing.assert_allclose(found["sigma"], SIGMA, rtol=0.1)
    assert error <= 0.95 * variational_error_of("mf", observations, truth)[0]


def test_the_log_likelihood_never_falls() -> None:
    observations, truth = planted(2)
    trace = np.array(
        variational_error_of("mog-mf-variational", observations, truth, iterations=60)[1]["log_likelihood"]
    )
    assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[1:]))


def test_one_gaussian_collapses_says_so_and_equals_matrix_factorisation() -> None:
    observations, truth = planted(3, np.array([1.0]), np.array([0.7]))
    completed = COMPLETIONS["mog-mf-variational"](rank=3).fit(observations, seed=0)
    assert len(completed.notes) == 1
    assert "collapsed to one Gaussian of standard deviation 0.699;" in completed.notes[0]
    error, _ = variational_error_of("mog-mf-variational", observations, truth)
    plain, _ = variational_error_of("mf", observations, truth)
    assert error == pytest.approx(plain, rel=0.01)


@pytest.mark.parametrize("components", [1, 3])
def test_a_mixture_that_stands_has_no_note_of_mog_variational(components: int) -> None:
    observations, _ = planted(0)
    completion = COMPLETIONS["mog-mf-variational"](rank=3, components=components, iterations=20)
    assert completion.fit(observations, seed=0).notes == ()


def test_steps_end_at_the_tolerance_of_mog_variational() -> None:
    observations, truth = planted(0)
    early = variational_error_of("mog-mf-variational", observations, truth, tolerance=1e-2)[1]
    assert 1 < early["steps"] < 100
    trace = early["log_likelihood"]
    assert abs(trace[-1] - trace[-2]) <= 1e-2 * abs(trace[-2])


def test_a_given_ridge_holds_the_factors_back() -> None:
    observations, _ = planted(0)
    loose = COMPLETIONS["mog-mf-variational"](rank=3, ridge=0.1, iterations=10).fit(observations, seed=0)
    tight = COMPLETIONS["mog-mf-variational"](rank=3, ridge=1e4, iterations=10).fit(observations, seed=0)
    cells = observations.users, observations.items
    assert np.std(tight.predict(*cells)) < 0.2 * np.std(loose.predict(*cells))


@pytest.mark.parametrize(
    "options", [{"components": 0}, {"ridge": 0.0}, {"tolerance": -1.0}, {"iterations": 0}]
)
def test_settings_out_of_range_are_refused_of_mog_variational(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        COMPLETIONS["mog-mf-variational"](**options)
