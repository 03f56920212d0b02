"""What every schedule is: when devices are asked, about which ratings, and at what share of a budget.

A policy is a class derived from `Schedule`: one file, and one line in the registry. What it inherits is that
every collection asks about all ratings that devices hold, at the whole budget, with fresh noise, and that
losses compose. It redefines what differs: `reported`, which ratings devices report on; `share`, the budget of
one collection; `answers`, what devices remember of their answers, and by which mechanism they answer;
`joined`, how a server reads the reports of several collections together; `accountant`, what all of them cost.
`reads_ratings_alone` says that it has no meaning for other reports than those of single ratings. What a
user-defined policy costs is declared, unless it redefines only when the server asks and what it reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dprec.accounting import PrivacyAccountant, PrivacyBudget
from dprec.arrays import Bools, Ints, Uint8s
from dprec.components import Options, option
from dprec.observations import Observations
from dprec.ratings import Ratings
from dprec.reports import ReportFamily
from dprec.schedules.answers import Answers
from dprec.schedules.periods import ByPeriod, Periods


@dataclass(frozen=True, eq=False)
class Held:
    """What is known when a collection begins."""

    periods: Periods
    number: int
    """Of the collection, from 0."""
    period: int
    """The last one whose ratings devices hold."""
    reported: Bools
    """Ratings of which a report was accepted before; shape (ratings,)."""
    said: Uint8s
    """The level about which an answer was sent last, 0 for none; shape (ratings,)."""
    public_seed: int
    """Of what devices draw that protects nothing."""

    @property
    def ratings(self) -> Bools:
        """Which ratings devices hold; shape (ratings,)."""
        return self.periods.held(self.period)

    @cached_property
    def known(self) -> Ratings:
        """All ratings, as devices hold them."""
        return self.periods.known(self.period)


@dataclass(frozen=True, eq=False)
class Collection:
    """What came of a collection."""

    number: int
    """From 0."""
    family: ReportFamily
    """What devices reported."""
    counts: Ints
    """Ratings that each user's device answered about; shape (users,)."""
    again: Ints
    """How many of them it had answered about before, at other levels; shape (users,)."""
    sent: Bools
    """Whose report arrived; shape (users,)."""
    observations: Observations
    """What the accepted reports say."""


@dataclass(frozen=True, kw_only=True)
class Schedule(Options):
    """Base of the schedules: collections at the ends of periods, in which ratings are made."""

    kind: str = ""
    # What is asked when, by which protocol, and what that costs, are the word of who defines it anew.
    without_loss: ClassVar[frozenset[str] | None] = frozenset(
        {"papers", "notes", "joined", "remembered", "periods_each", "division", "periods"}
    )
    reads_ratings_alone: ClassVar[bool] = True
    draws_anew: ClassVar[bool] = True
    """Whether devices draw other noise in every collection."""
    days: float = option("Days of a period.", 7.0, gt=0, le=36_500)
    collections: int | None = option("How many there are; by default, as many as the data have.", None, ge=1)
    refresh: int = option("Collections after which the server sends what it has learned.", 1, ge=1)
    forget_after: int | None = option(
        "Collections after which the server drops reports; by default never.", None, ge=1
    )
    leave_after: int | None = option(
        "Periods without a rating after which a user is neither asked nor sent anything until the next one; "
        "what was reported stays. By default never; only where reports are of single ratings.",
        None,
        ge=1,
    )

    @property
    def periods_each(self) -> int:
        """Periods from one collection to the next."""
        return 1

    @property
    def division(self) -> ByPeriod:
        """How ratings are divided."""
        most = None if self.collections is None else self.collections * self.periods_each + 1
        return ByPeriod(days=self.days, most=most)

    def periods(self, ratings: Ratings, later: Ratings | None = None) -> Periods:
        """Return the periods of ratings that `division` has divided, given what is rated once more."""
        return Periods.of(ratings, self.days, later=later)

    def horizon(self, periods: Periods) -> int:
        """Return the number of collections."""
        return -(-(periods.count - 1) // self.periods_each)

    def share(self, privacy: PrivacyBudget | None, collections: int) -> PrivacyBudget | None:
        """Return the budget of each of so many collections."""
        return privacy

    @property
    def answers(self) -> Answers | None:
        """What devices remember of their answers, in place of what the protocol says; by default nothing."""
        return None

    def reported(self, held: Held) -> Bools:
        """Return on which ratings devices report, shape (ratings,)."""
        return held.ratings

    def answering(self, held: Held) -> Bools:
        """Return about which of these they say anything, shape (ratings,); the others they only show."""
        return held.ratings

    def as_reported(self, held: Held) -> Ratings:
        """Return all ratings as devices report on them."""
        return held.known

    def joined(self, collections: Sequence[Collection]) -> Observations:
        """Return what all reports of some collections say, the last ones of a schedule."""
        return collections[-1].family.together(
            Observations.joined([collection.observations for collection in collections])
        )

    def remembered(self, collections: Sequence[Collection], number: int) -> Sequence[Collection]:
        """Return the collections that the server has not forgotten in the one of a number."""
        last = -1 if self.forget_after is None else number - self.forget_after
        return [collection for collection in collections if collection.number > last]

    def accountant(self, collections: Sequence[Collection]) -> PrivacyAccountant:
        """Return what was released about everybody in all collections: by default, all of it composes."""
        return PrivacyAccountant.of_all(
            [collection.family.accountant(collection.counts, collection.sent) for collection in collections]
        )

    def notes(self, collections: int) -> tuple[str, ...]:
        """Return what a reader of the figures must know."""
        return ()
