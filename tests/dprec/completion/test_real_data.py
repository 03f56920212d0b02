"""Accuracy on MovieLens 100K, fold u1, against figures of an independent prototype."""

import numpy as np
import pytest

from dprec.completion import COMPLETIONS, Observations
from dprec.mechanisms import MECHANISMS
from dprec.randomness import words
from dprec.ratings import Ratings, RatingScale
from tests.paths import DATA

STARS = RatingScale.evenly(1, 5, 1)

MOVIELENS = DATA / "ml-100k"
pytestmark = pytest.mark.skipif(
    not (MOVIELENS / "u1.base").exists(),
    reason=f"MovieLens 100K is not at {MOVIELENS} (set DPREC_DATA)",
)


@pytest.fixture(scope="module")
def fold() -> tuple[Ratings, Ratings]:
    base, test = (np.loadtxt(MOVIELENS / name, dtype=int)[:, :3].T for name in ("u1.base", "u1.test"))
    users, items = np.union1d(base[0], test[0]), np.union1d(base[1], test[1])
    train, held_out = (
        Ratings.from_triples(*part, STARS, user_ids=users, item_ids=items) for part in (base, test)
    )
    return train, held_out


def rmse(fold: tuple[Ratings, Ratings], mechanism: str, epsilon: float) -> float:
    train, test = fold
    channel = MECHANISMS[mechanism]().channel(STARS, epsilon)
    values = channel.values[channel.sample(train.levels, words(0, "report", 0, train.count))]
    observations = Observations(train.users, train.items, values, (train.n_users, train.n_items), STARS)
    completed = COMPLETIONS["mf"]().fit(observations, seed=0)
    predictions = np.clip(completed.predict(test.users, test.items), STARS.low, STARS.high)
    return float(np.sqrt(np.mean((predictions - test.values) ** 2)))


def test_clean_ratings(fold: tuple[Ratings, Ratings]) -> None:
    assert rmse(fold, "none", 1.0) == pytest.approx(0.916, abs=0.005)


@pytest.mark.parametrize(("mechanism", "expected"), [("bounded-laplace", 1.195), ("clamped-laplace", 1.121)])
def test_private_ratings(fold: tuple[Ratings, Ratings], mechanism: str, expected: float) -> None:
    assert rmse(fold, mechanism, 1.0) == pytest.approx(expected, abs=0.04)
