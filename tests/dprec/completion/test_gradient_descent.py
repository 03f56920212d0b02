"""Stochastic gradient descent, against descent that takes one rating at a time.

Steps of the item factors.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from dprec.completion import (
    COMPLETIONS,
    Observations,
    SgdMatrixFactorization,
    StepOptions,
    initial_item_factors,
    step_item_factors,
)
from dprec.completion.gradient_descent import PlainFactors, initial_factors, visits
from dprec.errors import InputError, RunError
from dprec.randomness import generator
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


def ratings(users: int = 40, items: int = 30) -> Observations:
    random = generator(1, "descent")
    truth = 3 + random.normal(size=(users, 2)) @ random.normal(size=(items, 2)).T / 2
    rows, columns = np.nonzero(random.random(truth.shape) < 0.5)
    values = truth[rows, columns] + 0.3 * random.normal(size=rows.size)
    return Observations(rows.astype(np.int32), columns.astype(np.int32), values, truth.shape, STARS)


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


@pytest.mark.parametrize("shape", [(40, 30), (30, 40)])
def test_every_epoch_visits_each_rating_once_in_groups_that_share_nothing(shape: tuple[int, int]) -> None:
    observations, random = ratings(*shape), generator(0, "order")
    groups, again = list(visits(observations, random)), list(visits(observations, random))
    for group in groups:
        for side in (observations.users[group], observations.items[group]):
            assert np.unique(side).size == side.size
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(observations.values.size))
    assert not np.array_equal(np.concatenate(groups), np.concatenate(again))
    assert len(groups) <= max(shape)


def test_it_is_sequential_descent_in_the_order_of_the_visits() -> None:
    observations = ratings()
    options = SgdMatrixFactorization(rank=2, step=0.02, regularization=0.05, epochs=3)
    completed = options.fit(observations, seed=0)
    random = generator(0, "visits")
    orders = [cell for _ in range(3) for cell in visits(observations, random)]
    users, items, loss = sequential(observations, options, orders)
    np.testing.assert_allclose(completed.user_factors, users, atol=1e-12)
    np.testing.assert_allclose(completed.item_factors, items, atol=1e-12)
    assert completed.diagnostics["loss"][-1] == pytest.approx(loss)


def test_it_reaches_the_loss_of_sequential_descent_in_uniformly_random_order() -> None:
    observations = ratings()
    options = SgdMatrixFactorization(rank=2, step=0.02, regularization=0.05, epochs=60)
    random = generator(5, "uniform order")
    orders = [random.permutation(observations.values.size) for _ in range(options.epochs)]
    loss = sequential(observations, options, orders)[2]
    diagnostics = options.fit(observations, seed=0).diagnostics
    assert diagnostics["epochs"] == 60
    assert diagnostics["loss"][-1] == pytest.approx(loss, rel=0.02)
    assert loss < 0.5 * diagnostics["loss"][0]


def test_the_penalty_holds_the_factors_back() -> None:
    observations = ratings()
    loose, tight = (fit(observations, rank=2, regularization=penalty) for penalty in (0.0, 2.0))
    assert np.abs(tight.user_factors).mean() < 0.8 * np.abs(loose.user_factors).mean()


def test_a_step_that_is_too_long_ends_in_an_error_that_names_the_iteration() -> None:
    with pytest.raises(RunError, match="gradient descent diverged in iteration"):
        fit(ratings(), rank=2, step=50.0)


@pytest.mark.parametrize("options", [{"rank": 0}, {"step": 0.0}, {"regularization": -0.1}, {"epochs": 0}])
def test_settings_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        COMPLETIONS["sgd-mf"](**options)


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


def test_factors_rest_at_zero_or_at_the_mean_of_their_start() -> None:
    assert StepOptions().resting_point(*SHAPE).tolist() == [[1.0, 0.0]] * 6
    assert StepOptions(start="random").resting_point(*SHAPE).tolist() == [[0.0, 0.0]] * 6
    assert StepOptions(pull="zero").resting_point(*SHAPE).tolist() == [[0.0, 0.0]] * 6


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
    ("name", "value"),
    [("size", 0.0), ("decay", -1.0), ("momentum", 1.0), ("regularization", -0.1), ("size", float("nan"))],
)
def test_steps_that_go_nowhere_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError) as caught:
        StepOptions(**{name: value})
    assert caught.value.where == name
