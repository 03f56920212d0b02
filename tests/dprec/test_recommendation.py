"""Lists of recommended items, against sorting each user's predictions."""

import numpy as np
import pytest

from dprec import recommendation
from dprec.ratings import Ratings, RatingScale
from dprec.recommendation import NO_ITEM, recommended

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
