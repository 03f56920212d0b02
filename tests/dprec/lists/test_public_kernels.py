import numpy as np
import pytest

from dprec.lists.public_kernels import CATEGORIES, PublicKernels, popularity_bins
from tests import make

YEARS = np.array([[-1.5], [-1.4], [0.0], [1.4], [1.5]])
GENRES = np.array([[1, 0], [0, 1], [0, 0], [1, 1], [1, 0]], dtype=bool)
POPULARITY = np.array([1.0, 2, 3, 2, 1])


def kernels(years: np.ndarray = YEARS, genres: np.ndarray = GENRES) -> PublicKernels:
    return PublicKernels.among(genres, popularity_bins(years, POPULARITY), POPULARITY)


def test_f_is_the_step_of_newton_s_method_from_zero() -> None:
    shares, sets = POPULARITY / POPULARITY.sum(), make.sparse_sets([], [0], [0, 3, 4], items=5)
    norms = np.sqrt(np.maximum(GENRES.sum(axis=1), 1))
    likeness = (GENRES.astype(float) @ GENRES.T) / np.outer(norms, norms)
    kernel = CATEGORIES * likeness
    spread = np.diag(shares) - np.outer(shares, shares)
    scores = kernels(years=np.zeros((5, 0))).scores(sets)
    for found, own in zip(scores, sets.toarray(), strict=True):
        size = own.sum()
        expected = kernel @ np.linalg.solve(np.eye(5) + size * spread @ kernel, own - size * shares)
        # What is the same for all items orders nothing.
        assert found - shares @ found == pytest.approx(expected - shares @ expected)
