"""The item step: projection, and the shrinkage that noise of known size asks for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.private_als.learner import orthogonal, root_of_moment, shrunken_biases, shrunken_factors


def symmetric(seed: int, items: int = 6, rank: int = 3) -> NDArray[np.float64]:
    matrices = np.random.default_rng(seed).standard_normal((items, rank, rank))
    return matrices + matrices.transpose(0, 2, 1)


def test_without_noise_the_biases_are_those_of_ridge_regression() -> None:
    counts, sums = np.array([4.0, 1.0, 0.0, -2.0]), np.array([2.0, 1.0, 0.0, 3.0])
    biases = shrunken_biases(counts, sums, noise=0.0, residual=0.5, prior=0.25)
    assert biases == pytest.approx([2 / 6, 1 / 3, 0, 0])


def test_biases_have_the_least_expected_squared_error() -> None:
    random = np.random.default_rng(1)
    count, noise, residual, prior, draws = 5.0, 2.0, 0.4, 0.3, 200_000
    true = random.normal(0, np.sqrt(prior), draws)
    sums = count * true + random.normal(0, np.sqrt(noise**2 + residual * count), draws)
    counts = np.full(draws, count)
    biases = shrunken_biases(counts, sums, noise=noise, residual=residual, prior=prior)
    error = np.mean((biases - true) ** 2)
    for factor in (0.9, 1.1):
        assert np.mean((factor * biases - true) ** 2) > error


def test_without_noise_the_factors_are_those_of_the_projected_matrix() -> None:
    matrices, sides = symmetric(2), np.random.default_rng(3).standard_normal((6, 3))
    values, vectors = np.linalg.eigh(matrices)
    assert values.min() < -0.5
    projected = vectors * np.maximum(values, 0)[:, None, :] @ vectors.transpose(0, 2, 1)
    # Nothing is said in the directions that are projected away, so sides there mean nothing.
    along = vectors * (values > 0)[:, None, :] @ vectors.transpose(0, 2, 1)
    wanted = np.linalg.solve(projected + 0.7 / 0.2 * np.eye(3), (along @ sides[:, :, None]))[:, :, 0]
    found = shrunken_factors(matrices, sides, noise=0.0, residual=np.full(6, 0.7), prior=0.2)
    assert np.allclose(found, wanted)


def test_the_projection_is_the_nearest_positive_semidefinite_matrix() -> None:
    matrix, random = symmetric(4, items=1)[0], np.random.default_rng(5)
    values, vectors = np.linalg.eigh(matrix)
    # With a prior so wide that nothing is shrunk, factors solve the projected system.
    sides = (vectors * np.maximum(values, 0)) @ vectors.T
    wide = shrunken_factors(
        np.repeat(matrix[None], 3, axis=0), sides, noise=0.0, residual=np.full(3, 1e-12), prior=1e6
    )
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    assert np.allclose(wide @ nearest, nearest, atol=1e-6)
    roots = random.standard_normal((2000, 3, 3))
    others = roots @ roots.transpose(0, 2, 1) * random.uniform(0, 2, 2000)[:, None, None]
    distances = np.linalg.norm(others - matrix, axis=(1, 2))
    assert np.linalg.norm(nearest - matrix) < distances.min()


def test_the_more_noise_the_shorter_the_factors() -> None:
    matrices = symmetric(6) @ symmetric(6)
    sides = np.random.default_rng(7).standard_normal((6, 3))
    lengths = [
        np.linalg.norm(shrunken_factors(matrices, sides, noise=noise, residual=np.ones(6), prior=1.0))
        for noise in (0.0, 1.0, 10.0, 1e6)
    ]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < 1e-9


def test_nothing_known_gives_nothing() -> None:
    nothing = shrunken_factors(
        np.zeros((2, 2, 2)), np.ones((2, 2)), noise=0.0, residual=np.zeros(2), prior=1.0
    )
    assert not nothing.any()


def test_directions_are_uncorrelated_and_of_length_one() -> None:
    random = np.random.default_rng(8)
    factors, weights = random.standard_normal((50, 3)) * [3.0, 1.0, 0.01], random.uniform(0.5, 2, 50)
    spread = orthogonal(factors, weights, 1e-9)
    assert np.allclose((spread * weights[:, None]).T @ spread / weights.sum(), np.eye(3))
    floored = orthogonal(factors, weights, 0.1)
    squares = np.sort((floored**2 * weights[:, None]).sum(axis=0) / weights.sum())
    assert squares[0] < 0.01
    assert squares[2] == pytest.approx(1.0)
    assert not orthogonal(np.zeros((4, 2)), np.ones(4), 0.1).any()


def test_a_root_has_eigenvalues_within_bounds() -> None:
    moment = np.array([[0.5, 0.1], [0.1, -0.3]])
    root = root_of_moment(moment, 0.02)
    assert np.linalg.eigvalsh(root @ root.T) == pytest.approx([0.02, float(np.linalg.eigvalsh(moment)[1])])
