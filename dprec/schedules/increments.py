"""Every rating is answered once, ever."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.accounting import PrivacyAccountant
from dprec.arrays import Bools, places_of
from dprec.components import option
from dprec.exchange import MemoisedSetup, OneShotSetup
from dprec.randomness import public_words
from dprec.schedules.base import Collection, Held, Schedule


@dataclass(frozen=True, kw_only=True)
class Increments(Schedule):
    """Every collection asks about the ratings that have not been answered: each is answered once, ever.

    A rating loses epsilon once, whatever the horizon, and a user as much as it has answers.
    """

    kind: Literal["increments"] = "increments"
    draws_anew: ClassVar[bool] = False
    answers_per_user: int | None = option(
        "Answers that a device gives at most in its life; by default, one for each rating.", None, ge=1
    )
    choose: Literal["first", "sampled"] = option(
        "Which ratings these are: the first, or of each period's new ratings some drawn at random.", "first"
    )

    def installed(self, setup: OneShotSetup) -> MemoisedSetup:
        """Return a setup with which devices repeat the answer about a rating whenever they are asked."""
        return MemoisedSetup(
            mechanism=setup.mechanism,
            privacy=setup.privacy,
            predicts=setup.predicts,
            answers_per_user=self.answers_per_user,
        )

    def reported(self, held: Held) -> Bools:
        """Return the ratings without an answer, as far as a device still gives any."""
        new = held.ratings & ~held.answered
        if self.answers_per_user is None:
            return new
        ratings = held.periods.ratings
        given = np.bincount(ratings.users[held.answered], minlength=ratings.n_users)
        order = held.periods.order
        if self.choose == "sampled":
            order = np.lexsort((public_words(held.public_seed, ratings.users, ratings.items), ratings.users))
        order = order[new[order]]
        users = ratings.users[order]
        places = places_of(np.bincount(users, minlength=ratings.n_users))
        chosen = np.zeros(ratings.count, dtype=np.bool_)
        chosen[order[places + given[users] < self.answers_per_user]] = True
        return chosen

    def accountant(self, made: Sequence[Collection]) -> PrivacyAccountant:
        """Charge every answer to its user, and one answer to each rating."""
        return PrivacyAccountant.of_all(
            [each.family.accountant(each.counts, each.sent) for each in made], same_ratings=False
        )

    def notes(self, collections: int) -> tuple[str, ...]:
        """Say what is asked."""
        most = "" if self.answers_per_user is None else f", and {self.answers_per_user} of a user at most"
        return (
            f"Each rating is answered once{most}: what it loses does not grow with the number of "
            "collections. That a device reports tells in which period the user rated those items.",
        )
