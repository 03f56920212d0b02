"""What malicious users reach: they have items recommended or disappear, or make all that is shown worse.

**Promotion.** Malicious users have items recommended to people who would not be shown them, or have them
disappear. Targets are drawn among items that about as many users have rated as the median item. All malicious
users rate all of them, and are judged by honest users who have not.

**Damage.** Malicious users make what honest users are shown worse, whatever it is that they are shown. They
claim to have rated as many items as the most active users, drawn by popularity, and each of them as its
raters do not: lowest where its mean is above that of all ratings, and highest where it is below.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator, Field

from dprec.arrays import Floats, Ints
from dprec.attacks.base import Attack, Attacked, Figure, Game, Shown
from dprec.attacks.malicious import (
    FakeProfiles,
    Fillers,
    MaliciousUsers,
    number_of_malicious_users,
    targets_among,
)
from dprec.components import as_tuple, option
from dprec.predictions import Predict, PredictRows, Unrated, words_of_ties
from dprec.randomness import generator
from dprec.ratings import Ratings

_TRIED: tuple[Fillers, ...] = ("contrast", "active", "favourites", "profile-aware", "popular")
_TRIED_IN_SETS: tuple[Fillers, ...] = ("none", "contrast", "popular")

_CELLS = 1 << 21
"""Predictions at once."""

_FEW, _MANY = 100, 500
"""Honest users by whom fillers are compared, and by whom targets are judged at the end, at most."""

_LISTED = 10

_FIGURES = ("target_hit_rate_at_10", "target_rank", "target_prediction")

Shares = Annotated[tuple[Annotated[float, Field(ge=1e-4, lt=0.5)], ...], BeforeValidator(as_tuple)]


@dataclass(frozen=True, kw_only=True)
class Promotion(Attack):
    """Malicious users rate a few items as high or as low as they can; figures are of honest users."""

    kind: Literal["promotion"] = "promotion"
    papers: ClassVar[tuple[str, ...]] = ("cao2021", "lam2004", "mobasher2007")
    share: float = option("Share of all users who lie.", 0.05, gt=0, lt=0.5)
    shares: Shares = option(
        "Further shares of malicious users, for hit rate and rank by the share: with what moves the targets "
        "most at the main one. Each costs a run.",
        (),
    )
    goal: Literal["promote", "bury"] = option("Whether targets are rated highest or lowest.", "promote")
    targets: int = option("Items that are targets.", 3, ge=1, le=20)
    fillers: Literal[Fillers, "strongest"] = option(
        "Which other items malicious users claim to have rated, and how; by default what moves the targets "
        "most, since they can try it as well as we can.",
        "strongest",
    )
    reports: Literal["honest", "crafted", "strongest"] = option(
        "Whether devices draw what they report of these profiles, or malicious users choose it; by default, "
        "what moves more, since some servers believe what has the noise of honest devices more.",
        "strongest",
    )

    def figures(self) -> tuple[str, ...]:
        """Return the share of lists with a target, its rank, its prediction, and the first two by share."""
        by_share = (name for share in self._course for name in _by_share(share))
        return *_FIGURES, *dict.fromkeys(by_share)

    @property
    def _course(self) -> list[float]:
        """All shares of malicious users, ascending; none without further ones."""
        return sorted({*self.shares, self.share}) if self.shares else []

    def perform(self, game: Game) -> Attacked:
        """Run the protocol once more, with the malicious users, and compare what honest users are shown."""
        honest = game.truth
        targets = targets_among(honest, self.targets, generator(game.seed, "targets"))
        configured = () if self.fillers == "strongest" else (self.fillers,)
        fillers: tuple[Fillers, ...] = configured or (_TRIED_IN_SETS if honest.scale.implicit else _TRIED)
        ways = [Way(filler, self.reports != "honest") for filler in fillers]
        if self.reports == "strongest":
            ways += [Way(filler, False) for filler in configured or ("contrast",)]
        results = {way: self._lied(game, targets, way, self.share) for way in ways}
        few_users = np.linspace(0, honest.n_users - 1, min(_FEW, honest.n_users)).astype(np.int64)
        best = max(
            results, key=lambda way: self._reached(standing_of(targets, honest, results[way], few_users))
        )
        many_users = np.linspace(0, honest.n_users - 1, min(_MANY, honest.n_users)).astype(np.int64)
        before, after = (
            standing_of(targets, honest, shown, many_users) for shown in (game.shown, results[best])
        )
        number = number_of_malicious_users(honest.n_users, self.share)
        raters = ", ".join(str(np.count_nonzero(honest.items == target)) for target in targets)
        notes = (
            f"{number} malicious users beside {honest.n_users} honest ones; targets have {raters} raters.",
            f"Of {len(results)} ways: {best.fillers} fillers, {('honest', 'crafted')[best.crafted]} reports.",
        )
        figures = dict(zip(_FIGURES, map(Figure, after, before), strict=True))
        for share in self._course:
            again = share != self.share
            shown = self._lied(game, targets, best, share) if again else results[best]
            standing = standing_of(targets, honest, shown, many_users)
            figures |= zip(_by_share(share), map(Figure, standing, before), strict=False)
        return Attacked(figures, notes)

    def _reached(self, standing: "Standing") -> tuple[float, float]:
        """Return what ways to lie are compared by, the larger the better for the malicious users."""
        sign = 1.0 if self.goal == "promote" else -1.0
        return sign * standing.hit_rate, -sign * standing.rank

    def _lied(self, game: Game, targets: Ints, way: "Way", share: float) -> Shown:
        """Return what honest users are shown beside malicious users who lie in some way."""
        honest = game.truth
        level = honest.scale.levels if self.goal == "promote" else 1
        number, draws = (
            number_of_malicious_users(honest.n_users, share),
            generator(game.seed, "fake profiles"),
        )
        profiles = FakeProfiles(honest, targets, level, way.fillers).made(number, draws)
        return game.with_malicious_users(MaliciousUsers(profiles, way.crafted, tuple(targets.tolist())))


def _by_share(share: float) -> tuple[str, str]:
    """Return the names of hit rate and rank at a share of malicious users, in percent with _ for a point."""
    percent = f"{100 * share:.8f}".rstrip("0").rstrip(".").replace(".", "_")
    return f"target_hit_rate_at_10_at_{percent}_percent", f"target_rank_at_{percent}_percent"


class Way(NamedTuple):
    """A way to lie."""

    fillers: Fillers
    crafted: bool


class Standing(NamedTuple):
    """How honest users who have not rated targets see them: means over the targets; NaN if there are none."""

    hit_rate: float
    """Share of the users among whose ten best unrated items a target is."""
    rank: float
    """Median place of a target among the items that a user has not rated, from 1."""
    prediction: float
    """Mean prediction."""


def standing_of(targets: Ints, honest: Ratings, shown: Shown, users: Ints) -> Standing:
    """Return how some honest users see targets."""
    step, unrated, ties = max(1, _CELLS // honest.n_items), Unrated(honest), words_of_ties(honest.n_items)
    ranked_by = (shown.predict, shown.predict_rows) if shown.scores is None else (shown.scores, None)
    ranks, predictions = [np.zeros((0, targets.size), dtype=np.int64)], [np.zeros((0, targets.size))]
    for start in range(0, users.size, step):
        block = users[start : start + step]
        candidates = unrated(block)
        scores = _rows(*ranked_by, block, honest.n_items)
        predicted = scores[:, targets] if shown.scores is None else _cells(shown.predict, block, targets)
        scores = np.where(candidates, scores, -np.inf)
        # Before a target is what has a higher score, or the same and an earlier word.
        target_scores = scores[:, targets, None]
        earlier = (scores[:, None] == target_scores) & (ties < ties[targets, None])
        ranks.append(1 + ((scores[:, None] > target_scores) | earlier).sum(axis=2))
        predictions.append(np.where(candidates[:, targets], predicted, np.nan))
    places, predicted = np.concatenate(ranks), np.concatenate(predictions)
    is_candidate = ~np.isnan(predicted)
    by_target = [
        (places[mask, target], predicted[mask, target])
        for target, mask in enumerate(is_candidate.T)
        if mask.any()
    ]
    if not by_target:
        return Standing(np.nan, np.nan, np.nan)
    figures = [
        ((target_ranks <= _LISTED).mean(), np.median(target_ranks), target_predictions.mean())
        for target_ranks, target_predictions in by_target
    ]
    return Standing(*np.mean(figures, axis=0).tolist())


def _rows(predict: Predict, predict_rows: PredictRows | None, users: Ints, n_items: int) -> Floats:
    if predict_rows is not None:
        return predict_rows(users, n_items)
    return _cells(predict, users, np.arange(n_items))


def _cells(predict: Predict, users: Ints, items: Ints) -> Floats:
    return predict(np.repeat(users, items.size), np.tile(items, users.size)).reshape(users.size, items.size)


DAMAGED = {"damage_rmse": ("rmse", 1.0), "damage_ndcg": ("ndcg_at_10", -1.0)}
"""Of each figure, the metric that is damaged, and the way in which it gets worse."""


@dataclass(frozen=True, kw_only=True)
class Damage(Attack):
    """Malicious users rate many items opposite to those who do rate them."""

    kind: Literal["damage"] = "damage"
    papers: ClassVar[tuple[str, ...]] = ("cao2021",)
    named: ClassVar[tuple[str, ...]] = tuple(DAMAGED)
    share: float = option("Share of all users who lie.", 0.05, gt=0, lt=0.5)
    reports: Literal["honest", "crafted"] = option(
        "Whether devices draw what they report of these profiles, or malicious users choose it.", "crafted"
    )

    def perform(self, game: Game) -> Attacked:
        """Run the protocol once more, with malicious users, and compare how good it is for honest ones."""
        honest, draws = game.truth, generator(game.seed, "damaging profiles")
        number = number_of_malicious_users(honest.n_users, self.share)
        lies = FakeProfiles(honest, np.zeros(0, dtype=np.int64), 1, "reversed")
        profiles = lies.made(number, draws)
        with_malicious = game.with_malicious_users(
            MaliciousUsers(profiles, crafted=self.reports == "crafted")
        )
        figures = {}
        for name, (metric, side) in DAMAGED.items():
            accuracy, accuracy_with = game.shown.accuracy.get(metric), with_malicious.accuracy.get(metric)
            worse = None if accuracy is None or accuracy_with is None else side * (accuracy_with - accuracy)
            figures[name] = Figure(worse, 0.0)
        return Attacked(figures, (f"{number} malicious users beside {honest.n_users} honest ones.",))
