from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dprec.arrays import offsets
from dprec.kernels.least_squares import gather, scatter, solve, write_moments
from tests.interpreted import twin

RANDOM = np.random.default_rng(0)
USERS, ITEMS = 70, 9
"""More users than are solved side by side, who rated from none to all of the items."""

RATED = RANDOM.random((USERS, ITEMS)) < np.linspace(0, 1, USERS)[:, None]
INDPTR, OTHERS = offsets(RATED.sum(axis=1)), np.nonzero(RATED)[1].astype(np.int32)
WEIGHTS, TARGETS = RANDOM.uniform(0.5, 2, (2, OTHERS.size)).astype(np.float32)


def moments_of(entities: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and packed covariances, and the moments that kernels compute of them."""
    means, roots = RANDOM.normal(size=(entities, width)), RANDOM.normal(size=(entities, width, width))
    upper = np.triu_indices(width)
    covariances = np.ascontiguousarray((roots @ roots.transpose(0, 2, 1))[:, *upper])
    (moments,) = written(write_moments, [(entities, 1 + width + upper[0].size)], means, covariances)
    return means, covariances, moments


def written(kernel: Callable[..., Any], shapes: list[tuple[int, ...]], *given: Any) -> list[np.ndarray]:
    """Return what a kernel adds to zeros, the same bits compiled and interpreted."""
    compiled, plain = ([np.zeros(shape) for shape in shapes] for _ in range(2))
    assert kernel(*compiled, *given) == twin(kernel)(*plain, *given)
    assert [each.tobytes() for each in compiled] == [each.tobytes() for each in plain]
    return compiled


@pytest.mark.parametrize("width", [1, 3, 7])
def test_moments_are_those_of_one_and_the_parameters(width: int) -> None:
    means, covariances, moments = moments_of(5, width)
    whole = np.hstack([np.ones((5, 1)), means])
    upper, lower = np.triu_indices(1 + width)
    products = whole[:, upper] * whole[:, lower]
    products[:, 1 + width :] += covariances
    np.testing.assert_allclose(moments, products, rtol=1e-13)


@pytest.mark.parametrize("width", [1, 6])
def test_sums_by_row_and_by_the_other_side(width: int) -> None:
    moments = moments_of(ITEMS, width)[2].astype(np.float32)
    cells = INDPTR, OTHERS, WEIGHTS, TARGETS
    first, linear = 3, 1 + width
    shapes = [(USERS - first, moments.shape[1]), (USERS - first, linear)]
    sums, reached = written(gather, shapes, first, *cells, moments)
    users = np.repeat(np.arange(USERS), np.diff(INDPTR))
    since = users >= first
    rows, others = users[since] - first, OTHERS[since]
    weights, targets = WEIGHTS[since, None], TARGETS[since, None]
    expected = [np.zeros(shape) for shape in shapes]
    np.add.at(expected[0], rows, weights * moments[others].astype(np.float64))
    np.add.at(expected[1], rows, targets * moments[others, :linear].astype(np.float64))
    np.testing.assert_allclose(sums, expected[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(reached, expected[1], rtol=0, atol=1e-5)
    own = moments_of(USERS - first, width)[2]
    shapes = [(ITEMS, moments.shape[1]), (ITEMS, linear)]
    sums, reached = written(scatter, shapes, first, *cells, own)
    expected = [np.zeros(shape) for shape in shapes]
    np.add.at(expected[0], others, weights.astype(np.float64) * own[rows])
    np.add.at(expected[1], others, targets.astype(np.float64) * own[rows, :linear])
    np.testing.assert_allclose(sums, expected[0], rtol=1e-12)
    np.testing.assert_allclose(reached, expected[1], rtol=0, atol=1e-11)


@pytest.mark.parametrize("width", [1, 2, 6])
def test_solutions_of_normal_equations(width: int) -> None:
    noise, upper = 0.7, np.triu_indices(width)
    moments, linear = moments_of(ITEMS, width)[2].astype(np.float32), 1 + width
    shapes = [(USERS, moments.shape[1]), (USERS, linear)]
    sums, reached = written(gather, shapes, 0, INDPTR, OTHERS, WEIGHTS, TARGETS, moments)
    root = RANDOM.normal(size=(width, width))
    precision = root @ root.T + np.eye(width)
    pivots = np.diag(np.linalg.cholesky(precision)) ** 2
    shapes = [(USERS, width), (USERS, upper[0].size)]
    means, covariances = written(solve, shapes, sums, reached, precision[upper], pivots, noise)
    whole = np.zeros((USERS, 1 + width, 1 + width))
    whole[:, *np.triu_indices(1 + width)] = sums
    whole += np.triu(whole, 1).transpose(0, 2, 1)
    without_bias = np.r_[0, 2 : 1 + width]
    grams = whole[:, without_bias][:, :, without_bias] / noise + precision
    targets = (reached - whole[:, 1])[:, without_bias] / noise
    np.testing.assert_allclose(means, np.linalg.solve(grams, targets[:, :, None])[:, :, 0], rtol=1e-9)
    np.testing.assert_allclose(covariances, np.linalg.inv(grams)[:, *upper], rtol=0, atol=1e-10)


def test_no_pivot_falls_below_that_of_the_prior() -> None:
    """Sums that are rounded, of a design without rank, leave no positive matrix."""
    sums, reached = np.zeros((1, 6)), np.zeros((1, 3))
    sums[0, [0, 2, 5]] = 1.0, 1.0 + 1e-7, 1.0
    shapes, tiny = [(1, 2), (1, 3)], np.full(2, 1e-9)
    means, covariances = written(solve, shapes, sums, reached, np.array([1e-9, 0, 1e-9]), tiny, 1.0)
    assert np.isfinite(means).all()
    assert covariances[0, 2] == pytest.approx(1e9, rel=1e-6)
