"""Which level a rating has, and on which side of the scale's middle it is, from the reports about it.

The adversary is the server. It knows how all other users rate the item, the worst case of public statistics,
multiplies the shares of the levels by the likelihoods of what it received, and names what is likeliest. It
may also read what the user's other reports say of how the user rates. There is no bound: a loss per rating
says nothing of what is known of a rating without the report on it, and that may be everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dprec.arrays import Bools, Floats, Ints
from dprec.attacks.background import Background, parts_by_user
from dprec.attacks.base import Attack, Attacked, Figure, Game
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
        sides = above_the_middle(truth.scale)
        tally = np.zeros((2, 2))
        for part, before, known, likelihoods in self._known(game):
            levels = truth.levels[part].astype(np.int64) - 1
            for place, merged in enumerate((np.eye(sides.size), _merging(sides))):
                right, after = merged.argmax(axis=1)[levels], (known * likelihoods) @ merged
                tally[:, place] += _right(before @ merged, right), _right(after, right)
        baselines, reached = tally / truth.count
        figures = {
            name: Figure(1.0 if trusted else float(reached[place]), float(baselines[place]))
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


def _merging(high: Bools) -> Floats:
    """Return what adds up the shares of levels on both sides, shape (levels, 2)."""
    return np.stack([~high, high], axis=1).astype(np.float64)


def above_the_middle(scale: RatingScale) -> Bools:
    """Return which levels are above the middle of the scale, shape (levels,)."""
    return scale.values > (scale.low + scale.high) / 2
