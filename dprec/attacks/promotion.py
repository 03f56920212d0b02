"""Promotion: liars have items recommended to people who would not be shown them, or have them disappear.

Targets are drawn among items that about as many users have rated as the median item. All liars rate all of
them, and are judged by honest users who have not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Bools, Floats, Ints, Uint64s
from dprec.attacks.base import Attack, Attacked, Figure, Game, Shown
from dprec.attacks.liars import Background, FakeProfiles, Fillers, Liars, number_of_liars
from dprec.components import option
from dprec.predictions import Predict, PredictRows, Unrated, words_of_ties
from dprec.randomness import generator
from dprec.ratings import Ratings

_CELLS_AT_ONCE = 1 << 23

_MOST_USERS = 20_000
"""By whom targets are judged, at most: the first ones."""

_LISTED = 10


@dataclass(frozen=True, kw_only=True)
class Promotion(Attack):
    """Liars rate a few items as high or as low as they can; every figure is about honest users."""

    kind: Literal["promotion"] = "promotion"
    papers: ClassVar[tuple[str, ...]] = ("cao2021", "lam2004")
    share: float = option("Share of all users who lie.", 0.05, gt=0, lt=0.5)
    goal: Literal["promote", "bury"] = option("Whether targets are rated highest or lowest.", "promote")
    targets: int = option("Items that are targets.", 3, ge=1, le=100)
    fillers: Fillers = option("Which other items liars claim to have rated, and how.", "opposite")
    reports: Literal["honest", "crafted"] = option(
        "Whether devices draw what they report of these profiles, or liars choose it.", "crafted"
    )

    def figures(self) -> tuple[str, ...]:
        """Return the share of lists with a target, its rank, and its prediction."""
        return "target_hit_rate_at_10", "target_rank", "target_prediction"

    def perform(self, game: Game) -> Attacked:
        """Run the protocol once more, with the liars, and compare what honest users are shown."""
        honest = game.truth
        draws = generator(game.seed, "promotion")
        background = Background.of(honest)
        targets = background.targets(self.targets, draws)
        level = honest.scale.levels if self.goal == "promote" else 1
        number = number_of_liars(honest.n_users, self.share)
        profiles = FakeProfiles(background, targets, level, self.fillers).made(honest, number, draws)
        lied = game.with_liars(Liars(profiles, crafted=self.reports == "crafted"))
        before = seen_of(targets, honest, game.shown)
        after = seen_of(targets, honest, lied)
        raters = ", ".join(map(str, background.raters[targets].tolist()))
        note = f"{number} liars beside {honest.n_users} honest users; raters of the targets: {raters}."
        figures = {name: Figure(after[name], before[name]) for name in self.figures()}
        return Attacked(figures, (note,))


def seen_of(targets: Ints, honest: Ratings, shown: Shown) -> dict[str, float | None]:
    """Return how honest users who have not rated targets see them; means over the targets, by figure.

    A rank is the place of a target among all items that a user has not rated, from 1.
    """
    users = np.arange(min(honest.n_users, _MOST_USERS))
    step, unrated, ties = (
        max(1, _CELLS_AT_ONCE // honest.n_items),
        Unrated(honest),
        words_of_ties(honest.n_items),
    )
    ranks, predictions = [], []
    for start in range(0, users.size, step):
        asked = users[start : start + step]
        candidates = unrated(asked)
        predicted = _rows(shown.predict, shown.predict_rows, asked, honest.n_items)
        scores = predicted if shown.scores is None else _rows(shown.scores, None, asked, honest.n_items)
        scores = np.where(candidates, scores, -np.inf)
        ranks.append(np.stack([_ranks(scores, int(target), ties) for target in targets], axis=1))
        predictions.append(np.where(candidates, predicted, np.nan)[:, targets])
    places, predicted = np.concatenate(ranks), np.concatenate(predictions)
    judged = ~np.isnan(predicted)
    own = [places[judged[:, place], place] for place in range(targets.size) if judged[:, place].any()]
    if not own:
        return dict.fromkeys(("target_hit_rate_at_10", "target_rank", "target_prediction"))
    return {
        "target_hit_rate_at_10": float(np.mean([(each <= _LISTED).mean() for each in own])),
        "target_rank": float(np.mean([np.median(each) for each in own])),
        "target_prediction": float(np.nanmean(np.nanmean(predicted, axis=0))),
    }


def _rows(predict: Predict, predict_rows: PredictRows | None, users: Ints, n_items: int) -> Floats:
    if predict_rows is not None:
        return predict_rows(users, n_items)
    cells = np.repeat(users, n_items), np.tile(np.arange(n_items), users.size)
    return predict(*cells).reshape(users.size, n_items)


def _ranks(scores: Floats, target: int, ties: Uint64s) -> Ints:
    """Return the rank of a target for each user, shape (users,)."""
    own = scores[:, target, None]
    before: Bools = (scores > own) | ((scores == own) & (ties < ties[target]))
    ranks: Ints = 1 + before.sum(axis=1)
    return ranks
