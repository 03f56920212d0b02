"""Which level a rating has, and on which side of the scale's middle it is, from the reports about it.

The adversary is the server. It knows how all other users rate the item, the worst case of public statistics,
multiplies the shares of the levels by the likelihoods of what it received, and names what is likeliest: no
other guess is right more often. It may also read what the user's other reports say of how the user rates. A
loss per rating does not cover that, so the bound is conditional on it: no report on this rating, at its loss,
would tell more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dprec.arrays import Bools, Floats, Ints
from dprec.attacks.background import Background, parts_by_user
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import allowed_by_chance, allowed_guess
from dprec.attacks.readings import readings
from dprec.components import option
from dprec.ratings import RatingScale

TRUSTED = "The server is given the ratings as they are."
_LEAST = 1e-300
_NO_LEVELS = "There are no levels to recover."


@dataclass(frozen=True, kw_only=True)
class Reconstruction(Attack):
    """Level and sign of every rating, from the reports about it."""

    kind: Literal["reconstruction"] = "reconstruction"
    background: Literal["items", "users"] = option(
        "What is known beside the reports about a rating: how others rate the item, or also what its user's "
        "other reports say of how the user rates.",
        "users",
    )

    def figures(self) -> tuple[str, ...]:
        """Return the names of the shares of ratings whose level, and whose sign, is guessed right."""
        return "recovered_level", "recovered_sign"

    def perform(self, game: Game) -> Attacked:
        """Guess all ratings; see `Attack`."""
        truth, trusted = game.truth, game.transcript.trusted
        if truth.scale.levels < 2 or not truth.count:
            return Attacked({name: Figure(None) for name in self.figures()}, (_NO_LEVELS,))
        losses, delta = losses_of_ratings(game)
        sides = above_the_middle(truth.scale)
        tally = np.zeros((4, 2))
        for part, before, known, likelihoods in self._known(game):
            levels = truth.levels[part].astype(np.int64) - 1
            for place, merged in enumerate((np.eye(sides.size), _merging(sides))):
                right, after = merged.argmax(axis=1)[levels], (known * likelihoods) @ merged
                tally[:2, place] += _right(before @ merged, right), _right(after, right)
                tally[2:, place] += _allowed(known @ merged, right, losses[truth.users[part]], delta)
        shares = tally / truth.count
        proved = bool(np.isfinite(losses).any()) and not trusted
        figures = {
            name: Figure(
                1.0 if trusted else float(shares[1, place]),
                float(shares[0, place]),
                _bound(shares[:, place], truth.count) if proved else None,
            )
            for place, name in enumerate(self.figures())
        }
        return Attacked(figures, (TRUSTED,) if trusted else ())

    def _known(self, game: Game) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
        """Yield consecutive ratings with shares of levels, and the likelihoods of what is said of each.

        The shares are those before anything is received, and given what is not about the rating itself.
        """
        truth, told = game.truth, readings(game.transcript, game.truth)
        background = Background.of(truth)
        for users, part in parts_by_user(truth):
            before = background.of_ratings(truth.items[part], truth.levels[part])
            likelihoods = np.ones_like(before)
            for reading in told:
                likelihoods = np.maximum(likelihoods * reading.likelihoods(part), _LEAST)
            known = before
            if told and self.background == "users":
                known = background.given_others(before, likelihoods, truth.counts[users])
            yield part, before, known, likelihoods


def _right(shares: Floats, truth: Ints) -> int:
    """Return how many inputs are guessed right."""
    return int((shares.argmax(axis=1) == truth).sum())


def _allowed(shares: Floats, truth: Ints, losses: Floats, delta: float) -> tuple[float, float]:
    """Return how many are guessed right of what tells most, in the mean, and the variance of that."""
    allowed = allowed_guess(shares, losses, delta, truth)
    return float(allowed.sum()), float((allowed * (1 - allowed)).sum())


def _bound(tally: Floats, count: int) -> float:
    """Return what chance adds to what is allowed, at least the baseline, given the tally of a rating."""
    baseline, _, allowed, variance = tally.tolist()
    return allowed_by_chance(max(baseline, allowed), variance / count)


def _merging(high: Bools) -> Floats:
    """Return what adds up the shares of levels on both sides, shape (levels, 2)."""
    return np.stack([~high, high], axis=1).astype(np.float64)


def above_the_middle(scale: RatingScale) -> Bools:
    """Return which levels are above the middle of the scale, shape (levels,)."""
    return scale.values > (scale.low + scale.high) / 2


def losses_of_ratings(game: Game) -> tuple[Floats, float]:
    """Return every user's proved loss by one rating, shape (users,), and the delta with which it holds."""
    per_rating = np.nan_to_num(game.accountant.get_epsilon(0.0, "rating"), nan=0.0, posinf=np.inf)
    if np.isfinite(per_rating).all():
        return per_rating, 0.0
    return np.minimum(per_rating, game.accountant.between_profiles(game.delta)), game.delta
