"""Answers about whole profiles at a budget per user: how many, how long, and what they cost."""

import math
from typing import Literal

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.errors import InputError
from dprec.mechanisms.whole_profiles import UserLevelBit
from dprec.ratings import RatingScale
from dprec.reports import ProfileFamily

STARS = RatingScale.evenly(1, 5, 1)


def calibrated(epsilon: float, composition: Literal["sum", "pld"] = "sum", **options: int) -> ProfileFamily:
    budget = PrivacyBudget(epsilon=epsilon, per="user", composition=composition)
    own = UserLevelBit(**options).family(budget, STARS, 60)
    assert isinstance(own, ProfileFamily)
    return own


def test_everybody_loses_the_budget_whatever_is_rated() -> None:
    own, counts = calibrated(6.0), np.array([0, 1, 50])
    assert own.cells(counts).tolist() == [2, 2, 2]
    for losses in own.losses(counts):
        np.testing.assert_allclose(losses, 6.0, rtol=1e-6)
        assert (losses <= 6.0).all()


def test_no_profile_marks_more_blocks_than_the_loss_allows() -> None:
    own, items = calibrated(1.0, profile=200), np.arange(60)
    kept, elements = own.elements(np.array([60]), items, np.resize(np.arange(1, 6, dtype=np.uint8), 60))
    assert kept.tolist() == [elements.size] == [own.code.marked]
    assert own.code.marked < 60


def test_composed_answers_get_more_than_an_even_share() -> None:
    own = calibrated(2.0, "pld", answers=20)
    assert own.code.epsilon > 1.1 * 2.0 / 20
    losses = own.accountant(np.array([0, 30]), np.array([True, True])).get_epsilon(1e-6)
    assert losses[0] == losses[1]
    assert 1.99 < losses[0] <= 2.0


def test_two_answers_share_a_budget() -> None:
    own = calibrated(6.0)
    assert own.code.epsilon == pytest.approx(3.0)
    assert own.channel(17) is own.channel(1)
    assert math.log(own.code.draws / own.code.fewest_draws) == pytest.approx(3.0)


def test_a_promise_per_rating_is_refused() -> None:
    with pytest.raises(InputError, match=r"privacy\.per: 'rating', with mechanism user-level-bit; .*'user'"):
        UserLevelBit().family(PrivacyBudget(epsilon=1.0), STARS, 60)
