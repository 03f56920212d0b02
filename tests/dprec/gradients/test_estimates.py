"""What the estimates of the kinds of gradient report are, beyond their contract."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.completion import Profiles, solve_user_factors
from dprec.errors import InputError
from dprec.gradients import FullGradient, OneBitGradient, ReducedOneBitGradient
from dprec.gradients.one_bit import projection
from dprec.testing import GradientContract

PARTITIONS = GradientContract()
ITEMS, RANK, USERS, SHAPE = PARTITIONS.items, PARTITIONS.rank, PARTITIONS.users, PARTITIONS.shape
profiles_of, item_factors, encoded = PARTITIONS.profiles, PARTITIONS.item_factors, PARTITIONS.encoded


def true_mean(profiles: Profiles) -> NDArray[np.float64]:
    """Return the mean gradient per user, one cell after the other."""
    factors = item_factors()
    own = solve_user_factors(profiles, factors, 1.0)
    total = np.zeros(SHAPE)
    for user, item, rating in zip(profiles.users, profiles.items, profiles.values, strict=True):
        total[item] += -2.0 * own[user] * (rating - own[user] @ factors[item])
    return total / profiles.n_users


def test_the_full_gradient_is_the_mean_over_all_who_answered() -> None:
    profiles = profiles_of(USERS)
    _, aggregate = FullGradient().decode(encoded(FullGradient(), profiles), SHAPE)
    mean = FullGradient().gradient(aggregate, SHAPE, math.inf, 9)
    np.testing.assert_allclose(mean, true_mean(profiles), atol=1e-6)
    assert aggregate.raters is not None
    assert aggregate.raters.tolist() == np.bincount(profiles.items, minlength=ITEMS).tolist()


def clipped_mean(profiles: Profiles) -> NDArray[np.float64]:
    """Return the mean over users of their gradients, every coordinate clipped to [-1, 1]."""
    factors = item_factors()
    own = solve_user_factors(profiles, factors, 1.0)
    errors = profiles.residuals(own, factors)
    cells = np.clip(-2.0 * own[profiles.users] * errors[:, None], -1.0, 1.0)
    total = np.zeros(SHAPE)
    np.add.at(total, profiles.items, cells)
    return total / profiles.n_users


def error_of(users: int, epsilon: float) -> float:
    """Return the root of the mean squared error of the estimated gradient."""
    profiles = profiles_of(users)
    gradient = OneBitGradient()
    _, aggregate = gradient.decode(encoded(gradient, profiles, epsilon=epsilon), SHAPE)
    estimate = gradient.gradient(aggregate, SHAPE, epsilon, 9)
    return float(np.sqrt(np.mean((estimate - clipped_mean(profiles)) ** 2)))


def test_the_error_falls_with_the_root_of_the_users() -> None:
    """48 coordinates: the error is within 45 % of its deviation but for 1e-6 of the seeds; one is fixed."""
    epsilon = 0.5
    deviation = OneBitGradient().noise_deviation(SHAPE, epsilon)
    errors = {users: error_of(users, epsilon) for users in (1_000, 16_000, 256_000)}
    for users, error in errors.items():
        assert error * math.sqrt(users) == pytest.approx(deviation, rel=0.45)
    slope = math.log(errors[256_000] / errors[1_000]) / math.log(256)
    assert slope == pytest.approx(-0.5, abs=0.12)


def test_the_reduced_gradient_estimates_the_projected_one() -> None:
    """Every one of 16 coordinates within 5.5 deviations: false alarm 16 x 4e-8; the seed is fixed."""
    users, epsilon, gradient = 40_000, 3.0, ReducedOneBitGradient(dimensions=8)
    profiles, factors = profiles_of(users), item_factors()
    own = solve_user_factors(profiles, factors, 1.0)
    cells = -2.0 * own[profiles.users] * profiles.residuals(own, factors)[:, None]
    shared = projection(9, 8, ITEMS)
    projected = np.zeros((users, 8, RANK))
    np.add.at(projected, profiles.users, shared.T[profiles.items][:, :, None] * cells[:, None, :])
    expected = np.clip(projected, -1.0, 1.0).mean(axis=0)
    _, aggregate = gradient.decode(encoded(gradient, profiles, epsilon=epsilon), SHAPE)
    estimate = gradient.gradient(aggregate, SHAPE, epsilon, 9)
    limit = 5.5 * gradient.noise_deviation(SHAPE, epsilon) / math.sqrt(users)
    np.testing.assert_allclose(shared @ estimate, expected, atol=limit)


def test_a_projection_to_more_dimensions_than_items_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        ReducedOneBitGradient(dimensions=ITEMS + 1).check(SHAPE)
    assert caught.value.where == "dimensions"
    ReducedOneBitGradient(dimensions=ITEMS).check(SHAPE)
