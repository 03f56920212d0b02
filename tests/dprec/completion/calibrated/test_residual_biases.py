import numpy as np
import pytest
from scipy.special import ndtr

from dprec.completion import Calibrated, Regressed
from dprec.completion.calibrated.regressions import Expected
from dprec.completion.calibrated.residual_biases import ResidualAnswers, fitted_to_residuals
from dprec.observations import Observations, ResidualReports
from dprec.progress import silent
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
USERS, ITEMS, RATED = 4000, 40, 10


def observed(lies: float, *, answers: int = 2, seed: int = 3) -> tuple[Observations, np.ndarray]:
    """Return answers of the model itself, and the item biases."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(ITEMS, 2))
    biases = features @ [0.6, -0.3] + 0.2 * random.normal(size=ITEMS)
    items = np.sort(random.random((USERS, ITEMS)).argsort(axis=1)[:, :RATED], axis=1)
    own = biases[items]
    residuals = (own - own.mean(axis=1, keepdims=True)) / np.sqrt(1.2 * (1 - 1 / RATED))
    above = (random.random(own.shape) < ndtr(residuals)) ^ (random.random(own.shape) < lies)
    asked = (random.random(own.shape).argsort(axis=1) < answers).ravel()
    cells = np.flatnonzero(asked)
    reports = ResidualReports(cells, above.ravel()[asked], np.full(cells.size, lies))
    seen = Observations(
        np.repeat(np.arange(USERS, dtype=np.int32), RATED),
        items.ravel().astype(np.int32),
        np.full(USERS * RATED, 3.0),
        (USERS, ITEMS),
        STARS,
        evidence=reports,
    )
    return seen, np.column_stack([np.ones(ITEMS), features, biases])


@pytest.mark.parametrize("lies", [0.0, 0.2])
def test_biases_are_recovered_from_the_answers(lies: float) -> None:
    """Errors in units of the posterior's: the mean square of 40 beyond 3 has probability below 1e-9."""
    seen, known = observed(lies)
    start = Regressed.prior(known[:, :3], Expected(spread=(0.06,)))
    fitted = fitted_to_residuals(start, seen, seen.evidence, 20, silent)
    # What all items have in common is not in the residuals.
    error = fitted.biases - known[:, 3]
    error -= error.mean()
    assert np.mean(error**2 / fitted.variances) < 3
    assert np.corrcoef(fitted.biases, known[:, 3])[0, 1] > 0.9
    assert fitted.coefficients[0] == 0
    assert fitted.coefficients[1:, 0] == pytest.approx([0.6, -0.3], abs=0.15)
    assert 0.01 < fitted.spreads[0] < 0.12


def test_the_slope_is_that_of_the_log_likelihood() -> None:
    seen, known = observed(0.2)
    answers = ResidualAnswers.of(seen, seen.evidence, known[:, :3])
    latent = np.linspace(-3, 3, answers.items.size)
    slopes, information = answers.linearised(latent)

    def log_likelihood(at: np.ndarray) -> np.ndarray:
        chance = 0.2 + 0.6 * ndtr(at)
        return np.log(np.where(answers.reports.above, chance, 1 - chance))

    step = 1e-6
    numeric = (log_likelihood(latent + step) - log_likelihood(latent - step)) / (2 * step)
    np.testing.assert_allclose(slopes, numeric, atol=1e-7)
    assert (information > 0).all()


def test_a_rating_alone_says_nothing() -> None:
    reports = ResidualReports(np.array([0]), np.array([True]), np.array([0.1]))
    seen = Observations(
        np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([3.0]), (2, 3), STARS, evidence=reports
    )
    model = Calibrated().fit(seen, seed=1)
    np.testing.assert_array_equal(model.items.biases, np.zeros(3))
    np.testing.assert_array_equal(model.users.biases, np.zeros(2))


def test_only_differences_from_the_rated_items_count() -> None:
    seen, known = observed(0.1)
    start = Regressed.prior(known[:, :3], Expected(spread=(0.06,)))
    shifted = Regressed.prior(known[:, :3] + [0, 2, -1], Expected(spread=(0.06,)))
    one, other = (fitted_to_residuals(each, seen, seen.evidence, 5, silent) for each in (start, shifted))
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-9)
    np.testing.assert_allclose(one.means - one.means.mean(), other.means - other.means.mean(), atol=1e-9)
