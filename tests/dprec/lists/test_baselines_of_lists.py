"""Popularity, EASE and iALS, against their definitions."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from dprec.lists.ease import PopularWeights, co_occurrences, ease, ridge_of, scores
from dprec.lists.ials import ImplicitOptions, first_factors, fold_in, ials
from dprec.progress import silent
from dprec.protocols.references import EaseProtocol

RANDOM = np.random.default_rng(5)
ials_options = partial(ImplicitOptions, unobserved=0.3, ridge=0.02)
SETS = sp.csr_array((RANDOM.random((40, 12)) < RANDOM.random(12) * 0.6).astype(np.float64))


@pytest.mark.parametrize("rows", [5, 12, 512])
def test_ease_solves_its_least_squares_without_a_diagonal(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec.lists.ease._ROWS_AT_ONCE", rows)
    monkeypatch.setattr("dprec.lists.ease._CELLS_AT_ONCE", 12 * rows)
    x, ridge = SETS.toarray(), 3.0
    weights = ease(co_occurrences(SETS), ridge)
    assert np.all(np.diag(weights) == 0)
    for item in range(12):
        others = np.arange(12) != item
        own = x[:, others]
        solved = np.linalg.solve(own.T @ own + ridge * np.eye(11), own.T @ x[:, item])
        np.testing.assert_allclose(weights[others, item], solved, atol=1e-10)
    np.testing.assert_allclose(scores(SETS, weights), x @ weights)


def test_items_without_weights_stand_below_all_others_by_popularity() -> None:
    found, counts = PopularWeights.of(SETS, 3.0, 7), SETS.sum(axis=0)
    assert counts[found.items].min() >= np.delete(counts, found.items).max()
    among = sp.csr_array(SETS[:, found.items])
    np.testing.assert_array_equal(found.weights, ease(co_occurrences(among), 3.0))
    ranked, others = found.scores(SETS), np.delete(np.arange(12), found.items)
    np.testing.assert_allclose(ranked[:, found.items], among @ found.weights)
    assert (ranked[:, others].max(axis=1) < ranked[:, found.items].min(axis=1)).all()
    np.testing.assert_array_equal(np.argsort(ranked[:, others], axis=1)[0], np.argsort(counts[others]))
    (note,) = EaseProtocol(most_items=7).learn(SETS, 1, silent).notes
    assert f"7 most popular of 12 items, which have {counts[found.items].sum() / SETS.nnz:.1%}" in note
    assert EaseProtocol().learn(SETS, 1, silent).notes == ()
    whole = PopularWeights.of(SETS, 3.0, 12)
    np.testing.assert_allclose(whole.scores(SETS), SETS @ ease(co_occurrences(SETS), 3.0))


def test_settings_follow_from_sizes_of_sets_alone() -> None:
    # Four sets of 2 items, of 8 in all, and one of nobody's.
    sets = sp.csr_array(
        np.vstack([np.eye(4, 8), np.zeros((1, 8))]) + np.eye(5, 8, 4) * (np.arange(5) < 4)[:, None]
    )
    assert ridge_of(sets) == 12
    options = ImplicitOptions.of(sets)
    assert options.unobserved == 2  # of 32 cells: 8 times the weight of 8 pairs
    assert options.ridge == pytest.approx(0.2 / 32 ** (1 / 6))
    given = ImplicitOptions.of(sets, unobserved=0.1, ridge=0.5, rank=3)
    assert given == ImplicitOptions(unobserved=0.1, ridge=0.5, rank=3)
    copies = sp.csr_array(sp.vstack([sets] * 3))
    assert ImplicitOptions.of(copies) == options
    # The ridge of a user and an item like the mean is the same in their product.
    other = ImplicitOptions.of(sets, frequency_scaling=0.0)
    assert other.ridge**2 == pytest.approx(options.ridge**2 * (2 + 2 * 8) * (1 + 2 * 4))


def loss(sets: np.ndarray, users: np.ndarray, items: np.ndarray, options: ImplicitOptions) -> float:
    """Return the loss of Rendle et al., 2022."""
    predicted = users @ items.T
    fit = ((1 - predicted) ** 2 * sets).sum() + options.unobserved * (predicted**2).sum()
    sizes = [
        (sets.sum(axis=axis) + options.unobserved * sets.shape[axis]) ** options.frequency_scaling
        for axis in (1, 0)
    ]
    squares = [(factors**2).sum(axis=1) for factors in (users, items)]
    return float(
        fit + options.ridge * sum(size @ square for size, square in zip(sizes, squares, strict=True))
    )


@pytest.mark.parametrize("scaling", [0.0, 1.0])
def test_every_sweep_of_ials_finds_the_least_loss_given_the_other_side(scaling: float) -> None:
    options = ials_options(rank=3, sweeps=4, ridge=0.2, frequency_scaling=scaling)
    items = ials(SETS, options)
    users, x = fold_in(SETS, items, options), SETS.toarray()
    least = minimize(
        lambda flat: loss(x, flat.reshape(users.shape), items, options), users.ravel(), method="BFGS"
    )
    assert loss(x, users, items, options) <= least.fun + 1e-6
    before = ials(SETS, ials_options(rank=3, sweeps=3, ridge=0.2, frequency_scaling=scaling))
    assert loss(x, users, items, options) <= loss(x, fold_in(SETS, before, options), before, options)


@pytest.mark.parametrize("rank", [3, 8, 18])
def test_steps_of_conjugate_gradients_reach_the_solutions_of_sweeps(rank: int) -> None:
    options = ials_options(rank=rank, sweeps=3, steps=rank)
    with_nobody = sp.csr_array(np.hstack([SETS.toarray(), np.zeros((40, 2))]))
    expected = first_factors(14, options)
    for _ in range(3):
        users = solved_one_by_one(with_nobody, expected, options)
        expected = solved_one_by_one(sp.csr_array(with_nobody.T), users, options)
    items = ials(with_nobody, options)
    np.testing.assert_allclose(items, expected, atol=1e-12)
    assert not items[12:].any()
    far, near = (np.abs(ials(with_nobody, replace(options, steps=n)) - items).max() for n in (1, 2))
    assert 1e-9 < near < far


def test_few_steps_approach_where_sweeps_end() -> None:
    options = ials_options(rank=3, sweeps=300, steps=3, ridge=0.1)
    solved, approached = (ials(SETS, each) for each in (options, replace(options, steps=1)))
    # Turned factors are as good.
    np.testing.assert_allclose(approached @ approached.T, solved @ solved.T, atol=1e-9)


def test_rows_that_hold_nothing_change_no_bit_of_the_others() -> None:
    options, items = ials_options(rank=5), RANDOM.standard_normal((12, 5))
    expected = fold_in(SETS, items, options)
    assert expected.any(axis=1).tolist() == (SETS.sum(axis=1) > 0).tolist()
    apart = sp.csr_array((SETS.data, SETS.indices, np.repeat(SETS.indptr, 2)[:-1]), shape=(80, 12))
    assert fold_in(apart, items, options)[0::2].tobytes() == np.zeros_like(expected).tobytes()
    assert fold_in(apart, items, options, items.T @ items)[1::2].tobytes() == expected.tobytes()
    np.testing.assert_allclose(expected, solved_one_by_one(SETS, items, options), atol=1e-14)


def solved_one_by_one(sets: sp.csr_array, factors: np.ndarray, options: ImplicitOptions) -> np.ndarray:
    solved = []
    for row in sets.toarray() > 0:
        ridge = options.ridge * (row.sum() + options.unobserved * len(factors)) ** options.frequency_scaling
        system = factors[row].T @ factors[row] + options.unobserved * factors.T @ factors
        solved.append(np.linalg.solve(system + ridge * np.eye(options.rank), factors[row].sum(axis=0)))
    return np.array(solved)


def test_sweeps_are_those_of_the_package_implicit() -> None:
    package = pytest.importorskip("implicit.cpu.als", reason="the package implicit is not installed")
    confidence, ridge = 6.0, 2.0
    options = ials_options(
        rank=3,
        sweeps=5,
        steps=8,
        unobserved=1 / (confidence - 1),
        ridge=ridge / confidence,
        frequency_scaling=0.0,
    )
    items = ials(SETS, options)
    larger = confidence / (confidence - 1)
    settings = {"regularization": ridge, "alpha": confidence, "iterations": 5, "use_cg": False}
    model = package.AlternatingLeastSquares(3, **settings, dtype=np.float64)
    model.item_factors = first_factors(12, options) * np.sqrt(larger)
    model.fit(sp.csr_matrix(SETS), show_progress=False)
    users = model.recalculate_user(np.arange(40), sp.csr_matrix(SETS))
    theirs = users @ model.item_factors.T
    np.testing.assert_allclose(fold_in(SETS, items, options) @ items.T * larger, theirs, atol=1e-12)


def test_factors_do_not_depend_on_how_users_are_divided() -> None:
    options = ials_options(rank=4)
    items = ials(SETS, options)
    whole = fold_in(SETS, items, options)
    parts = [fold_in(SETS[start : start + 13], items, options) for start in range(0, 40, 13)]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12)
