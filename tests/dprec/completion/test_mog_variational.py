from __future__ import annotations

import numpy as np
import pytest

from dprec.completion import COMPLETIONS, Observations
from dprec.errors import InputError
from tests.dprec.completion.planted import PI, SIGMA, planted


def error_of(kind: str, observations: Observations, truth: np.ndarray, **options: int) -> tuple[float, dict]:
    completed = COMPLETIONS[kind](rank=3, **options).fit(observations, seed=0)
    users, items = np.divmod(np.arange(truth.size), truth.shape[1])
    error = completed.predict(users, items) - truth.ravel()
    return float(np.sqrt(np.mean(error**2))), completed.diagnostics


@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_mixture_is_recovered_and_beats_one_gaussian(seed: int) -> None:
    observations, truth = planted(seed)
    error, found = error_of("mog-mf-variational", observations, truth)
    np.testing.assert_allclose(found["pi"], PI, atol=0.05)
    np.testing.assert_allclose(found["sigma"], SIGMA, rtol=0.1)
    assert error <= 0.95 * error_of("mf", observations, truth)[0]


def test_the_log_likelihood_never_falls() -> None:
    observations, truth = planted(2)
    trace = np.array(error_of("mog-mf-variational", observations, truth, iterations=60)[1]["log_likelihood"])
    assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[1:]))


def test_one_gaussian_collapses_says_so_and_equals_matrix_factorisation() -> None:
    observations, truth = planted(3, np.array([1.0]), np.array([0.7]))
    completed = COMPLETIONS["mog-mf-variational"](rank=3).fit(observations, seed=0)
    assert len(completed.notes) == 1
    assert "collapsed to one Gaussian of standard deviation 0.699;" in completed.notes[0]
    error, _ = error_of("mog-mf-variational", observations, truth)
    plain, _ = error_of("mf", observations, truth)
    assert error == pytest.approx(plain, rel=0.01)


@pytest.mark.parametrize("components", [1, 3])
def test_a_mixture_that_stands_has_no_note(components: int) -> None:
    observations, _ = planted(0)
    completion = COMPLETIONS["mog-mf-variational"](rank=3, components=components, iterations=20)
    assert completion.fit(observations, seed=0).notes == ()


def test_steps_end_at_the_tolerance() -> None:
    observations, truth = planted(0)
    early = error_of("mog-mf-variational", observations, truth, tolerance=1e-2)[1]
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
def test_settings_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        COMPLETIONS["mog-mf-variational"](**options)
