"""The rank is an upper bound: factors that the data do not support vanish and are dropped."""

from __future__ import annotations

import numpy as np
import pytest

import dprec.completion.matrix_factorization as module
from dprec.completion import MatrixFactorization, Observations
from dprec.completion.matrix_factorization import PrincipalAxes
from dprec.completion.variational import Side
from dprec.errors import SettingError
from dprec.randomness import generator
from tests.dprec.completion.planted import planted
from tests.dprec.completion.test_variational import random_side


def fitted(rank: int) -> tuple[float, int]:
    """Return the RMSE on every cell of planted ratings of rank 3, and the factors left after 40 sweeps."""
    observed, truth = planted(0, np.ones(1), np.array([0.5]))
    model = MatrixFactorization(rank=rank, iterations=40, tolerance=0.0).fit(observed, 0)
    users, items = np.indices(truth.shape).reshape(2, -1)
    errors = model.predict(users, items) - truth.ravel()
    return float(np.sqrt(np.mean(errors**2))), model.user_factors.shape[1]


def test_dropping_what_has_vanished_changes_no_prediction_that_matters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped, left = fitted(8)
    monkeypatch.setattr(module, "_NEGLIGIBLE", 0.0)
    kept, all_of_them = fitted(8)
    assert 3 <= left < 6
    assert all_of_them == 8
    assert dropped == pytest.approx(kept, abs=1e-3)


def test_ratings_that_are_noise_leave_no_factor() -> None:
    observed, _ = planted(0)
    noise = generator(1, "noise").normal(size=observed.values.size)
    cells = observed.users, observed.items, noise
    model = MatrixFactorization(rank=4).fit(Observations(*cells, observed.shape, observed.scale), 0)
    assert model.diagnostics["ridge_factors"] == []
    assert np.abs(model.predict(observed.users, observed.items)).max() < 0.5


def test_by_default_the_data_choose_among_as_many_factors_as_there_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_DEFAULT_RANK", 6)
    observed, _ = planted(0, np.ones(1), np.array([0.5]))
    chosen, stated = (MatrixFactorization(rank=rank).fit(observed, 0) for rank in (None, 6))
    np.testing.assert_array_equal(chosen.user_factors, stated.user_factors)
    monkeypatch.undo()
    few = observed.items < 4
    small = Observations(
        observed.users[few], observed.items[few], observed.values[few], (400, 4), observed.scale
    )
    MatrixFactorization().check(small.shape)
    assert MatrixFactorization(iterations=1).fit(small, 0).item_factors.shape == (4, 3)
    with pytest.raises(SettingError, match="rank: 4; accepted: less than 4"):
        MatrixFactorization(rank=4).check(small.shape)


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
