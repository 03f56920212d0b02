"""Hiding among clones: published figures, every outcome of few users, and the order of the bounds."""

import math
from collections.abc import Callable

import pytest

from dprec.accounting import (
    PrivacyBlanket,
    clones_delta,
    closed_form_epsilon,
    least_epsilon,
    two_answers_delta,
)
from tests.dprec.privacy.shuffling.exact_shuffling import exact_delta, k_ary_response


def epsilon_of(delta_at: Callable[[float], float], local: float) -> float:
    """Return the least epsilon at delta = 1e-6."""
    return least_epsilon(delta_at, local, 1e-6)


@pytest.mark.parametrize(
    ("local", "reports", "published"), [(1, 100, 0.71), (1, 500, 0.29), (1, 6040, 0.075), (2, 100, 1.99)]
)
def test_five_answers_among_reports_on_the_same_item(local: float, reports: int, published: float) -> None:
    found = epsilon_of(lambda epsilon: two_answers_delta(epsilon, reports, local, 5), local)
    assert found == pytest.approx(published, rel=0.015)


@pytest.mark.parametrize("reports", [1, 3, 6])
@pytest.mark.parametrize(("symbols", "local"), [(2, 1.0), (3, 1.0), (3, 2.0)])
def test_no_profile_of_few_users_tells_more(symbols: int, local: float, reports: int) -> None:
    channel = k_ary_response(symbols, local)
    for epsilon in (0.0, 0.3 * local, 0.6 * local):
        exact = exact_delta(channel, epsilon, reports)
        assert clones_delta(epsilon, reports, local) >= exact * (1 - 1e-9)
        assert two_answers_delta(epsilon, reports, local, symbols) >= exact * (1 - 1e-9)


@pytest.mark.parametrize(("symbols", "local", "reports"), [(5, 1.0, 2000), (2, 0.5, 1000), (5, 3.0, 5000)])
def test_the_less_a_bound_knows_the_larger_it_is(symbols: int, local: float, reports: int) -> None:
    blanket = PrivacyBlanket(k_ary_response(symbols, local))
    known = epsilon_of(lambda epsilon: blanket.delta(epsilon, reports), local)
    answers = epsilon_of(lambda epsilon: two_answers_delta(epsilon, reports, local, symbols), local)
    clones = epsilon_of(lambda epsilon: clones_delta(epsilon, reports, local), local)
    closed = closed_form_epsilon(reports, local, 1e-6)
    # With two symbols, all reports are clones or blanket: the bounds are the same but for the grid.
    assert known < min(answers, clones) * (1.001 if symbols == 2 else 0.9)
    assert max(known, clones) < closed < local


def test_a_closed_form_needs_many_reports_and_a_report_alone_hides_in_none() -> None:
    assert closed_form_epsilon(600, 1.0, 1e-6) == 1.0
    assert closed_form_epsilon(700, 1.0, 1e-6) < 1.0
    assert clones_delta(0.4, 1, 1.0) == pytest.approx((math.exp(1) - math.exp(0.4)) / (1 + math.exp(1)))
    assert clones_delta(1.0, 1, 1.0) == 0
