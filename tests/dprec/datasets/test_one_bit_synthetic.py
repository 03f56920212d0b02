from __future__ import annotations

import math

import numpy as np
import pytest

from dprec.completion import link_of
from dprec.datasets import OneBitSynthetic
from dprec.errors import InputError


@pytest.mark.parametrize("rank", [1, 3])
def test_the_hidden_matrix_is_the_papers(rank: int) -> None:
    matrix = OneBitSynthetic(users=50, items=40, rank=rank, alpha=2.5).hidden()
    assert matrix.shape == (50, 40)
    assert np.linalg.matrix_rank(matrix) == rank
    assert np.abs(matrix).max() == pytest.approx(2.5)


@pytest.mark.parametrize("link", ["logistic", "gaussian"])
def test_signs_follow_the_link(link: str) -> None:
    # The sum of n signs is off its mean by more than t with probability below 2 e^(-t^2 / (2 n)).
    dataset = OneBitSynthetic(users=300, items=300, alpha=3, link=link)  # type: ignore[arg-type]
    ratings, matrix = dataset.load(), dataset.hidden()
    signs = ratings.to_sparse().toarray()
    assert ratings.count == 90_000
    assert set(ratings.values.tolist()) == {-1.0, 1.0}
    expected = link_of(link, 1.0).expected_sign(matrix)  # type: ignore[arg-type]
    for low, high in ((-3, -1), (-1, -0.1), (-0.1, 0.1), (0.1, 1), (1, 3)):
        cells = (matrix >= low) & (matrix <= high)
        miss = math.sqrt(2 * cells.sum() * math.log(2 * 10 / 1e-6))
        assert abs((signs - expected)[cells].sum()) < miss


def test_the_seed_decides_both() -> None:
    one, same, other = (OneBitSynthetic(seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.load().levels, same.load().levels)
    np.testing.assert_array_equal(one.hidden(), same.hidden())
    assert not np.array_equal(one.load().levels, other.load().levels)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="users: 100000 x 100000 items"):
        OneBitSynthetic(users=100_000, items=100_000).load()
    with pytest.raises(InputError, match="alpha: 0"):
        OneBitSynthetic(alpha=0.0)
