"""What is no prediction is refused in one line that names who made it.

Lists of recommended items, against sorting each user's predictions.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec import predictions as recommendation
from dprec.errors import InputError
from dprec.predictions import (
    NO_ITEM,
    Sampled,
    Unrated,
    checked,
    checked_predictions,
    recommended,
    scored_lists,
    words_of_ties,
)
from dprec.ratings import Ratings
from tests import make

USERS, ITEMS = np.array([0, 0, 1]), np.array([2, 3, 4])


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (None, "no predictions"),
        ([1.0, 2.0], "predictions of shape (2,)"),
        (3.0, "predictions of shape ()"),
        ([[1.0], [2.0], [3.0]], "predictions of shape (3, 1)"),
        ([1.0, math.nan, math.inf], "2 of 3 predictions that are NaN or infinite"),
        (["a", "b", "c"], "predictions of type list"),
        ({}, "predictions of type dict"),
    ],
)
def test_what_is_no_prediction_is_refused(made: Any, found: str) -> None:
    with pytest.raises(InputError) as caught:
        checked(lambda users, items: made, "my:Own")(USERS, ITEMS)
    accepted = "one finite number for each cell, shape (3,)"
    assert str(caught.value) == f"my:Own: {found}; accepted: {accepted}"


def test_predictions_pass_as_they_are() -> None:
    made = np.array([1.5, -2.0, 9.0])
    assert checked_predictions(made, (3,), "my:Own") is made
    rows = checked(lambda users, n_items: np.ones((users.size, n_items)), "my:Own")
    assert rows(USERS, 4).shape == (3, 4)
    with pytest.raises(InputError, match=r"^my:Own: predictions of shape \(3, 4\); .*, shape \(3, 5\)$"):
        checked(lambda users, n_items: np.ones((3, 4)), "my:Own")(USERS, 5)


LIST_USERS, LIST_ITEMS = 9, 12
random = np.random.default_rng(3)
# Few different predictions, so that ties are common.
PREDICTED = random.integers(0, 4, (LIST_USERS, LIST_ITEMS)).astype(float)
IS_RATED = random.random((LIST_USERS, LIST_ITEMS)) < np.linspace(0, 1, LIST_USERS)[:, None]
RATED = make.rated(IS_RATED)


def predict(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    assert not IS_RATED[users, items].any()
    return PREDICTED[users, items]


TIES = words_of_ties(PREDICTED.shape[1])


def by_hand(user: int, n: int, allowed: np.ndarray) -> list[int]:
    open_items = [item for item in range(LIST_ITEMS) if allowed[item] and not IS_RATED[user, item]]
    ranked = sorted(open_items, key=lambda item: (-PREDICTED[user, item], TIES[item]))[:n]
    return ranked + [NO_ITEM] * (min(n, LIST_ITEMS) - len(ranked))


@pytest.mark.parametrize("n", [1, 3, LIST_ITEMS, 10**9])
@pytest.mark.parametrize("cells", [1, 30, 1 << 20])
@pytest.mark.parametrize("at_hand", [1, 30])
def test_lists_are_the_best_unrated_items(
    n: int, cells: int, at_hand: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommendation, "_CELLS", cells)
    monkeypatch.setattr(recommendation, "_AT_HAND", at_hand)
    users = np.array([8, 0, 3, 3, 5])
    everything = np.ones(LIST_ITEMS, dtype=np.bool_)
    expected = [by_hand(user, n, everything) for user in users]
    assert recommended(predict, RATED, users, n).tolist() == expected
    some = np.arange(LIST_ITEMS) % 3 > 0
    expected = [by_hand(user, n, some) for user in users]
    assert recommended(predict, RATED, users, n, some).tolist() == expected


def test_no_place_in_the_catalogue_is_an_advantage() -> None:
    items, length = 20_000, 50
    nobody = Ratings.from_pairs([], [], user_ids=np.arange(2), item_ids=np.arange(items))
    alike = recommended(lambda some, of: np.floor(of / (items / 2)), nobody, np.arange(2), length)
    assert alike.min() >= items / 2  # the better half
    order = np.argsort(words_of_ties(items))
    assert alike.tolist() == [order[order >= items / 2][:length].tolist()] * 2
    # Ranks of independent orders correlate with a deviation of 1 / 141; six of them are false alarms in 1e-8.
    assert abs(np.corrcoef(order, np.arange(items))[0, 1]) < 6 / 141


def test_rows_are_ranked_as_cells_are() -> None:
    users = np.arange(LIST_USERS)
    made = scored_lists(
        predict, Unrated(RATED), users, 4, LIST_ITEMS, predict_rows=lambda some, n: PREDICTED[some]
    )
    assert made.items.tolist() == recommended(predict, RATED, users, 4).tolist()


def test_scores_are_the_predictions_by_which_lists_are_ordered() -> None:
    users = np.arange(LIST_USERS)
    made = scored_lists(predict, Unrated(RATED), users, LIST_ITEMS, LIST_ITEMS)
    rows, places = np.nonzero(made.items != NO_ITEM)
    assert made.scores[rows, places].tolist() == PREDICTED[rows, made.items[rows, places]].tolist()
    assert (made.scores[:, 1:] <= made.scores[:, :-1]).all()


def test_a_sample_has_the_relevant_items_and_as_many_drawn_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = RATED.select(RATED.items % 2 == 0)
    train, relevant = RATED.select(RATED.items % 2 == 1), tested.select(tested.items % 4 == 0)
    sampled = Sampled(Unrated(train), tested, relevant, 3, seed=5)
    users = np.arange(LIST_USERS)
    chosen = sampled(users)
    is_relevant = IS_RATED & (np.arange(LIST_ITEMS) % 4 == 0)
    assert chosen[is_relevant].all()
    drawn = chosen & ~is_relevant
    assert not drawn[IS_RATED].any()
    assert drawn.sum(axis=1).tolist() == np.minimum(3, (~IS_RATED).sum(axis=1)).tolist()
    # A user's draws are the user's own, and those of the seed.
    assert sampled(users[4:6]).tolist() == chosen[4:6].tolist()
    assert len({tuple(np.flatnonzero(row)) for row in drawn[:3]}) == 3
    assert replace(sampled, seed=6)(users).tolist() != chosen.tolist()
    made = scored_lists(lambda some, items: PREDICTED[some, items], sampled, users, LIST_ITEMS, LIST_ITEMS)
    assert [sorted(row[row >= 0]) for row in made.items] == [np.flatnonzero(row).tolist() for row in chosen]


def test_each_negative_is_as_likely_as_another() -> None:
    nobody = RATED.select(np.zeros(RATED.count, dtype=np.bool_))
    chosen = np.mean(
        [Sampled(Unrated(nobody), nobody, nobody, 3, seed)(np.arange(LIST_USERS)) for seed in range(400)],
        axis=0,
    )
    # Each of 108 cells is drawn with probability 1/4: six standard deviations miss with 2e-7.
    assert np.abs(chosen - 0.25).max() < 6 * np.sqrt(0.25 * 0.75 / 400)
