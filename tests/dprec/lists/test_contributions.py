import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dprec.lists.contributions import (
    DIAGONAL,
    UnitRows,
    gram_contributions,
    popularity_contributions,
    triangle_cells,
    triangle_size,
)

SETS = st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=5)


def sets_of(profiles: list[set[int]], items: int = 7) -> sparse.csr_array:
    table = np.zeros((len(profiles), items))
    for user, profile in enumerate(profiles):
        table[user, sorted(profile)] = 1
    return sparse.csr_array(table)


def norms(rows: UnitRows) -> list[float]:
    users = np.repeat(np.arange(rows.indptr.size - 1), np.diff(rows.indptr))
    squares = np.bincount(users, weights=rows.values**2, minlength=rows.indptr.size - 1)
    return np.sqrt(squares).tolist()


@given(profiles=SETS)
@pytest.mark.parametrize("contributions", [popularity_contributions, gram_contributions])
def test_every_contribution_has_norm_1_and_no_negative_number(contributions, profiles) -> None:
    rows = contributions(sets_of(profiles))
    assert norms(rows) == pytest.approx([float(bool(profile)) for profile in profiles], abs=1e-14)
    assert (rows.values > 0).all()


@given(profiles=SETS)
def test_the_gram_is_the_upper_triangle_of_outer_products(profiles: list[set[int]]) -> None:
    rows = gram_contributions(sets_of(profiles))
    expected = np.zeros((7, 7))
    for profile in profiles:
        own = np.zeros(7)
        own[sorted(profile)] = 1
        outer = np.triu(np.outer(own, own))
        outer[np.diag_indices(7)] *= DIAGONAL
        expected += outer / max(float(np.sqrt((outer**2).sum())), 1e-300)
    np.testing.assert_allclose(rows.total(triangle_size(7)), expected[np.triu_indices(7)], atol=1e-14)
    assert all(
        (np.diff(rows.cells[a:b]) > 0).all() for a, b in zip(rows.indptr, rows.indptr[1:], strict=False)
    )


def test_cells_number_the_triangle_by_rows() -> None:
    first, second = np.triu_indices(5)
    assert triangle_cells(first, second, 5).tolist() == list(range(triangle_size(5)))


def test_popularity_counts_each_set_by_the_root_of_its_size() -> None:
    rows = popularity_contributions(sets_of([{0, 1, 2, 3}, {0}]))
    assert rows.total(7).tolist() == [1.5, 0.5, 0.5, 0.5, 0, 0, 0]
