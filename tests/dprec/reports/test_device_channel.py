"""What is kept of the channel that devices used."""

from __future__ import annotations

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.mechanisms import MECHANISMS
from dprec.ratings import RatingScale
from dprec.reports import DeviceChannel

STARS = RatingScale.evenly(1.0, 5.0, 1.0)


def channel_of(kind: str, budget: PrivacyBudget | None, counts: list[int]) -> DeviceChannel | None:
    calibrated = MECHANISMS[kind](kind=kind).family(budget, STARS, 200)
    return calibrated.device_channel(np.array(counts))


def test_the_slope_is_that_of_the_mechanism() -> None:
    device = channel_of("bounded-laplace", PrivacyBudget(epsilon=1.0), [30])
    assert device is not None
    # Bounded Laplace at epsilon 1 on 1..5 pulls ratings to the middle: a slope of 0.18.
    assert device.slope == pytest.approx(0.18, abs=0.01)
    assert device.expected[2] == pytest.approx(3.0)
    assert device.ratings.tolist() == [1, 2, 3, 4, 5]


def test_a_budget_per_user_is_that_of_the_median_user() -> None:
    device = channel_of("bounded-laplace", PrivacyBudget(epsilon=20.0, per="user"), [2, 20, 150])
    assert device is not None
    assert (device.cells, device.per_user) == (20, True)
    assert device.channel.epsilon == pytest.approx(1.0)


def test_whoever_hides_the_rated_items_reports_them_all() -> None:
    device = channel_of("zheng-randomized-response", PrivacyBudget(epsilon=1.0, per="cell"), [2, 20])
    assert device is not None
    assert (device.cells, device.per_user) == (200, False)
    assert np.isnan(device.channel.inputs[0])
    assert device.ratings.tolist() == [1, 2, 3, 4, 5]


def test_users_without_ratings_do_not_divide_by_nothing() -> None:
    device = channel_of("bounded-laplace", PrivacyBudget(epsilon=2.0, per="user"), [0, 0, 0])
    assert device is not None
    assert device.cells == 1


def test_no_channel_without_a_budget() -> None:
    assert channel_of("none", None, [20]) is None
