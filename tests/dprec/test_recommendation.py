"""Lists of recommended items, against sorting each user's predictions."""

from dataclasses import replace

import numpy as np
import pytest

from dprec import recommendation
from dprec.predictions import NO_ITEM, Sampled, Unrated, best_items, recommended
from dprec.ratings import Ratings, RatingScale

USERS, ITEMS = 9, 12
random = np.random.default_rng(3)
# Few different predictions, so that ties are common.
PREDICTED = random.integers(0, 4, (USERS, ITEMS)).astype(float)
IS_RATED = random.random((USERS, ITEMS)) < np.linspace(0, 1, USERS)[:, None]
RATED = Ratings.from_triples(
    *np.nonzero(IS_RATED),
    np.ones(IS_RATED.sum()),
    RatingScale.evenly(1, 5, 1),
    user_ids=np.arange(USERS),
    item_ids=np.arange(ITEMS),
)


def predict(users: np.ndarray, items: np.ndarray) -> np.ndarray:
    assert not IS_RATED[users, items].any()
    return PREDICTED[users, items]


def by_hand(user: int, n: int, allowed: np.ndarray) -> list[int]:
    open_items = [item for item in range(ITEMS) if allowed[item] and not IS_RATED[user, item]]
    ranked = sorted(open_items, key=lambda item: (-PREDICTED[user, item], item))[:n]
    return ranked + [NO_ITEM] * (min(n, ITEMS) - len(ranked))


@pytest.mark.parametrize("n", [1, 3, ITEMS, 10**9])
@pytest.mark.parametrize("cells", [1, 30, 1 << 20])
@pytest.mark.parametrize("items", [5, 4096])
def test_lists_are_the_best_unrated_items(
    n: int, cells: int, items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommendation, "_CELLS", cells)
    monkeypatch.setattr(recommendation, "_ITEMS", items)
    users = np.array([8, 0, 3, 3, 5])
    everything = np.ones(ITEMS, dtype=np.bool_)
    expected = [by_hand(user, n, everything) for user in users]
    assert recommended(predict, RATED, users, n).tolist() == expected
    some = np.arange(ITEMS) % 3 > 0
    expected = [by_hand(user, n, some) for user in users]
    assert recommended(predict, RATED, users, n, some).tolist() == expected


def test_nobody_is_recommended_nothing() -> None:
    assert recommended(predict, RATED, np.zeros(0, dtype=np.int64), 3).shape == (0, 3)


def test_rows_are_ranked_as_cells_are() -> None:
    users = np.arange(USERS)
    rows = best_items(predict, Unrated(RATED), users, 4, ITEMS, predict_rows=lambda some, n: PREDICTED[some])
    assert rows.tolist() == recommended(predict, RATED, users, 4).tolist()


def test_a_sample_has_the_relevant_items_and_as_many_drawn_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = RATED.select(RATED.items % 2 == 0)
    train, relevant = RATED.select(RATED.items % 2 == 1), tested.select(tested.items % 4 == 0)
    sampled = Sampled(Unrated(train), tested, relevant, 3, seed=5)
    users = np.arange(USERS)
    chosen = sampled(users)
    is_relevant = IS_RATED & (np.arange(ITEMS) % 4 == 0)
    assert chosen[is_relevant].all()
    drawn = chosen & ~is_relevant
    assert not drawn[IS_RATED].any()
    assert drawn.sum(axis=1).tolist() == np.minimum(3, (~IS_RATED).sum(axis=1)).tolist()
    # A user's draws are the user's own, and those of the seed.
    assert sampled(users[4:6]).tolist() == chosen[4:6].tolist()
    assert len({tuple(np.flatnonzero(row)) for row in drawn[:3]}) == 3
    assert replace(sampled, seed=6)(users).tolist() != chosen.tolist()
    lists = best_items(lambda some, items: PREDICTED[some, items], sampled, users, ITEMS, ITEMS)
    assert [sorted(row[row >= 0]) for row in lists] == [np.flatnonzero(row).tolist() for row in chosen]


def test_each_negative_is_as_likely_as_another() -> None:
    nobody = RATED.select(np.zeros(RATED.count, dtype=np.bool_))
    chosen = np.mean(
        [Sampled(Unrated(nobody), nobody, nobody, 3, seed)(np.arange(USERS)) for seed in range(400)], axis=0
    )
    # Each of 108 cells is drawn with probability 1/4: six standard deviations miss with 2e-7.
    assert np.abs(chosen - 0.25).max() < 6 * np.sqrt(0.25 * 0.75 / 400)
