"""How predictions are judged by the test ratings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.crossdomain import CrossDomainRatings
from dprec.datasets import OneBitSynthetic, Synthetic, SyntheticDomains
from dprec.groups import Grouping
from dprec.ratings import ColdRatings, Ratings
from dprec.splits import ColdUsers, Holdout
from simulation.configuration.models import EvaluationOptions, RankingOptions
from simulation.evaluation import Evaluator

RATED = Synthetic(users=20, items=10, ratings=120)
SIGNS = OneBitSynthetic(users=20, items=10, rank=2)


def evaluator(dataset: Synthetic | OneBitSynthetic) -> Evaluator:
    train, test = Holdout(test_fraction=0.25).split(dataset, 1)
    return Evaluator(train, test, EvaluationOptions(top_k=3), dataset.hidden())


def zeros(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    return np.zeros(users.size)


def by_item(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    return items.astype(np.float64)


def test_predictions_stay_within_the_scale() -> None:
    judge = evaluator(RATED)
    predictions = judge.predictions(lambda users, items: np.where(items % 2, 99.0, -99.0))
    expected = np.where(judge.test.items % 2, judge.train.scale.high, judge.train.scale.low)
    assert predictions.tolist() == expected.tolist()


def test_perfect_predictions_have_no_error() -> None:
    judge = evaluator(RATED)
    accuracy = judge.accuracy(judge.test.values)
    assert accuracy["rmse"] == accuracy["mae"] == 0
    assert accuracy["precision_at_k"] is not None
    assert accuracy["precision_at_k"] > 0
    assert accuracy["k"] == 3


def test_of_signs_the_share_that_is_predicted_counts() -> None:
    judge = evaluator(SIGNS)
    assert judge.accuracy(judge.test.values) == {"sign_accuracy": 1, "relative_error": None}
    assert judge.accuracy(-judge.test.values)["sign_accuracy"] == 0


def test_the_hidden_matrix_is_compared_where_it_is_known_and_learned() -> None:
    judge = evaluator(SIGNS)
    truth = judge.truth
    assert truth is not None

    def signs(users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return np.sign(truth[users, items])

    doubled = judge(signs, lambda users, items: 2 * truth[users, items])
    assert doubled["relative_error"] == pytest.approx(1.0)
    assert doubled["sign_accuracy"] is not None
    assert 0.5 < doubled["sign_accuracy"] <= 1
    assert judge(signs)["relative_error"] is None
    assert replace(judge, truth=None)(signs, signs)["relative_error"] is None


def test_lists_of_unrated_items_are_compared_with_the_relevant_test_items() -> None:
    judge = evaluator(RATED)
    every = replace(judge, options=EvaluationOptions(top_k=2, relevant_from=4.0, candidates="unrated"))
    liked = {(user, item) for user, item, value in triples(judge.test) if value >= 4}
    rated = {(user, item) for user, item, _ in triples(judge.train)}

    def earlier_first(users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return -items.astype(float)

    precisions = []
    for user in np.unique(judge.test.users).tolist():
        best = [item for item in range(10) if (user, item) not in rated][:2]
        precisions.append(sum((user, item) in liked for item in best) / len(best))
    assert every(earlier_first)["precision_at_k"] == pytest.approx(np.mean(precisions))
    # Among test items alone, the same predictions find more.
    first = replace(judge, options=replace(every.options, candidates="test"))(earlier_first)["precision_at_k"]
    assert first is not None
    assert first > np.mean(precisions)


def test_only_items_of_the_target_domain_are_listed() -> None:
    dataset = SyntheticDomains(users=60, items=20, ratings=600)
    train, test = Holdout(test_fraction=0.5).split(dataset, 1)
    assert isinstance(train, CrossDomainRatings)
    options = EvaluationOptions(top_k=1, candidates="unrated", relevant_from=1.0)
    judge = Evaluator(train, test.select(train.in_target[test.items]), options, None)

    def source_first(users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return np.where(train.in_target[items], 1.0, 5.0)

    assert judge(source_first)["precision_at_k"] == judge(zeros)["precision_at_k"]
    assert judge(zeros)["precision_at_k"] != 0


def triples(ratings: Ratings) -> list[tuple[int, int, float]]:
    columns = ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist()
    return list(zip(*columns, strict=True))


def test_what_devices_reach_alone_is_said_in_the_main_metric() -> None:
    signs, stars = evaluator(SIGNS), evaluator(RATED)
    right = np.mean((signs.alone >= 0) == (signs.test.values > 0))
    assert signs.nothing_sent() == pytest.approx(right)
    assert 0 < right < 1
    assert stars.nothing_sent() == pytest.approx(np.sqrt(np.mean((stars.alone - stars.test.values) ** 2)))


def test_what_cold_users_are_given_is_in_none_of_their_lists() -> None:
    sets = Synthetic(users=30, items=25, ratings=300, positive=">= 3", min_items=3)
    train, test = ColdUsers(test_users=0.3, test_fraction=0.3).split(sets, 1)
    assert isinstance(test, ColdRatings)
    judge = Evaluator(train, test, EvaluationOptions(), None)
    given = np.zeros((test.n_users, test.n_items), dtype=np.bool_)
    given[test.given.users, test.given.items] = True
    # What is given would be listed first.
    ranked = judge.lists(lambda users, items: given[users, items].astype(np.float64), length=20)
    listed = [own[own >= 0] for own in ranked.items]
    assert not any(given[user, own].any() for user, own in zip(ranked.users, listed, strict=True))
    assert [own.size for own in listed] == [min(20, 25 - int(given[user].sum())) for user in ranked.users]


@pytest.mark.parametrize(
    ("asked", "length"),
    [
        ({}, None),
        ({"lists": 4}, 4),
        ({"lists": 4, "ranking": RankingOptions(cutoffs=(3, 7))}, 7),
        ({"lists": 4, "ranking": RankingOptions(candidates="sampled", negatives=2, cutoffs=(3, 7))}, 7),
        ({"candidates": "unrated", "top_k": 6, "lists": 4}, 6),
        ({"lists": 50}, 10),
    ],
)
def test_the_catalogue_is_ranked_once_for_the_longest_list(asked: dict[str, Any], length: int | None) -> None:
    judge, ranked = replace(evaluator(RATED), options=EvaluationOptions(**asked)), list[int]()

    def predict(users: np.ndarray, items: np.ndarray) -> np.ndarray:
        ranked.append(users.size)
        return -items.astype(np.float64)

    lists = judge.longest_lists(predict)
    assert (None if lists is None else lists.items.shape[1]) == length
    calls, sampled = len(ranked), judge.options.ranking is not None and judge.options.ranking.negatives
    judge.judged(predict, lists=lists)
    judge.ranking(predict, lists)
    # Once more for the test ratings.
    assert len(ranked) == calls + 1 + bool(sampled)


@pytest.mark.parametrize(
    ("dataset", "asked"), [(SIGNS, {}), (RATED, {"candidates": "sampled", "negatives": 2})]
)
def test_gains_are_graded_of_ratings_in_the_whole_catalogue_alone(
    dataset: Any, asked: dict[str, Any]
) -> None:
    plain = replace(evaluator(RATED), options=EvaluationOptions(ranking=RankingOptions()))
    assert set(plain.ranking(zeros, plain.longest_lists(zeros))["ranking"]["graded_ndcg_at"]) == {10, 20}
    judge = replace(evaluator(dataset), options=EvaluationOptions(ranking=RankingOptions(**asked)))
    *_, figures = judge.ranking(zeros, judge.longest_lists(zeros)).values()
    assert "graded_ndcg_at" not in figures


def test_a_sample_stands_beside_the_whole_catalogue_drawn_or_given(tmp_path: Path) -> None:
    plain, drawn = (
        RankingOptions(cutoffs=(2,)),
        RankingOptions(candidates="sampled", cutoffs=(2,), negatives=1, seed=5),
    )
    given = replace(drawn, negatives=str(tmp_path / "test.negative"))
    judge = evaluator(RATED)
    judges = [replace(judge, options=EvaluationOptions(ranking=each)) for each in (plain, drawn, given)]
    assert judges[0].lines_of_sample() is None
    (tmp_path / "test.negative").write_text("".join(judges[1].lines_of_sample() or ()))
    whole, sampled, read = (each.ranking(by_item, each.longest_lists(by_item)) for each in judges)
    assert set(whole) == {"ranking"}
    assert sampled["ranking"] == read["ranking"] == whole["ranking"]
    figures = dict(sampled["sampled_ranking"])
    assert (figures["negatives"], figures["seed"]) == (1, 5)
    assert read["sampled_ranking"] == {**figures, "negatives": 1, "seed": None}
    # Of one other item and a relevant one, the first two hold both.
    assert figures["hit_rate_at"][2] == 1 > whole["ranking"]["hit_rate_at"][2]


def test_activity_counts_all_ratings_of_a_user() -> None:
    train, test = Holdout(test_fraction=0.4).split(RATED, 1)
    judge = Evaluator(train, test, EvaluationOptions(groups=("activity",)), None)
    found, expected = judge.groupings()["activity"], Grouping.of(RATED.load().counts.astype(np.float64))
    assert found.names == expected.names
    assert found.members.tolist() == expected.members.tolist()


def test_popularity_in_groups_is_that_of_train_ratings() -> None:
    train, test = Holdout(test_fraction=0.4).split(RATED, 1)
    judge = Evaluator(train, test, EvaluationOptions(groups=("activity",)), None)
    popular = np.bincount(train.items, minlength=train.n_items) / train.n_users
    lists = judge.longest_lists(lambda users, items: popular[items])
    found = judge.users_of_groups(test.values, lists, lambda: {"epsilon_per_rating": np.zeros(train.n_users)})
    assert found is not None
    users = np.flatnonzero(test.counts)
    own = [
        popular[train.items[train.users == user]].mean() if train.counts[user] else np.nan for user in users
    ]
    np.testing.assert_allclose(found.columns["own_popularity"], own)
    unrated = [np.setdiff1d(np.arange(train.n_items), train.items[train.users == user]) for user in users]
    listed = [popular[items[np.argsort(-popular[items], kind="stable")][:10]].mean() for items in unrated]
    np.testing.assert_allclose(found.columns["list_popularity"], listed)
