"""Figures with chance in them: intervals, and what is above a bound."""

import pytest

from dprec.attacks.estimates import Estimate


def test_an_interval_of_a_share() -> None:
    estimate = Estimate.of_share(0.25, 400)
    assert (estimate.low, estimate.high) == pytest.approx((0.208, 0.295), abs=0.001)
    assert Estimate.of_share(0.0, 400).low == 0
    assert estimate.in_words("tpr") == "tpr was measured as 0.2500 (0.2083 to 0.2954)"


def test_an_interval_of_an_area() -> None:
    estimate = Estimate.of_area(0.5, 3000, 3000)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * 0.00745, rel=0.01)
    assert Estimate.of_area(1.0, 10, 10).high == 1


def test_what_is_above_its_bound_by_chance_is_the_bound_and_a_leak_is_not() -> None:
    estimate = Estimate.of_share(0.25, 400)
    assert estimate.figure(0.1, 0.24).value == 0.24
    assert estimate.figure(0.1, 0.3).value == 0.25
    assert estimate.figure(0.1, 0.2).value == 0.25
    assert estimate.figure(0.1, None).value == 0.25
