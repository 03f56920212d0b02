"""Reports that repeat: channels, and what reports lose together, by enumerating all that can be sent."""

import math
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.arrays import Floats, Ints
from dprec.reports.layers import Layers, instantaneous_epsilon, response

EPSILONS = st.floats(0.05, 5.0)
SHARES = st.floats(0.1, 0.9)
"""Of the budget, in the first report."""

LEVELS = 5
BIT = np.array([0, 0, 0, 1, 1])


@st.composite
def layers(draw: st.DrawFn) -> tuple[Layers, float, float]:
    """Draw a threshold, a response about all levels, or hashed levels; return it with both budgets."""
    epsilon, answers = draw(EPSILONS), draw(st.integers(2, LEVELS))
    first = draw(SHARES) * epsilon
    kinds = [BIT % answers, np.arange(LEVELS) % answers]
    kinds.append(np.array(draw(st.lists(st.integers(0, answers - 1), min_size=LEVELS, max_size=LEVELS))))
    return Layers.of_classes(draw(st.sampled_from(kinds)), answers, epsilon, first), epsilon, first


def loss(rows: Floats) -> float:
    """Return the largest log ratio of two rows."""
    return float(np.log(rows.max(axis=0) / rows.min(axis=0)).max())


def sequences(made: Layers, levels: Ints) -> Floats:
    """Return Pr(symbols | levels) of a device that holds one level after the other, by its definition.

    It answers once about every level that it has held: shape (symbols ** len(levels),).
    """
    answers, symbols = made.instantaneous.shape
    held = np.unique(levels).tolist()
    total = np.zeros(symbols ** len(levels))
    for given_answers in product(range(answers), repeat=len(held)):
        answer_of = dict(zip(held, given_answers, strict=True))
        chance = math.prod(made.permanent[level, answer] for level, answer in answer_of.items())
        sent = np.ones(1)
        for level in levels.tolist():
            sent = np.multiply.outer(sent, made.instantaneous[answer_of[level]]).ravel()
        total += chance * sent
    return total


@settings(deadline=None)
@given(layers(), st.integers(1, 6))
def test_rows_are_distributions_and_reports_lose_no_more_than_the_answer(
    drawn: tuple[Layers, float, float], reports: int
) -> None:
    made, epsilon, first = drawn
    for rows in (made.permanent, made.instantaneous, made.first, made.repeated(reports)):
        assert rows.min() >= 0
        np.testing.assert_allclose(rows.sum(axis=1), 1)
    assert loss(made.permanent) <= epsilon + 1e-9
    assert loss(made.first) <= first + 1e-9
    assert loss(made.first) <= loss(made.repeated(reports)) + 1e-9
    assert loss(made.repeated(reports)) <= epsilon + 1e-9


@settings(deadline=None)
@given(EPSILONS, SHARES)
def test_a_first_report_of_two_answers_loses_exactly_what_is_claimed_and_of_more_less(
    epsilon: float, share: float
) -> None:
    first = share * epsilon
    made = Layers.of_classes(BIT, 2, epsilon, first)
    assert loss(made.first) == pytest.approx(first)
    assert loss(Layers.of_classes(np.arange(5), 5, epsilon, first).first) < first


@settings(deadline=None, max_examples=25)
@given(layers(), st.integers(1, 4))
def test_counts_are_all_that_reports_say(drawn: tuple[Layers, float, float], reports: int) -> None:
    made, _, _ = drawn
    said, repeated = made.said(reports), made.repeated(reports)
    assert (said.sum(axis=1) == reports).all()
    place = {tuple(each): number for number, each in enumerate(said.tolist())}
    symbols = made.instantaneous.shape[1]
    counted = np.zeros_like(repeated)
    for level in range(LEVELS):
        one = sequences(made, np.full(reports, level))
        for sent, chance in zip(product(range(symbols), repeat=reports), one, strict=True):
            counted[level, place[tuple(np.bincount(sent, minlength=symbols).tolist())]] += chance
    np.testing.assert_allclose(counted, repeated, atol=1e-12)


def by_change_times(levels: int, reports: int) -> dict[tuple[int, ...], list[Ints]]:
    """Return all sequences of levels, by when they change and to which earlier level they return."""
    found = defaultdict(list)
    for held in product(range(levels), repeat=reports):
        found[tuple(held.index(level) for level in held)].append(np.array(held))
    return found


@settings(deadline=None, max_examples=20)
@given(EPSILONS, SHARES, st.integers(2, 3), st.integers(1, 4))
def test_what_ratings_were_costs_epsilon_for_each_answer(
    epsilon: float, share: float, answers: int, reports: int
) -> None:
    """Of ratings that change at the same times: as many times epsilon as there were values."""
    made = Layers.of_classes(np.arange(answers), answers, epsilon, share * epsilon)
    for times, held in by_change_times(answers, reports).items():
        rows = np.array([sequences(made, levels) for levels in held])
        assert loss(rows) <= len(set(times)) * epsilon + 1e-9


def test_that_a_rating_changed_costs_more_the_more_reports_there_are() -> None:
    """One change halfway, beside none: the doubled epsilon, or g-fold, does not bound it."""
    made = Layers.of_classes(np.arange(2), 2, 1.0, 0.5)
    for reports, expected in ((2, 0.768), (4, 1.802), (8, 4.101)):
        held = np.arange(reports) * 2 // reports
        found = loss(np.array([sequences(made, held), sequences(made, 0 * held)]))
        assert found == pytest.approx(expected, abs=5e-4)


@settings(deadline=None, max_examples=50)
@given(EPSILONS, st.integers(2, 5), st.data())
def test_bits_about_buckets_lose_half_of_what_is_claimed_if_one_is_asked_about(
    epsilon: float, buckets: int, data: st.DataObject
) -> None:
    asked = np.array(sorted(data.draw(st.sets(st.integers(0, buckets - 1), min_size=1))))
    made = Layers.of_buckets(np.arange(buckets), asked, epsilon)
    np.testing.assert_allclose(made.permanent.sum(axis=1), 1)
    assert loss(made.permanent) == pytest.approx(epsilon if asked.size > 1 else epsilon / 2)
    np.testing.assert_allclose(made.repeated(1), made.permanent)


def test_the_budget_of_a_report_is_that_of_the_papers() -> None:
    """The second probability of L-GRR, by its own formula."""
    for epsilon, first in ((1.0, 0.5), (4.0, 3.2), (20.0, 1.0)):
        p1 = math.exp(epsilon) / (math.exp(epsilon) + 1)
        q1 = 1 - p1
        p2 = (math.exp(first) * p1 - q1) / ((math.exp(first) + 1) * (p1 - q1))
        inner = instantaneous_epsilon(epsilon, first)
        assert response(inner, 2)[0, 0] == pytest.approx(p2)
    for wrong in ((1.0, 1.0), (1.0, 2.0), (1.0, 0.0)):
        with pytest.raises(ValueError, match="a first report at"):
            instantaneous_epsilon(*wrong)
