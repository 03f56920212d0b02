"""The rank is an upper bound: factors that the data do not support vanish and are dropped."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from dprec.completion import (
    Completion,
    ItemAverage,
    MatrixFactorization,
    NuclearNorm,
    Observations,
    OneBit,
    Profiles,
    SgdMatrixFactorization,
    StepOptions,
    initial_item_factors,
    solve_user_factors,
    step_item_factors,
)
from dprec.completion.gradient_descent import PlainFactors, initial_factors, visits
from dprec.completion.matrix_factorization import Side
from dprec.randomness import generator
from tests import make

USERS, ITEMS, RANK = 30, 20, 3


@pytest.fixture(scope="module")
def profiles() -> Profiles:
    return make.profiles(make.synthetic(USERS, ITEMS, 240, without=[4]))


def part(profiles: Profiles, start: int, stop: int) -> Profiles:
    first, last = profiles.indptr[start], profiles.indptr[stop]
    return Profiles(
        profiles.indptr[start : stop + 1] - first,
        profiles.items[first:last],
        profiles.values[first:last],
        ITEMS,
    )


def test_every_user_has_the_ridge_solution(profiles: Profiles) -> None:
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    solved = solve_user_factors(profiles, factors, 0.7)
    for user in range(USERS):
        own = part(profiles, user, user + 1)
        design = np.vstack([factors[own.items], np.sqrt(0.7) * np.eye(RANK)])
        target = np.concatenate([own.values, np.zeros(RANK)])
        expected = np.linalg.lstsq(design, target)[0]
        np.testing.assert_allclose(solved[user], expected, rtol=1e-9, atol=1e-12)
    assert solved[4].tolist() == [0.0] * RANK


def test_items_that_nobody_holds_change_no_bit(profiles: Profiles) -> None:
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    expected = solve_user_factors(profiles, factors, 0.7)
    places = np.sort(np.random.default_rng(2).choice(3000, ITEMS, replace=False)).astype(np.int32)
    among_more = np.full((3000, RANK), np.nan)
    among_more[places] = factors
    spread = replace(profiles, items=places[profiles.items], n_items=3000)
    assert solve_user_factors(spread, among_more, 0.7).tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [1, 7])
def test_a_user_is_solved_alike_in_every_partition(profiles: Profiles, size: int) -> None:
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    together = solve_user_factors(profiles, factors, 0.7)
    alone = [
        solve_user_factors(part(profiles, start, min(start + size, USERS)), factors, 0.7)
        for start in range(0, USERS, size)
    ]
    assert np.concatenate(alone).tolist() == together.tolist()


def test_a_user_is_solved_alike_in_every_block(profiles: Profiles, monkeypatch: pytest.MonkeyPatch) -> None:
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    together = solve_user_factors(profiles, factors, 0.7)
    monkeypatch.setattr("dprec.completion.factors._MATRIX_NUMBERS", 7 * RANK**2)
    assert solve_user_factors(profiles, factors, 0.7).tobytes() == together.tobytes()


def test_a_user_without_a_solution_gets_zeros_and_nobody_else_does(profiles: Profiles) -> None:
    """Two equal factors of 1e30 drown the ridge for those who rated the item, and for them only."""
    factors = generator(1, "items").normal(size=(ITEMS, RANK))
    expected = solve_user_factors(profiles, factors, 0.7)
    item = 3
    factors[item] = 1e30
    raters = set(profiles.users[profiles.items == item].tolist())
    assert 0 < len(raters) < USERS
    solved = solve_user_factors(profiles, factors, 0.7)
    assert np.isfinite(solved).all()
    others = [user for user in range(USERS) if user not in raters]
    assert solved[others].tolist() == expected[others].tolist()
    only = Profiles(np.array([0, 1]), np.array([item], dtype=np.int32), np.array([5.0]), ITEMS)
    assert solve_user_factors(only, factors, 0.7).tolist() == [[0.0] * RANK]


def ratings(users: int = 40, items: int = 30) -> Observations:
    random = generator(1, "descent")
    truth = 3 + random.normal(size=(users, 2)) @ random.normal(size=(items, 2)).T / 2
    rows, columns = np.nonzero(random.random(truth.shape) < 0.5)
    values = truth[rows, columns] + 0.3 * random.normal(size=rows.size)
    return make.observations(rows, columns, values, truth.shape)


def fit(observations: Observations, **options: Any) -> PlainFactors:
    return SgdMatrixFactorization(**options).fit(observations, seed=0)


def sequential(
    observations: Observations, options: SgdMatrixFactorization, orders: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Descend one rating at a time; return the factors and the loss."""
    users, items = initial_factors(observations, options.rank, 0)
    step, penalty = options.step, options.regularization
    for cell in np.concatenate(orders):
        row, column = observations.users[cell], observations.items[cell]
        left, right = users[row].copy(), items[column].copy()
        error = observations.values[cell] - left @ right
        users[row] = left + step * (error * right - penalty * left)
        items[column] = right + step * (error * left - penalty * right)
    left, right = users[observations.users], items[observations.items]
    loss = (observations.values - (left * right).sum(axis=1)) ** 2
    loss += penalty * ((left**2).sum(axis=1) + (right**2).sum(axis=1))
    return users, items, float(loss.mean())


def test_it_is_sequential_descent_in_the_order_of_the_visits() -> None:
    observations = ratings()
    options = SgdMatrixFactorization(rank=2, step=0.02, regularization=0.05, epochs=3)
    completed = options.fit(observations, seed=0)
    random = generator(0, "visits")
    orders = [visits(observations, random) for _ in range(3)]
    users, items, loss = sequential(observations, options, orders)
    np.testing.assert_allclose(completed.user_factors, users, atol=1e-12)
    np.testing.assert_allclose(completed.item_factors, items, atol=1e-12)
    assert completed.diagnostics["loss"][-1] == pytest.approx(loss)


SHAPE = (6, 2)


def gradient() -> np.ndarray:
    return generator(1, "gradient").normal(size=SHAPE)


def test_the_start_fits_a_level_and_follows_from_the_seed() -> None:
    factors = initial_item_factors(*SHAPE, seed=3)
    random = initial_item_factors(*SHAPE, seed=3, start="random")
    assert random[:, 1].tolist() == factors[:, 1].tolist()
    assert (np.abs(random[:, 0] - 1.0) > 1e-3).all()
    assert factors[:, 0].tolist() == [1.0] * 6
    assert (factors[:, 1] != 0).all()
    assert factors.tolist() == initial_item_factors(*SHAPE, seed=3).tolist()
    assert factors.tolist() != initial_item_factors(*SHAPE, seed=4).tolist()


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("pull", "rest"), [("zero", 0.0), ("start", 1.0)])
def test_the_published_step(decay: float, pull: Literal["zero", "start"], rest: float) -> None:
    """V <- V - gamma / t^decay (G + 2 lambda (V - V_0)), worked out by hand."""
    factors = initial_item_factors(*SHAPE, seed=3)
    options = StepOptions(size=0.3, decay=decay, regularization=0.1, pull=pull)
    stepped, velocity = step_item_factors(factors, np.zeros(SHAPE), gradient(), None, 4, options)
    direction = gradient() + 0.2 * (factors - np.array([rest, 0.0]))
    np.testing.assert_allclose(velocity, direction)
    np.testing.assert_allclose(stepped, factors - 0.3 / 4**decay * direction)


def test_momentum_repeats_a_share_of_the_last_step() -> None:
    factors, before = initial_item_factors(*SHAPE, seed=3), np.ones(SHAPE)
    options = StepOptions(size=1.0, decay=0.0, momentum=0.5)
    stepped, velocity = step_item_factors(factors, before, gradient(), None, 1, options)
    np.testing.assert_allclose(velocity, 0.5 + gradient())
    np.testing.assert_allclose(stepped, factors - velocity)


def test_rarely_rated_items_step_as_far_as_the_others_and_unrated_ones_rest() -> None:
    factors = initial_item_factors(*SHAPE, seed=3)
    share = np.array([1.0, 0.5, 0.01, 0.0, 1.0, 1.0])
    options = StepOptions(size=1.0, decay=0.0)
    mean = share[:, None] * np.ones(SHAPE)
    stepped, _ = step_item_factors(factors, np.zeros(SHAPE), mean, share, 1, options)
    moved = factors - stepped
    np.testing.assert_allclose(moved[share > 0], 0.5)
    assert moved[3].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("rank", "users", "taken"), [(5, 3_000, 16 * 100), (20, 3_000, 16 * 100), (5, 600, 300)]
)
def test_the_announced_memory_is_that_of_both_sides_and_of_what_is_taken_from_one_to_the_other(
    rank: int, users: int, taken: int
) -> None:
    items = 100
    sides = [Side.at_zero(entities, rank, 1.0, sharing=1) for entities in (users, items)]
    sizes = sum(side.means.nbytes + side.covariances.nbytes for side in sides)
    moments = sides[1].all_moments(np.float64).nbytes // items
    assert MatrixFactorization(rank=rank).model_bytes(users, items) == sizes + moments * taken


@pytest.mark.parametrize(
    ("completion", "bytes_of_a_cell"),
    [
        (OneBit(bounded=True), 56),
        (OneBit(), 0),
        (NuclearNorm(center="none"), 48),
        (NuclearNorm(), 0),
        (ItemAverage(), 0),
    ],
)
def test_dense_matrices_are_announced_where_there_are_any(
    completion: Completion, bytes_of_a_cell: int
) -> None:
    assert completion.model_bytes(300, 20) == bytes_of_a_cell * 6_000
