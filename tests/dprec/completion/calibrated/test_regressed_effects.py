import numpy as np
import pytest

from dprec.completion.calibrated.regressions import RegressedBiases


def planted(spread: float, noise: float, entities: int = 4000) -> tuple[RegressedBiases, np.ndarray]:
    """Return effects solved from one noisy observation each, and the true ones."""
    random = np.random.default_rng(5)
    features = np.column_stack([np.ones(entities), random.normal(size=(entities, 2))])
    true = features @ [0.5, -0.3, 0.2] + random.normal(size=entities) * np.sqrt(spread)
    observed = true + random.normal(size=entities) * np.sqrt(noise)
    side = RegressedBiases.at_zero(features, 0.1, intercept=True)
    precision = np.full(entities, 1 / noise)
    for _ in range(60):
        side = side.solved(precision, observed * precision)
    return side, true


def test_the_regression_and_the_spread_are_learned() -> None:
    side, true = planted(spread=0.25, noise=0.5)
    # Six standard errors each: false alarm 2e-9.
    np.testing.assert_allclose(side.coefficients, [0.5, -0.3, 0.2], atol=6 * np.sqrt(0.75 / 4000))
    assert side.spread == pytest.approx(0.25, abs=6 * 0.75 * np.sqrt(2 / 4000))
    # The posterior is the best linear estimate, and knows how good it is.
    errors = side.means - true
    assert np.mean(errors**2) == pytest.approx(side.variances[0], rel=6 * np.sqrt(2 / 4000))
    assert side.variances[0] == pytest.approx(1 / (1 / 0.5 + 1 / side.spread))


def test_what_features_explain_wholly_leaves_no_spread() -> None:
    side, _ = planted(spread=0.0, noise=0.5)
    assert side.spread < 0.05


def test_without_observations_the_prior_remains() -> None:
    side = RegressedBiases.at_zero(np.ones((7, 1)), 0.3, intercept=True)
    solved = side.solved(np.zeros(7), np.zeros(7))
    assert not solved.means.any()
    np.testing.assert_allclose(solved.variances, 0.3)
    assert solved.spread == pytest.approx(0.3)
    assert RegressedBiases.at_zero(np.zeros((3, 0)), 0.3, intercept=False).regressed.shape == (3,)
