"""Lists from the catalogue against pytrec_eval and the definitions, and intervals against a formula."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.metrics import (
    LONGEST_LIST,
    Hits,
    RankedHits,
    RankingAccuracy,
    accuracy_of_lists,
    graded_ndcg,
    interval,
    mean_absolute_error,
    ranking_accuracy,
    ranking_figures,
    recommendation_accuracy,
    relevant_ratings,
    resampled_sums,
    root_mean_squared_error,
    sign_accuracy,
)
from dprec.predictions import Unrated, scored_lists
from dprec.randomness import generator
from dprec.ratings import ColdRatings, Ratings
from tests import make
from tests.refusals import refused_at

USERS, ITEMS = 4, 6
Cells = dict[tuple[int, int], int]


def ratings(cells: Cells) -> Ratings:
    return make.ratings(*((*cell, value) for cell, value in cells.items()), users=USERS, items=ITEMS)


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


RANKED_USERS, RANKED_ITEMS = 40, 60
CUTOFFS = (1, 5, 10, 20, 100)
random = np.random.default_rng(11)
SCORES = random.permutation(RANKED_USERS * RANKED_ITEMS).reshape(RANKED_USERS, RANKED_ITEMS).astype(float)
"""All different, since trec_eval breaks ties by the name of the item."""


RANKED_STARS = random.integers(1, 6, (RANKED_USERS, RANKED_ITEMS))
PARTS = random.random((RANKED_USERS, RANKED_ITEMS))
TRAINED = (PARTS < 0.2) & (np.arange(RANKED_USERS) > 1)[:, None]
TESTED = (PARTS > 0.8) & (np.arange(RANKED_USERS) != 7)[:, None]
TRAIN, TEST = (make.rated(cells, RANKED_STARS[cells]) for cells in (TRAINED, TESTED))


def predict(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    return SCORES[users, items]


def by_trec_eval(
    relevant: Ratings,
    users: np.ndarray,
    measures: set[str],
    first: int = 0,
    levels: np.ndarray | None = None,
) -> dict[str, float]:
    """Return means over users of what trec_eval says of all unrated items, or of the first ones."""
    wanted: dict[str, dict[str, int]] = {str(user): {} for user in users}
    of_each = np.ones(relevant.count, dtype=int) if levels is None else levels
    for user, item, level in zip(relevant.users, relevant.items, of_each.tolist(), strict=True):
        wanted[str(user)][str(item)] = level
    run = {}
    for user in users.tolist():
        unrated = np.flatnonzero(~TRAINED[user])
        ranked = unrated[np.argsort(-SCORES[user, unrated])][: first or None]
        run[str(user)] = {str(item): float(SCORES[user, item]) for item in ranked}
    judged = pytrec_eval.RelevanceEvaluator(wanted, measures).evaluate(run).values()
    return {name: float(np.mean([own[name] for own in judged])) for name in next(iter(judged))}


@pytest.mark.parametrize("metric", [root_mean_squared_error, mean_absolute_error, sign_accuracy])
def test_predictions_and_ratings_of_other_shapes_are_refused(metric: Callable[..., float]) -> None:
    refused: list[tuple[Any, Any]] = [
        *(([4.0, 3.0], [4.0]), ([1, 1], [[1], [1]]), ([[1.0]], [[1.0]]), (1.0, 1.0), ([], [])),
        *((None, [1.0]), (["a"], [1.0]), ([[1.0], [1.0, 2.0]], [1.0])),
    ]
    for predictions, truth in refused:
        with refused_at("predictions"):
            metric(predictions, truth)
    assert metric([1, -1], (1, -1)) == (metric is sign_accuracy)


@pytest.mark.parametrize("relevant_from", [None, 4.0])
def test_full_ranking_agrees_with_trec_eval(relevant_from: float | None) -> None:
    relevant = relevant_ratings(TEST, TRAIN, relevant_from)
    users = np.flatnonzero(relevant.counts)
    lists = scored_lists(predict, Unrated(TRAIN), users, max(CUTOFFS), RANKED_ITEMS).items
    figures = ranking_figures(RankedHits.of(lists, users, relevant), CUTOFFS, RANKED_ITEMS)
    names = {
        "ndcg": "ndcg_cut",
        "recall": "recall",
        "precision": "P",
        "hit_rate": "success",
        "map": "map_cut",
    }
    cuts = ",".join(map(str, CUTOFFS))
    expected = by_trec_eval(relevant, users, {*(f"{name}.{cuts}" for name in names.values()), "recip_rank"})
    for ours, theirs in names.items():
        for cutoff in CUTOFFS:
            assert figures[ours][cutoff] == pytest.approx(expected[f"{theirs}_{cutoff}"], abs=1e-9)
    assert figures["mrr"][100] == pytest.approx(expected["recip_rank"])


def test_graded_gains_agree_with_trec_eval() -> None:
    users = np.flatnonzero(TEST.counts)
    lists = scored_lists(predict, Unrated(TRAIN), users, max(CUTOFFS), RANKED_ITEMS).items
    cuts = ",".join(map(str, CUTOFFS))
    expected = by_trec_eval(TEST, users, {f"ndcg_cut.{cuts}"}, levels=TEST.levels)
    found = graded_ndcg(lists, users, TEST, CUTOFFS)
    for cutoff in CUTOFFS:
        assert found[cutoff] == pytest.approx(expected[f"ndcg_cut_{cutoff}"], abs=1e-9)
    # Where every rating is the same, gains are those of binary relevance.
    alike = make.as_sets(TESTED)
    binary = ranking_figures(RankedHits.of(lists, users, alike), CUTOFFS, RANKED_ITEMS)["ndcg"]
    assert graded_ndcg(lists, users, alike, CUTOFFS) == pytest.approx(binary)


def test_graded_gains_are_levels_by_their_definition() -> None:
    test = make.ratings((0, 0, 2.0), (0, 1, 5.0), (0, 3, 1.0), items=5)
    lists, user = np.array([[2, 0, 1, -1]]), np.array([0])
    second = 2 / np.log2(3)
    whole = (second + 5 / 2) / (5 + second + 1 / 2)
    found = graded_ndcg(lists, user, test, [1, 2, 3, 9])
    assert found == pytest.approx({1: 0.0, 2: second / (5 + second), 3: whole, 9: whole})
    assert graded_ndcg(np.empty((0, 4), dtype=int), user[:0], test.select(test.items < 0), [3]) == {3: None}


def test_lists_of_implicit_data_agree_with_trec_eval() -> None:
    train, test = make.as_sets(TRAINED), make.as_sets(TESTED)
    users = np.flatnonzero(test.counts)
    lists = scored_lists(predict, Unrated(train), users, LONGEST_LIST, RANKED_ITEMS).items
    figures = accuracy_of_lists(RankedHits.of(lists, users, test), users, test, train)
    names = {"ndcg": "ndcg_cut", "recall": "recall", "hit_rate": "success", "map": "map_cut"}
    expected = by_trec_eval(test, users, {"ndcg_cut.10", "recall.20", "success.10", "map_cut.10"})
    for ours, theirs in names.items():
        cutoff = 20 if ours == "recall" else 10
        assert figures[f"{ours}_at_{cutoff}"] == pytest.approx(expected[f"{theirs}_{cutoff}"], abs=1e-9)
    reciprocal = by_trec_eval(test, users, {"recip_rank"}, first=10)["recip_rank"]
    assert figures["mrr_at_10"] == pytest.approx(reciprocal, abs=1e-9)
    popular, filled = TRAINED.sum(axis=0), np.flatnonzero(train.counts[users])
    listed = np.mean([popular[lists[place, :10]].mean() for place in filled])
    own = np.mean([popular[TRAINED[user]].mean() for user in users[filled]])
    assert figures["popularity_lift"] == pytest.approx(listed / own - 1)
    assert figures["coverage"] == np.unique(lists[:, :10]).size / RANKED_ITEMS


def test_ranks_say_all_that_metrics_of_lists_depend_on() -> None:
    users = np.flatnonzero(TEST.counts)
    lists = scored_lists(predict, Unrated(TRAIN), users, LONGEST_LIST, RANKED_ITEMS).items
    ranked = RankedHits.of(lists, users, TEST)
    again = Hits.at(ranked.ranks(users, TEST), np.searchsorted(users, TEST.users), LONGEST_LIST)
    np.testing.assert_array_equal(again.hits, ranked.hits)
    np.testing.assert_array_equal(again.relevant, ranked.relevant)


def sets(*own: list[int], items: int = 5) -> Ratings:
    """Return the items of some users."""
    return make.as_sets(make.sparse_sets(*own, items=items).toarray() > 0)


def test_the_tail_is_all_but_the_most_popular_fifth() -> None:
    train, test, users = sets([0, 1], [0], [0]), sets([2], [1, 4], []), np.array([0, 1])
    lists = np.array([[2, 3], [3, 1]])
    figures = accuracy_of_lists(RankedHits.of(lists, users, test), users, test, train)
    assert figures["tail_recall_at_20"] == (1 + 1 / 2) / 2
    of_head = sets([], [], [], [0])
    nobody = RankedHits.of(np.array([[0, 1]]), np.array([3]), of_head)
    wider = sets([0], [], [], [1])
    assert accuracy_of_lists(nobody, np.array([3]), of_head, wider)["tail_recall_at_20"] is None


def test_of_cold_users_popularity_is_that_among_others() -> None:
    train = sets([0, 1], [0], [0])
    held, tested = (
        Ratings.from_pairs([7], [item], user_ids=np.array([7]), item_ids=np.arange(5)) for item in (1, 2)
    )
    own = {each.name: getattr(tested, each.name) for each in fields(Ratings)}
    test = ColdRatings(**own, given=held)
    lists = scored_lists(lambda users, items: -items.astype(float), Unrated(held), np.array([0]), 2, 5).items
    assert lists.tolist() == [[0, 2]]
    figures = accuracy_of_lists(RankedHits.of(lists, np.array([0]), test), np.array([0]), test, train)
    assert figures["popularity_lift"] == pytest.approx((3 + 0) / 2 / 1 - 1)
    assert figures["tail_recall_at_20"] == 1
    assert figures["mrr_at_10"] == 1 / 2


RESAMPLED_USERS = 400


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution() -> None:
    """Within a tenth: the standard error of an end is 0.03 standard errors of the mean, six of them 0.2."""
    values = generator(1, "values").normal(2.0, 3.0, RESAMPLED_USERS)
    low, high = interval(resampled_sums(values[:, None])[:, 0] / RESAMPLED_USERS)
    error = float(values.std()) / np.sqrt(RESAMPLED_USERS)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_the_same_users_are_drawn_for_what_is_compared() -> None:
    values = generator(2, "values").normal(size=(RESAMPLED_USERS, 1))
    together = resampled_sums(np.concatenate([values, values + 0.25], axis=1))
    apart = np.concatenate([resampled_sums(values), resampled_sums(values + 0.25)], axis=1)
    assert np.array_equal(together, resampled_sums(np.concatenate([values, values + 0.25], axis=1)))
    for totals in (together, apart):
        np.testing.assert_allclose(totals[:, 1] - totals[:, 0], 0.25 * RESAMPLED_USERS)


def test_intervals_of_paired_differences_cover_at_their_nominal_rate() -> None:
    """The difference of two protocols' errors per rating, over users with unequal numbers of ratings.

    Of 2,000 populations, 1,900 intervals should hold the true difference. Fewer than 1,832 or more than
    1,945 do with probability 1e-6 or less as long as the rate is from 94.3 to 95 %: the percentile
    interval of 300 users may lack a few tenths of a per cent.
    """
    users, populations, true = 300, 2000, 0.05
    random = generator(3, "populations")
    ratings = random.integers(1, 40, (users, 1)).astype(float)
    hard = random.gamma(4.0, 0.25, (users, populations))
    first = hard * ratings + random.normal(size=hard.shape) * np.sqrt(ratings)
    second = first + (true + 0.6 * random.normal(size=hard.shape)) * ratings
    totals = resampled_sums(np.concatenate([ratings, first, second], axis=1))
    differences = (totals[:, 1 + populations :] - totals[:, 1 : 1 + populations]) / totals[:, :1]
    low, high = np.transpose([interval(each) for each in differences.T])
    covered = int(((low <= true) & (true <= high)).sum())
    assert 1832 <= covered <= 1945


def test_coverage_is_of_the_first_ten_of_each_list() -> None:
    test, train = sets([0], [1], items=50), sets([48], [49], items=50)
    lists = np.stack([np.arange(20), np.arange(20) + 5])
    figures = accuracy_of_lists(RankedHits.of(lists, np.arange(2), test), np.arange(2), test, train)
    assert figures["coverage"] == 15 / 50
