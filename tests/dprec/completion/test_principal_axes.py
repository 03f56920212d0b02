from __future__ import annotations

import numpy as np
import pytest

from dprec.completion.matrix_factorization import PrincipalAxes
from dprec.completion.variational import Side
from tests.dprec.completion.test_variational import random_side


@pytest.fixture
def sides() -> tuple[Side, Side]:
    return random_side(9, 3, "users"), random_side(7, 3, "items")


def test_along_the_axes_both_priors_are_diagonal_and_equal(sides: tuple[Side, Side]) -> None:
    axes = PrincipalAxes.between(*sides)
    users, items = axes.kept(np.ones(3, dtype=np.bool_), *sides)
    for side in (users, items):
        np.testing.assert_allclose(side.prior[1:, 1:], np.diag(np.sqrt(axes.variances)), atol=1e-12)
    assert list(axes.variances) == sorted(axes.variances, reverse=True)
    # What the model predicts is the same.
    before, after = (left.means[:, 1:] @ right.means[:, 1:].T for left, right in (sides, (users, items)))
    np.testing.assert_allclose(after, before)
    np.testing.assert_array_equal(users.means[:, 0], sides[0].means[:, 0])


def test_what_the_axes_explain_is_what_they_add_to_the_predictions(sides: tuple[Side, Side]) -> None:
    axes = PrincipalAxes.between(*sides)
    explained = axes.explained_variances(*sides)
    for axis in range(3):
        users, items = axes.kept(np.arange(3) == axis, *sides)
        added = np.outer(users.means[:, 1], items.means[:, 1])
        assert explained[axis] == pytest.approx(np.mean(added**2))
