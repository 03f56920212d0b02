"""Steps of the item factors."""

from typing import Literal

import numpy as np
import pytest

from dprec.completion import StepOptions, initial_item_factors, step_item_factors
from dprec.errors import InputError
from dprec.randomness import generator

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
