"""Fake profiles, and attacks with them on a server that shows everybody the means of items."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dprec.arrays import AnyInts, Floats
from dprec.attacks import Damage, MaliciousUsers, Promotion, Shown
from dprec.attacks.malicious import FakeProfiles
from dprec.attacks.promotion import Standing, standing_of
from dprec.completion import Averages
from dprec.randomness import generator
from dprec.ratings import Ratings
from tests.dprec.attacks.games import of_kinds

TARGETS = np.array([4, 9])


@dataclass
class MeansGame:
    """A server that is given ratings, and shows everybody the mean rating of each item."""

    truth: Ratings
    seed: int = 3
    malicious: list[MaliciousUsers] = field(default_factory=list)

    @property
    def shown(self) -> Shown:
        """What the honest see alone."""
        return self._shown(self.truth)

    def with_malicious_users(self, malicious: MaliciousUsers) -> Shown:
        """What they see when malicious users have joined."""
        self.malicious.append(malicious)
        return self._shown(malicious.joining(self.truth))

    def _shown(self, held: Ratings) -> Shown:
        counted = np.bincount(held.items, minlength=held.n_items)
        sums = np.bincount(held.items, held.values, held.n_items)
        means = Averages((sums + held.mean) / (counted + 1), by_item=True)
        errors = means.predict(self.truth.users, self.truth.items) - self.truth.values
        return Shown(means.predict, None, lambda: {"rmse": float(np.sqrt(np.mean(errors**2)))})


@pytest.fixture
def honest() -> Ratings:
    return of_kinds(200, 40, 0.3, seed=5)


def made(honest: Ratings, fillers: Any, level: int = 5, malicious: int = 9) -> Ratings:
    profiles = FakeProfiles(honest, TARGETS, level, fillers)
    return profiles.made(malicious, generator(1, "fake profiles of a test"))


def test_fillers_are_what_they_are_called(honest: Ratings) -> None:
    raters = np.bincount(honest.items, minlength=honest.n_items)
    contrast = made(honest, "contrast").to_sparse().toarray()
    assert set(np.delete(contrast, TARGETS, axis=1).ravel().tolist()) == {0, 1}
    # More at the other end than targets, so that no filler is as far from the mean.
    assert ((contrast == 1).sum(axis=1) == 1 + TARGETS.size).all()
    assert made(honest, "active").counts.min() > np.quantile(honest.counts, 0.9)
    popular = np.unique(made(honest, "popular").items)
    others = np.setdiff1d(popular, TARGETS)
    assert raters[others].min() >= np.sort(raters)[-others.size - TARGETS.size]
    favourites = made(honest, "favourites")
    assert (favourites.values == 5).all()
    liked = honest.values[np.isin(honest.items, np.setdiff1d(favourites.items, TARGETS))]
    assert liked.mean() > honest.values.mean()
    reversed_ = made(honest, "reversed")
    means = np.bincount(honest.items, honest.values, honest.n_items) / np.maximum(raters, 1)
    kept = ~np.isin(reversed_.items, TARGETS)
    assert np.corrcoef(means[reversed_.items[kept]], reversed_.values[kept])[0, 1] < -0.5


def test_ranks_are_among_unrated_items(honest: Ratings) -> None:
    """Two items are better than the target; who has rated one of them sees it a place higher."""
    order = np.full(honest.n_items, 1.0)
    order[[0, 1, 7]] = 4.0, 3.0, 2.0

    def predict(users: AnyInts, items: AnyInts) -> Floats:
        return order[items]

    rated = honest.to_sets().toarray() > 0
    users = np.arange(honest.n_users)
    seen = standing_of(np.array([7]), honest, Shown(predict, None, dict), users)
    judged = ~rated[:, 7]
    expected = 1 + (~rated[judged, 0]).astype(int) + ~rated[judged, 1]
    assert seen.rank == np.median(expected)
    assert (seen.hit_rate, seen.prediction) == (1.0, 2.0)
    last = standing_of(np.array([7]), honest, Shown(lambda _, items: -order[items], None, dict), users)
    assert last.hit_rate == 0.0


@pytest.mark.parametrize(("goal", "side"), [("promote", 1), ("bury", -1)])
def test_targets_move_where_malicious_users_want_them(honest: Ratings, goal: Any, side: int) -> None:
    game = MeansGame(honest)
    figures = Promotion(goal=goal, share=0.2).perform(game).figures  # type: ignore[arg-type]
    rank, prediction = figures["target_rank"], figures["target_prediction"]
    assert None not in (rank.value, rank.baseline, prediction.value, prediction.baseline)
    assert side * (prediction.value - prediction.baseline) > 0.5  # type: ignore[operator]
    assert side * (rank.value - rank.baseline) < -3  # type: ignore[operator]
    assert {malicious.crafted for malicious in game.malicious} == {True, False}
    assert {malicious.users for malicious in game.malicious} == {50}


def test_damage_is_what_honest_users_lose(honest: Ratings) -> None:
    game = MeansGame(honest)
    reached = Damage(share=0.2).perform(game).figures  # type: ignore[arg-type]
    (malicious,) = game.malicious
    worse = game.with_malicious_users(malicious).accuracy["rmse"] - game.shown.accuracy["rmse"]
    assert reached["damage_rmse"].value == pytest.approx(worse)
    assert worse > 0.05
    assert reached["damage_ndcg"].value is None


@pytest.mark.parametrize(
    ("goal", "better", "worse"),
    [
        ("promote", Standing(0.3, 60, 3.0), Standing(0.0, 20, 4.0)),
        ("promote", Standing(0.3, 20, 3.0), Standing(0.3, 60, 4.0)),
        ("bury", Standing(0.0, 20, 4.0), Standing(0.3, 60, 3.0)),
        ("bury", Standing(0.0, 60, 4.0), Standing(0.0, 20, 3.0)),
    ],
)
def test_a_way_to_lie_is_judged_by_who_is_shown_a_target_and_then_by_its_place(
    goal: Any, better: Standing, worse: Standing
) -> None:
    attack = Promotion(goal=goal)
    assert attack._reached(better) > attack._reached(worse)
