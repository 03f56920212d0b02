"""Linkage: against a search by hand, and a bound that randomised response reaches and nothing exceeds."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.arrays import Floats
from dprec.attacks.bounds import FAILURE, Roc, above_by_chance
from dprec.attacks.linkage import Known, Linkage, allowed_to_find
from dprec.attacks.seen import ServerView
from tests.dprec.attacks.games import Played, hidden_rows, seen_by_all
from tests.dprec.attacks.test_seen import ratings


def found_by_the_best(one: Floats, other: Floats, users: int) -> float:
    """Return how likely the report is found that is from ``one``, all others being from ``other``."""
    total = 0.0
    for reports in itertools.product(range(one.size), repeat=users):
        likely = [
            math.prod(one[r] if place == person else other[r] for place, r in enumerate(reports))
            for person in range(users)
        ]
        total += max(likely) / users
    return total


@pytest.mark.parametrize("users", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_bound_is_what_the_worst_mechanism_allows(users: int, epsilon: float, delta: float) -> None:
    lie = (1 - delta) / (1 + math.exp(epsilon))
    one = np.array([delta, 1 - delta - lie, lie, 0.0])
    best = found_by_the_best(one, one[::-1], users)
    assert Roc.allowed(epsilon, delta).found_among(users) == pytest.approx(best)


@settings(max_examples=40, deadline=None)
@given(
    weights=st.lists(st.tuples(st.floats(0.05, 1), st.floats(0.05, 1)), min_size=2, max_size=4),
    users=st.integers(1, 4),
)
def test_no_mechanism_allows_more(weights: list[tuple[float, float]], users: int) -> None:
    one, other = np.array(weights).T
    one, other = one / one.sum(), other / other.sum()
    epsilon = float(np.abs(np.log(one / other)).max())
    assert found_by_the_best(one, other, users) <= Roc.allowed(epsilon).found_among(users) + 1e-12


@pytest.mark.parametrize("users", [300, 5000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_chance_counts_people_beside_whom_nobody_scores_high(users: int, epsilon: float) -> None:
    """Whatever threshold is taken, these are few: so the others pass it often enough, and so does the own."""
    curve = Roc.allowed(epsilon)
    mean, bound = allowed_to_find(curve, users, users)
    others = -math.expm1(math.log(bound * FAILURE / 2) / (users - 1))
    least = above_by_chance(float(curve.at(others)), users, FAILURE / 2)
    assert mean < least <= bound < 1.2 * least


def test_hidden_sets_are_found_as_by_a_search() -> None:
    truth = ratings(30, 40)
    seen = hidden_rows(truth, 2.0, seed=1)[0]
    attack = Linkage(known=(8,), unique=(3,))
    figures = attack.perform(Played(truth, seen_by_all(truth, seen), epsilon=2.0)).figures
    reading = ServerView.of(seen_by_all(truth, seen), truth)
    assert reading is not None
    logs = np.concatenate([block.log_likelihoods for block in reading.weighed()], axis=1)
    known, hits = Known.drawn(truth, 8, 1000, seed=1), 0.0
    for person, items, levels in zip(known.people, known.items, known.levels, strict=True):
        scores = [
            sum(logs[level, user, item] for item, level in zip(items, levels, strict=True))
            for user in range(30)
        ]
        best = np.flatnonzero(np.isclose(scores, max(scores), rtol=0, atol=1e-9))
        hits += (person in best) / best.size
    assert figures["linkage_top1"].value == pytest.approx(hits / known.people.size)
    assert figures["linkage_top1"].value > 0.3
    assert figures["linkage_top1"].baseline == pytest.approx(1 / 30)
    assert figures["linkage_top1"].bound is None
    assert "unique_at_3" not in figures


def test_the_loss_of_a_user_bounds_what_is_found_and_that_of_cells_nothing() -> None:
    truth = ratings(30, 40)
    seen = seen_by_all(truth, hidden_rows(truth, 0.02, seed=1)[0])
    played = Played(truth, seen, epsilon=0.5, epsilon_per_user=0.8)
    figure = Linkage(known=(1, 8), unique=(3,)).perform(played).figures
    for number in (1, 8):
        mean, bound = allowed_to_find(Roc.allowed(0.8), 30, np.count_nonzero(truth.counts >= number))
        assert figure[f"linkage_top1_at_{number}"].bound == pytest.approx(bound)
        assert mean == pytest.approx(Roc.allowed(0.8).found_among(30))
    shown = Linkage(known=(1,), unique=(3,)).perform(replace(played, hides_item_sets=False)).figures
    assert shown["linkage_top1"].bound is None


def test_users_who_are_alike_share_a_hit() -> None:
    truth = ratings(1, 30)
    twins = truth.of_users(np.zeros(4, dtype=np.int64), np.arange(4))
    figures = (
        Linkage(known=(5,), unique=(2,)).perform(Played(twins, seen_by_all(twins, trusted=True))).figures
    )
    assert figures["linkage_top1"].value == pytest.approx(1 / 4)
    assert figures["unique_at_2"].value == 0.0
