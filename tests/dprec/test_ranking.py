"""Lists from the catalogue, against pytrec_eval and against the definitions."""

import numpy as np
import pytest
import pytrec_eval

from dprec.metrics import RankedHits, ranking_figures, relevant_ratings
from dprec.predictions import NO_ITEM, Unrated, best_items
from dprec.ratings import Ratings, RatingScale

USERS, ITEMS = 40, 60
CUTOFFS = (1, 5, 10, 20, 100)
random = np.random.default_rng(11)
SCORES = random.permutation(USERS * ITEMS).reshape(USERS, ITEMS).astype(float)
"""All different, since trec_eval breaks ties by the name of the item."""


def ratings(cells: np.ndarray, values: np.ndarray) -> Ratings:
    users, items = np.nonzero(cells)
    scale = RatingScale.evenly(1, 5, 1)
    ids = {"user_ids": np.arange(USERS), "item_ids": np.arange(ITEMS)}
    return Ratings.from_triples(users, items, values[users, items], scale, **ids)


STARS = random.integers(1, 6, (USERS, ITEMS))
PARTS = random.random((USERS, ITEMS))
TRAIN = ratings((PARTS < 0.2) & (np.arange(USERS) > 1)[:, None], STARS)
TEST = ratings((PARTS > 0.8) & (np.arange(USERS) != 7)[:, None], STARS)


def predict(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    return SCORES[users, items]


@pytest.mark.parametrize("relevant_from", [None, 4.0])
def test_full_ranking_agrees_with_trec_eval(relevant_from: float | None) -> None:
    relevant = relevant_ratings(TEST, TRAIN, relevant_from)
    users = np.flatnonzero(relevant.counts)
    lists = best_items(predict, Unrated(TRAIN), users, max(CUTOFFS), ITEMS)
    figures = ranking_figures(RankedHits.of(lists, users, relevant), CUTOFFS, ITEMS)

    wanted = {str(user): {} for user in users}
    for user, item in zip(relevant.users.tolist(), relevant.items.tolist(), strict=True):
        wanted[str(user)][str(item)] = 1
    seen = {(u, i) for u, i in zip(TRAIN.users.tolist(), TRAIN.items.tolist(), strict=True)}
    run = {
        str(user): {str(i): float(SCORES[user, i]) for i in range(ITEMS) if (user, i) not in seen}
        for user in users.tolist()
    }
    cuts = ",".join(map(str, CUTOFFS))
    names = {"ndcg": "ndcg_cut", "recall": "recall", "precision": "P", "hit_rate": "success"}
    judged = pytrec_eval.RelevanceEvaluator(wanted, {f"{name}.{cuts}" for name in names.values()})
    expected = judged.evaluate(run)
    for ours, theirs in names.items():
        for cutoff in CUTOFFS:
            mean = np.mean([own[f"{theirs}_{cutoff}"] for own in expected.values()])
            assert figures[ours][cutoff] == pytest.approx(mean, abs=1e-9)
    whole = pytrec_eval.RelevanceEvaluator(wanted, {"recip_rank"}).evaluate(run)
    assert figures["mrr"][100] == pytest.approx(np.mean([own["recip_rank"] for own in whole.values()]))


def test_a_first_hit_beyond_the_cutoff_counts_for_nothing() -> None:
    lists = np.array([[3, 0, 1], [2, 4, NO_ITEM]])
    relevant = ratings(np.isin(np.arange(USERS * ITEMS).reshape(USERS, ITEMS), [1, ITEMS + 2]), STARS)
    figures = ranking_figures(RankedHits.of(lists, np.array([0, 1]), relevant), (2, 3), 8)
    assert figures["mrr"] == {2: 0.5, 3: pytest.approx((1 / 3 + 1) / 2)}
    assert figures["hit_rate"] == {2: 0.5, 3: 1.0}
    assert figures["precision"] == {2: 0.25, 3: pytest.approx(1 / 3)}
    assert figures["recall"] == {2: 0.5, 3: 1.0}
    assert figures["coverage"] == {2: 4 / 8, 3: 5 / 8}


def test_without_users_there_are_no_figures() -> None:
    nobody = RankedHits.of(np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.int64), TEST)
    assert {value for at in ranking_figures(nobody, (1, 3), 8).values() for value in at.values()} == {None}
