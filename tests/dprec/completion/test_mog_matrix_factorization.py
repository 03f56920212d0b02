from __future__ import annotations

import numpy as np
import pytest

from dprec.completion import COMPLETIONS, Observations
from dprec.completion.mog_matrix_factorization import _Mixture
from dprec.errors import InputError
from dprec.randomness import generator
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
PI, SIGMA = np.array([0.5, 0.3, 0.2]), np.array([0.2, 1.0, 4.0])


def planted(seed: int, pi: np.ndarray = PI, sigma: np.ndarray = SIGMA) -> tuple[Observations, np.ndarray]:
    """400 x 300 matrix of rank 3, 30 % of it observed under noise that is a mixture of Gaussians."""
    random = generator(seed, "planted")
    truth = random.normal(size=(400, 3)) @ random.normal(size=(300, 3)).T
    users, items = np.nonzero(random.random(truth.shape) < 0.3)
    noise = sigma[random.choice(pi.size, users.size, p=pi)] * random.normal(size=users.size)
    cells = users.astype(np.int32), items.astype(np.int32), truth[users, items] + noise
    return Observations(*cells, truth.shape, STARS), truth


def error_of(kind: str, observations: Observations, truth: np.ndarray, **options: int) -> tuple[float, dict]:
    completed = COMPLETIONS[kind](rank=3, **options).fit(observations, seed=0)
    users, items = np.divmod(np.arange(truth.size), truth.shape[1])
    error = completed.predict(users, items) - truth.ravel()
    return float(np.sqrt(np.mean(error**2))), completed.diagnostics


@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_mixture_is_recovered_and_beats_one_gaussian(seed: int) -> None:
    observations, truth = planted(seed)
    error, found = error_of("mog-mf", observations, truth)
    np.testing.assert_allclose(found["pi"], PI, atol=0.05)
    np.testing.assert_allclose(found["sigma"], SIGMA, rtol=0.1)
    assert error <= 0.95 * error_of("mf", observations, truth)[0]


def test_the_log_likelihood_never_falls() -> None:
    observations, truth = planted(2)
    trace = np.array(error_of("mog-mf", observations, truth, iterations=60)[1]["log_likelihood"])
    assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[1:]))


def test_one_gaussian_collapses_says_so_and_equals_matrix_factorisation() -> None:
    observations, truth = planted(3, np.array([1.0]), np.array([0.7]))
    completed = COMPLETIONS["mog-mf"](rank=3).fit(observations, seed=0)
    assert len(completed.notes) == 1
    assert "collapsed to one Gaussian of standard deviation 0.699;" in completed.notes[0]
    error, _ = error_of("mog-mf", observations, truth)
    plain, _ = error_of("mf", observations, truth)
    assert error == pytest.approx(plain, rel=0.01)


@pytest.mark.parametrize("components", [1, 3])
def test_a_mixture_that_stands_has_no_note(components: int) -> None:
    observations, _ = planted(0)
    completion = COMPLETIONS["mog-mf"](rank=3, components=components, iterations=20)
    assert completion.fit(observations, seed=0).notes == ()


def test_steps_end_at_the_tolerance() -> None:
    observations, truth = planted(0)
    early = error_of("mog-mf", observations, truth, tolerance=1e-2)[1]
    assert 1 < early["steps"] < 100
    trace = early["log_likelihood"]
    assert abs(trace[-1] - trace[-2]) <= 1e-2 * abs(trace[-2])


def test_a_given_ridge_holds_the_factors_back() -> None:
    observations, _ = planted(0)
    loose = COMPLETIONS["mog-mf"](rank=3, ridge=0.1, iterations=10).fit(observations, seed=0)
    tight = COMPLETIONS["mog-mf"](rank=3, ridge=1e4, iterations=10).fit(observations, seed=0)
    cells = observations.users, observations.items
    assert np.std(tight.predict(*cells)) < 0.2 * np.std(loose.predict(*cells))


@pytest.mark.parametrize(
    "options", [{"components": 0}, {"ridge": 0.0}, {"tolerance": -1.0}, {"iterations": 0}]
)
def test_settings_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        COMPLETIONS["mog-mf"](**options)


def test_responsibilities_are_those_of_the_densities() -> None:
    mixture = _Mixture(np.array([0.6, 0.4]), np.array([0.5, 3.0]))
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
    mixture = _Mixture(np.array([1.0, 0.0]), np.array([1.0, 5.0]))
    gamma, _ = mixture.responsibilities(np.array([1.0, 4.0]))
    again = mixture.estimated(gamma, np.array([1.0, 4.0]))
    np.testing.assert_allclose(again.shares, [1, 0])
    np.testing.assert_allclose(again.variances, [2.5, 5.0])
