"""Projections are the closest points of their sets, by certificates and by other algorithms."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from dprec.completion import spectral
from dprec.completion.one_bit import projections
from dprec.completion.one_bit.projections import (
    BoundedNuclearBall,
    NuclearBall,
    project_bounded,
    project_nuclear,
    singular_value_threshold,
)
from dprec.randomness import generator

Matrix = NDArray[np.float64]


def nuclear(matrix: Matrix) -> float:
    return float(np.linalg.norm(matrix, "nuc"))


def brute_force(matrix: Matrix, radius: float, seed: int) -> Matrix:
    """Minimise ||A B^T - V||^2 with (||A||^2 + ||B||^2) / 2 <= radius, whose products are the ball."""
    rows, columns = matrix.shape
    rank = min(rows, columns)
    start = generator(seed, "brute force").normal(size=(rows + columns) * rank) * 0.3

    def split(x: Matrix) -> tuple[Matrix, Matrix]:
        return x[: rows * rank].reshape(rows, rank), x[rows * rank :].reshape(columns, rank)

    def loss(x: Matrix) -> tuple[float, Matrix]:
        left, right = split(x)
        miss = left @ right.T - matrix
        return float((miss**2).sum()) / 2, np.concatenate([(miss @ right).ravel(), (miss.T @ left).ravel()])

    budget = {"type": "ineq", "fun": lambda x: radius - x @ x / 2, "jac": lambda x: -x}
    found = minimize(
        loss, start, jac=True, method="SLSQP", constraints=[budget], options={"maxiter": 2000, "ftol": 1e-16}
    )
    left, right = split(found.x)
    return left @ right.T


def test_values_far_above_the_radius_keep_at_most_one() -> None:
    values = np.array([1e30, 3e29])
    assert singular_value_threshold(values, 1.0) == pytest.approx(1e30)


@pytest.mark.parametrize("seed", range(50))
def test_the_nuclear_projection_is_the_brute_force_solution(seed: int) -> None:
    random = generator(seed, "matrices")
    shape = [(3, 3), (4, 2), (2, 4), (3, 4)][seed % 4]
    matrix = random.normal(size=shape)
    radius = nuclear(matrix) * random.uniform(0.1, 0.9)
    projected = project_nuclear(matrix, radius)
    np.testing.assert_allclose(projected, brute_force(matrix, radius, seed), atol=1e-6)
    # The normal cone says it without an algorithm: no point of the ball lies further that way.
    left_over = matrix - projected
    assert nuclear(projected) <= radius * (1 + 1e-12)
    assert radius * np.linalg.norm(left_over, 2) - (left_over * projected).sum() <= 1e-12


def test_a_matrix_inside_the_ball_is_its_own_projection() -> None:
    matrix = generator(0, "inside").normal(size=(7, 5))
    np.testing.assert_array_equal(project_nuclear(matrix, nuclear(matrix) * 1.01), matrix)
    np.testing.assert_array_equal(project_bounded(matrix * 0.1, nuclear(matrix), 1.0), matrix * 0.1)


def test_the_threshold_leaves_just_the_radius() -> None:
    values = np.array([5.0, 3.0, 3.0, 0.5])
    for radius in (0.1, 1.0, 4.0, 8.0, 11.4):
        threshold = singular_value_threshold(values, radius)
        assert np.maximum(values - threshold, 0).sum() == pytest.approx(radius)
    assert singular_value_threshold(values, 11.5) == singular_value_threshold(values, 100.0) == 0.0
    assert singular_value_threshold(np.zeros(0), 1.0) == 0.0


def dykstra(matrix: Matrix, radius: float, bound: float, steps: int) -> Matrix:
    """Project onto the intersection by another algorithm (Boyle and Dykstra, 1986)."""
    point, first, second = matrix.copy(), np.zeros_like(matrix), np.zeros_like(matrix)
    for _ in range(steps):
        inside = project_nuclear(point + first, radius)
        first += point - inside
        point = np.clip(inside + second, -bound, bound)
        second += inside - point
    return point


@pytest.mark.parametrize("seed", range(8))
def test_the_intersection_meets_both_constraints_and_is_the_closest_point(seed: int) -> None:
    random = generator(seed, "intersection")
    matrix = 3 * np.outer(random.normal(size=12), random.normal(size=9)) + random.normal(size=(12, 9))
    bound, radius = 1.0, float(np.sqrt(12 * 9))
    projected = project_bounded(matrix, radius, bound)
    assert nuclear(projected) <= radius * (1 + 1e-9)
    assert np.abs(projected).max() <= bound * (1 + 1e-9)
    np.testing.assert_allclose(projected, dykstra(matrix, radius, bound, 4000), atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_intersection_is_found_from_far_outside(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # As after a long step: a few observed cells hundreds of times beyond the bound.
    random = generator(seed, "far outside")
    matrix = np.where(random.random((14, 12)) < 0.15, 500 * random.normal(size=(14, 12)), 0.3)
    bound, radius = 1.0, 0.6 * float(np.sqrt(14 * 12))
    projected = project_bounded(matrix, radius, bound)
    monkeypatch.setattr(projections, "_ADMM_ITERATIONS", 30_000)
    monkeypatch.setattr(projections, "_ADMM_TOLERANCE", 1e-8)
    longer = project_bounded(matrix, radius, bound)
    assert nuclear(projected) <= radius * (1 + 1e-9)
    assert np.abs(projected).max() <= bound * (1 + 1e-9)
    np.testing.assert_allclose(projected, longer, atol=1e-3)


@pytest.mark.parametrize("large", [False, True])
def test_factors_are_projected_as_dense_matrices_are(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if large:
        for module in (spectral, projections):
            monkeypatch.setattr(module, "DENSE_CELLS", 0)
    random = generator(1, "factors")
    rows, columns = (each.astype(np.int32) for each in np.nonzero(random.random((40, 30)) < 0.4))
    ball = NuclearBall(rows, columns, (40, 30), 20.0)
    dense = BoundedNuclearBall(rows, columns, (40, 30), 20.0, 1e9)
    point, same = ball.zero(), dense.zero()
    for _ in range(4):
        slopes = random.normal(size=rows.size)
        moved, same_moved = ball.step(point, slopes, 1.5), dense.step(same, slopes, 1.5)
        np.testing.assert_allclose(ball.cells(moved), dense.cells(same_moved), atol=1e-8)
        assert ball.distance(moved, point) == pytest.approx(dense.distance(same_moved, same))
        assert ball.norm(moved) == pytest.approx(dense.norm(same_moved))
        assert moved.values.sum() <= 20.0 * (1 + 1e-9)
        point, same = moved, same_moved


def test_a_projection_is_cut_at_the_largest_rank() -> None:
    random = generator(2, "rank")
    rows, columns = (each.astype(np.int32).ravel() for each in np.indices((30, 20)))
    ball = NuclearBall(rows, columns, (30, 20), 1e6, max_rank=4)
    assert ball.step(ball.zero(), random.normal(size=600), 1.0).rank == 4
