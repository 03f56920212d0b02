"""Vectors regressed on features."""

import numpy as np

from dprec.completion.calibrated.regressions import RegressedVectors


def test_coefficients_and_spreads_are_learned_from_exact_observations() -> None:
    random = np.random.default_rng(1)
    features = random.standard_normal((4000, 3))
    coefficients = np.array([[1.0, 0.0], [-0.5, 2.0], [0.0, 0.3]])
    vectors = features @ coefficients + random.standard_normal((4000, 2)) * np.array([0.5, 0.1])
    precision = np.tile(1e6 * np.eye(2), (4000, 1, 1))
    learned = RegressedVectors.at(np.zeros((4000, 2)), features, variance=1.0, spread=1.0)
    for _ in range(20):
        learned = learned.solved(precision, 1e6 * vectors).learned()
    np.testing.assert_allclose(learned.means, vectors, atol=1e-3)
    np.testing.assert_allclose(learned.coefficients, coefficients, atol=0.05)
    np.testing.assert_allclose(learned.spreads, [0.25, 0.01], rtol=0.1)


def test_vectors_without_observations_are_what_their_features_say() -> None:
    features = np.array([[1.0], [2.0]])
    start = RegressedVectors.at(np.zeros((2, 1)), features, variance=1.0, spread=0.5)
    precision, target = np.array([[[1e9]], [[0.0]]]), np.array([[3e9], [0.0]])
    solved = start.solved(precision, target).learned().solved(precision, target)
    np.testing.assert_allclose(solved.means[1], solved.regressed[1])
    np.testing.assert_allclose(solved.covariances[1], solved.spreads[:, None])
