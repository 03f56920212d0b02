"""Arrays of ratings through a mechanism."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS, BoundedLaplace, Laplace, Raw, ResidualBits, ZhengRandomizedResponse
from dprec.ratings import RatingScale

HALVES = RatingScale.evenly(0.5, 5, 0.5)


def test_what_arrives_has_the_channel_s_mean() -> None:
    """Within six standard errors: a false alarm of 2e-9 for each level."""
    mechanism, count = BoundedLaplace(), 100_000
    channel = mechanism.channel(HALVES, 1.0)
    true = np.repeat(HALVES.values, count).reshape(HALVES.levels, count)
    arrived = mechanism.perturb(true, 1.0, 3, scale=HALVES)
    assert arrived.shape == true.shape
    errors = arrived.mean(axis=1) - HALVES.values - channel.bias()
    assert np.all(np.abs(errors) <= 6 * np.sqrt(channel.variance() / count))


def test_the_same_generator_gives_the_same_noise() -> None:
    ratings = np.full(50, 3.0)
    first, again, other = (Laplace().perturb(ratings, 1.0, seed).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert Laplace().perturb(ratings, 1.0, np.random.default_rng(1)).tolist() == first
    assert Laplace().perturb(ratings, 1.0).tolist() != Laplace().perturb(ratings, 1.0).tolist()


def test_what_is_not_rated_is_hidden_only_by_mechanisms_that_hide_it() -> None:
    ratings = np.full((2, 500), np.nan)
    assert np.isnan(Laplace().perturb(ratings, 1.0, 1)).all()
    arrived = ZhengRandomizedResponse().perturb(ratings, 1.0, 1)
    assert 0 < np.isnan(arrived).mean() < 1
    assert Raw().perturb([1, math.nan, 5]).tolist()[::2] == [1.0, 5.0]


def test_what_cannot_be_perturbed_is_refused() -> None:
    with pytest.raises(InputError, match=r"ratings: 0\.5; accepted: one of 1, 2, 3, 4, 5, or another scale"):
        Laplace().perturb([1.0, 0.5], 1.0)
    with pytest.raises(InputError, match="perturb: residual-bits, whose reports depend on a user's other"):
        ResidualBits().perturb([1.0], 1.0)


@pytest.mark.parametrize("kind", ["laplace", "bounded-laplace", "none", "fisher-optimal"])
@pytest.mark.parametrize("epsilon", [0, -1, math.nan])
def test_what_is_no_budget_is_refused(kind: str, epsilon: float) -> None:
    with pytest.raises(InputError, match=f"^epsilon: {epsilon:g}; accepted: a number above 0$"):
        MECHANISMS[kind]().channel(HALVES, epsilon)
