"""Projections of matrices onto those that have no negative eigenvalue."""

from typing import Any

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.private_als.steps import semidefinite

SIDE = 64


def symmetric(scale: float = 1.0, matrices: int = 20) -> Floats:
    """Return symmetric matrices of normal numbers."""
    numbers = np.random.default_rng(1).standard_normal((matrices, SIDE, SIDE))
    return scale * (numbers + numbers.transpose(0, 2, 1))


def of_rank(rank: int, matrices: int = 20) -> Floats:
    """Return positive semidefinite matrices of a rank."""
    vectors = np.random.default_rng(2).standard_normal((matrices, SIDE, rank))
    return vectors @ vectors.transpose(0, 2, 1)


@pytest.mark.parametrize(
    "matrices",
    [
        symmetric(),
        symmetric(1e150),
        symmetric(1e-150),
        of_rank(5),
        of_rank(SIDE),
        of_rank(5) + symmetric(0.01),
        -of_rank(3),
        np.diag(2.0 ** -np.arange(SIDE))[None],
        np.ones((1, 1, 1)),
    ],
)
def test_a_projection_is_the_nearest_matrix_without_negative_eigenvalues(matrices: Floats) -> None:
    values, vectors = np.linalg.eigh(matrices)
    exact = (vectors * np.maximum(values, 0)[:, None]) @ vectors.transpose(0, 2, 1)
    largest = np.abs(values).max(axis=1)[:, None]
    found = semidefinite(matrices)
    off = np.linalg.eigvalsh(found - exact) / largest
    assert (np.abs(off) < 3e-4).all()
    assert (np.linalg.eigvalsh(found) / largest > 0).all()


def test_a_projection_of_nothing_is_nothing_and_of_no_number_none() -> None:
    assert not semidefinite(np.zeros((2, SIDE, SIDE))).round(300).any()
    for number in (np.nan, np.inf):
        matrices = symmetric()
        matrices[1, 2, 3] = number
        with pytest.raises(np.linalg.LinAlgError, match="not finite"):
            semidefinite(matrices)


@pytest.mark.parametrize("error", [1e-3, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_projection_is_as_near_as_it_is_asked_to_be(error: float, kind: type[np.floating[Any]]) -> None:
    matrices = np.concatenate([symmetric(), of_rank(5), 1e-3 * symmetric()]).astype(kind)
    values, vectors = np.linalg.eigh(matrices.astype(np.float64))
    exact = (vectors * np.maximum(values, 0)[:, None]) @ vectors.transpose(0, 2, 1)
    found = semidefinite(matrices, error)
    assert found.dtype == kind
    off = np.linalg.eigvalsh(found - exact)
    allowed = np.maximum(error, 3e-4 * np.abs(values).max(axis=1))
    assert (np.abs(off) < allowed[:, None]).all()
    assert (np.linalg.eigvalsh(found.astype(np.float64)) > 0).all()


def test_a_projection_does_not_depend_on_the_matrices_beside() -> None:
    matrices = np.concatenate([symmetric(), symmetric(1e-2), symmetric(1e-4)])
    for error in (0.0, 0.01):
        alone = [semidefinite(matrices[[place]], error)[0] for place in range(len(matrices))]
        assert np.array_equal(semidefinite(matrices, error), alone)
