import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.metrics import (
    RankingAccuracy,
    mean_absolute_error,
    ranking_accuracy,
    recommendation_accuracy,
    root_mean_squared_error,
    sign_accuracy,
)
from dprec.ratings import Ratings, RatingScale

STARS = RatingScale.evenly(1, 5, 1)
USERS, ITEMS = 4, 6
Cells = dict[tuple[int, int], int]


def ratings(cells: Cells) -> Ratings:
    ordered = sorted(cells)
    return Ratings.from_triples(
        np.array([user for user, _ in ordered], dtype=np.int64),
        np.array([item for _, item in ordered], dtype=np.int64),
        [cells[cell] for cell in ordered],
        STARS,
        user_ids=np.arange(USERS),
        item_ids=np.arange(ITEMS),
    )


def by_hand(
    predicted: dict[tuple[int, int], float], test: Cells, train: Cells, k: int, relevant_from: float | None
) -> RankingAccuracy:
    """Follow the definitions with loops and lists."""
    overall = sum(train.values()) / len(train)
    precisions, recalls = [], []
    for user in range(USERS):
        own = [rating for (rater, _), rating in train.items() if rater == user]
        mean = sum(own) / len(own) if own else overall
        threshold = mean if relevant_from is None else relevant_from
        items = [item for rater, item in test if rater == user]
        relevant = {item for item in items if test[user, item] >= threshold}
        ranked = sorted(items, key=lambda item: (-predicted[user, item], item))
        top = ranked[:k]
        hits = len(relevant.intersection(top))
        if items:
            precisions.append(hits / len(top))
        if relevant:
            recalls.append(hits / len(relevant))
    precision = sum(precisions) / len(precisions) if precisions else None
    recall = sum(recalls) / len(recalls) if recalls else None
    if precision is None or recall is None:
        return RankingAccuracy(precision, recall, None)
    f_score = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return RankingAccuracy(precision, recall, f_score)


CELLS = st.dictionaries(
    st.tuples(st.integers(0, USERS - 1), st.integers(0, ITEMS - 1)), st.integers(1, 5), min_size=1
)


@given(CELLS, CELLS, st.integers(1, 8), st.sampled_from([None, 1, 3.5, 5, 6]), st.data())
@settings(deadline=None)
def test_ranking_is_what_loops_find(
    test: Cells, train: Cells, k: int, relevant_from: float | None, data: st.DataObject
) -> None:
    # Few different predictions, so that ties are common.
    predicted = {cell: data.draw(st.sampled_from([1.0, 2.5, 4.0])) for cell in sorted(test)}
    found = ranking_accuracy(
        np.array(list(predicted.values())), ratings(test), ratings(train), k, relevant_from
    )
    expected = by_hand(predicted, test, train, k, relevant_from)
    for name in ("precision", "recall", "f_score"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, abs=1e-12)


@given(CELLS, CELLS, st.integers(1, ITEMS), st.sampled_from([None, 1, 3.5, 5, 6]), st.data())
@settings(deadline=None)
def test_lists_are_judged_as_loops_judge_them(
    test: Cells, train: Cells, length: int, relevant_from: float | None, data: st.DataObject
) -> None:
    users = sorted({user for user, _ in test})
    orders = [data.draw(st.permutations(range(ITEMS)))[:length] for _ in users]
    sizes = [data.draw(st.integers(0, length)) for _ in users]
    lists = [order[:size] + [-1] * (length - size) for order, size in zip(orders, sizes, strict=True)]
    overall = sum(train.values()) / len(train)
    precisions, recalls = [], []
    for user, order, size in zip(users, orders, sizes, strict=True):
        own = [rating for (rater, _), rating in train.items() if rater == user]
        threshold = (sum(own) / len(own) if own else overall) if relevant_from is None else relevant_from
        relevant = {item for (rater, item), rating in test.items() if rater == user and rating >= threshold}
        hits = len(relevant & set(order[:size]))
        precisions += [hits / size] if size else []
        recalls += [hits / len(relevant)] if relevant else []
    found = recommendation_accuracy(
        np.array(lists), np.array(users), ratings(test), ratings(train), relevant_from
    )
    for one, other in ((found.precision, precisions), (found.recall, recalls)):
        assert (one is None) == (not other)
        assert one is None or one == pytest.approx(sum(other) / len(other), abs=1e-12)


def test_nobody_finds_anything_relevant() -> None:
    found = ranking_accuracy(np.array([3.0]), ratings({(0, 0): 3}), ratings({(0, 1): 3}), 5, relevant_from=6)
    assert found == RankingAccuracy(0.0, None, None)


def test_relevant_items_beyond_the_list() -> None:
    test = ratings({(0, 0): 1, (0, 1): 5})
    found = ranking_accuracy(np.array([5.0, 1.0]), test, ratings({(0, 2): 3}), 1)
    assert found == RankingAccuracy(0.0, 0.0, 0.0)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1))
def test_errors_are_what_loops_find(pairs: list[tuple[float, float]]) -> None:
    predictions, truth = (np.array(column) for column in zip(*pairs, strict=True))
    squared = math.sqrt(math.fsum((p - t) ** 2 for p, t in pairs) / len(pairs))
    absolute = math.fsum(abs(p - t) for p, t in pairs) / len(pairs)
    assert root_mean_squared_error(predictions, truth) == pytest.approx(squared, abs=1e-12)
    assert mean_absolute_error(predictions, truth) == pytest.approx(absolute, abs=1e-12)


def test_short_lists_count_by_their_length_and_relevance_by_the_train_ratings() -> None:
    test, train = ratings({(0, 0): 4, (1, 0): 2, (1, 1): 5}), ratings({(0, 2): 3, (1, 2): 1})
    assert ranking_accuracy(np.array([3.0, 4.0, 3.0]), test, train, 5) == RankingAccuracy(1.0, 1.0, 1.0)


def test_large_errors_count_by_their_squares() -> None:
    assert root_mean_squared_error(np.array([1.0, 4.0]), np.array([1.0, 0.0])) == pytest.approx(math.sqrt(8))


def test_a_prediction_of_0_is_one_of_plus_1() -> None:
    assert sign_accuracy(np.array([0.0, 0.0, -1.0, 2.0]), np.array([1.0, -1.0, -1.0, -1.0])) == 0.5
