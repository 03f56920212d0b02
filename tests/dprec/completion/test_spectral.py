""" """

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.completion import COMPLETIONS, Observations, spectral
from dprec.completion.spectral import LowRank
from dprec.randomness import generator
from dprec.ratings import RatingScale


def low_rank(matrix: NDArray[np.float64]) -> LowRank:
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return LowRank(left, values, right.T)


@pytest.mark.parametrize("apart", [10.0, 1e-3, 1e-7, 0.0])
def test_nearness_is_decided_as_by_the_distance(apart: float) -> None:
    random = np.random.default_rng(4)
    matrix, moved = random.standard_normal((2, 9, 14))
    one, other = low_rank(matrix), low_rank(matrix + apart * moved)
    distance = one.distance(other)
    assert distance == pytest.approx(np.linalg.norm(apart * moved), rel=1e-6, abs=1e-12)
    # Around the smallest of these limits, all digits of the squared norms cancel.
    for limit in (distance, *distance * np.array([0.5, 1 - 1e-9, 1 + 1e-9, 2.0])):
        assert one.is_near(other, limit) == (distance <= limit)


def small() -> Observations:
    random = generator(0, "svd")
    users, items = np.nonzero(random.random((12, 9)) < 0.5)
    values = random.integers(1, 6, users.size).astype(float)
    shape = (12, 9)
    return Observations(
        users.astype(np.int32), items.astype(np.int32), values, shape, RatingScale.evenly(1, 5, 1)
    )


def by_hand(cells: Observations, rank: int) -> np.ndarray:
    matrix = np.full(cells.shape, np.nan)
    matrix[cells.users, cells.items] = cells.values
    user_means, item_means = np.nanmean(matrix, axis=1), np.nanmean(matrix, axis=0)
    imputed = np.where(np.isnan(matrix), item_means, matrix) - user_means[:, None]
    left, values, right = np.linalg.svd(imputed)
    return user_means[:, None] + (left[:, :rank] * values[:rank]) @ right[:rank]


@pytest.mark.parametrize("cells", [spectral.DENSE_CELLS, 1], ids=["exact", "lanczos"])
def test_it_is_the_svd_of_the_imputed_matrix(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectral, "DENSE_CELLS", cells)
    observations = small()
    completed = COMPLETIONS["svd"](rank=3).fit(observations, seed=0)
    users, items = np.divmod(np.arange(12 * 9), 9)
    np.testing.assert_allclose(completed.predict(users, items), by_hand(observations, 3).ravel(), atol=1e-9)


def test_singular_values_are_reported_in_order() -> None:
    values = COMPLETIONS["svd"](rank=4).fit(small(), seed=0).diagnostics["singular_values"]
    assert len(values) == 4
    assert values == sorted(values, reverse=True)
