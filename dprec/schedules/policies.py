"""Policies of what is asked again: nothing, everything with fresh noise, or a report on a permanent answer.

With increments, every rating is answered once. Published policies ask in every collection about all ratings,
with a permanent answer on each.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from dprec.accounting import SMALLEST_DELTA, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Bools, places_of
from dprec.components import option
from dprec.mechanisms import BucketBits, LayeredMechanism, LocalHashing, TwoLayers
from dprec.randomness import even_share, public_words
from dprec.ratings import Ratings
from dprec.schedules.answers import PermanentAnswers, RepeatedAnswers
from dprec.schedules.base import Collection, Held, Schedule


@dataclass(frozen=True, kw_only=True)
class Layered(Schedule):
    """Base of the policies with a permanent answer about each rating and a report on it in every collection.

    The protocol's epsilon is that of the answer, and so of all reports on a rating that does not change. The
    policy has a mechanism of its own, in place of the protocol's.
    """

    on_changes: ClassVar[str]
    """What a change costs, as it is published."""

    @property
    @abstractmethod
    def mechanism(self) -> LayeredMechanism:
        """What devices apply to each rating."""

    @property
    def answers(self) -> PermanentAnswers:
        """The answers, on which devices draw their reports anew."""
        return PermanentAnswers(mechanism=self.mechanism)

    def accountant(self, collections: Sequence[Collection]) -> PrivacyAccountant:
        """Charge every answer once: of each collection, those that no earlier one had, and about changes."""
        answered, charged, changed = np.zeros_like(collections[0].counts), [], []
        for collection in collections:
            new = np.where(collection.sent, np.maximum(collection.counts - answered, 0), 0)
            charged.append(collection.family.accountant(new, new > 0))
            changed.append(
                collection.family.accountant(collection.again, collection.sent & (collection.again > 0))
            )
            answered += new
        every = [
            PrivacyAccountant.of_all(accountants, same_ratings=False) for accountants in (charged, changed)
        ]
        return PrivacyAccountant.of_all(every)

    def notes(self, collections: int) -> tuple[str, ...]:
        """Say what is permanent, and what a change would cost."""
        return (
            "Devices answer about each rating once, for good, and send another report on that answer in each "
            "collection: what a rating loses does not grow with their number, so long as it does not "
            f"change. {self.on_changes} That bounds what its values were; that it changed, and when, shows "
            "the better the more reports there are.",
        )


@dataclass(frozen=True, kw_only=True)
class TwoLayered(Layered):
    """Permanent and instantaneous randomised response about one bit, as in RAPPOR [erlingsson2014]."""

    kind: Literal["two-layers"] = "two-layers"
    on_changes: ClassVar[str] = "One that does has a second answer, and loses epsilon again."
    threshold: float | Literal["middle"] = option(
        "Least rating whose bit is 1; or middle, for the first level above the middle of the scale.", "middle"
    )
    first: float = option("What the first report loses, as a share of epsilon.", 0.5, gt=0, lt=1)

    @property
    def mechanism(self) -> TwoLayers:
        """The bit."""
        return TwoLayers(threshold=self.threshold, first=self.first)


@dataclass(frozen=True, kw_only=True)
class Loloha(Layered):
    """Permanent and instantaneous randomised response about hashed levels: LOLOHA [arcolezi2023]."""

    kind: Literal["loloha"] = "loloha"
    on_changes: ClassVar[str] = (
        "One that does loses epsilon for each of the numbers to which its levels were hashed."
    )
    hashed_to: int | None = option(
        "Numbers to which levels are mapped, g in the paper; 2 is BiLOLOHA, and by default the paper's "
        "optimum, up to 3.",
        None,
        ge=2,
        le=3,
    )
    first: float = option("What the first report loses, as a share of epsilon.", 0.5, gt=0, lt=1)

    @property
    def mechanism(self) -> LocalHashing:
        """The hashed level."""
        return LocalHashing(answers=self.hashed_to, first=self.first)


@dataclass(frozen=True, kw_only=True)
class DBitFlip(Layered):
    """Permanent answers about some buckets, repeated as they are: dBitFlipPM [ding2017]."""

    kind: Literal["d-bit-flip"] = "d-bit-flip"
    on_changes: ClassVar[str] = (
        "One that does loses epsilon for each pattern of true answers that it has had, at most one more than "
        "there are bits."
    )
    buckets: int = option("Buckets into which the scale is cut, of as many levels each: b.", 2, ge=2, le=8)
    bits: int = option("Buckets that are asked about: d.", 1, ge=1, le=4)

    @property
    def mechanism(self) -> BucketBits:
        """The bits."""
        return BucketBits(buckets=self.buckets, bits=self.bits)


@dataclass(frozen=True, kw_only=True)
class Fresh(Schedule):
    """Every collection asks about all ratings that devices hold, with fresh noise.

    The server reads all reports about a rating together; so can whoever wants to know the rating.
    """

    kind: Literal["fresh"] = "fresh"
    reads_ratings_alone: ClassVar[bool] = False
    every: int = option("Periods from one collection to the next.", 1, ge=1)
    budget: Literal["lifetime", "each"] = option(
        "Whether all collections share the epsilon of the protocol, or each of them costs it again.",
        "lifetime",
    )

    @property
    def periods_each(self) -> int:
        """Periods from one collection to the next."""
        return self.every

    def share(self, privacy: PrivacyBudget | None, collections: int) -> PrivacyBudget | None:
        """Return an even share, or the whole budget each time; delta is divided with the epsilon."""
        if privacy is None or self.budget == "each":
            return privacy
        composed = privacy.composition == "pld"
        delta = max(privacy.delta / collections, SMALLEST_DELTA) if composed else privacy.delta
        return replace(privacy, epsilon=even_share(privacy.epsilon, collections), delta=delta)

    def notes(self, collections: int) -> tuple[str, ...]:
        """Say what becomes of the epsilon."""
        if self.budget == "lifetime":
            return (
                f"Devices draw fresh noise in each of {collections} collections, which share the protocol's "
                "epsilon evenly.",
            )
        return (
            f"Devices draw fresh noise in each of {collections} collections at the protocol's whole epsilon: "
            "epsilons add up, those of users to less with a delta where noise composes, and whoever averages "
            "the reports about a rating comes to know it.",
        )


@dataclass(frozen=True, kw_only=True)
class Increments(Schedule):
    """Every collection asks about the ratings that have not been answered: each is answered once, ever.

    A rating loses epsilon once, whatever the horizon, and a user as much as it has answers.
    """

    kind: Literal["increments"] = "increments"
    draws_anew: ClassVar[bool] = False
    answers_per_user: int | None = option(
        "Ratings that a device answers about at most in its life, where changes are told up to twice; the "
        "others are reported as rated, and nothing is said of their values. By default, all.",
        None,
        ge=1,
    )
    choose: Literal["first", "sampled"] = option(
        "Which ratings these are: the first, or of each period's new ratings some drawn at random.", "first"
    )

    on_change: Literal["keep", "update"] = option(
        "Whether a rating that is changed is reported as it was first, or once more, at another epsilon; "
        "then it can be seen that it was changed.",
        "keep",
    )

    @property
    def answers(self) -> RepeatedAnswers:
        """The answer about a rating, which devices repeat whenever they are asked."""
        return RepeatedAnswers(on_change=self.on_change, answers_per_user=self.answers_per_user)

    def reported(self, held: Held) -> Bools:
        """Return the ratings that no report has shown, and what was changed."""
        return held.ratings & ~held.reported | self._changed(held)

    def _changed(self, held: Held) -> Bools:
        """Return which ratings are to be answered about once more."""
        changed: Bools = held.reported & (held.said > 0) & (held.said != held.known.levels)
        return changed if self.on_change == "update" else np.zeros_like(changed)

    def answering(self, held: Held) -> Bools:
        """Return the new ratings as far as a device has answers left, and those that it repeats."""
        new = held.ratings & ~held.reported
        if self.answers_per_user is None:
            return held.ratings
        ratings, repeated = held.periods.ratings, held.said > 0
        n_repeated = np.bincount(ratings.users[repeated], minlength=ratings.n_users)
        order = held.periods.order
        if self.choose == "sampled":
            order = np.lexsort((public_words(held.public_seed, ratings.users, ratings.items), ratings.users))
        order = order[(new & ~repeated)[order]]
        users = ratings.users[order]
        places = places_of(np.bincount(users, minlength=ratings.n_users))
        answered = repeated.copy()
        answered[order[places + n_repeated[users] < self.answers_per_user]] = True
        return answered

    def as_reported(self, held: Held) -> Ratings:
        """Return all ratings as they are, or as they were when they were first reported."""
        if self.on_change == "update" or held.periods.changes is None:
            return held.known
        return held.known.at_levels(held.said)

    def accountant(self, collections: Sequence[Collection]) -> PrivacyAccountant:
        """Charge every answer to its user, and one answer to each rating, or two where one was changed."""
        first = [
            collection.family.accountant(collection.counts - collection.again, collection.sent)
            for collection in collections
        ]
        once = PrivacyAccountant.of_all(first, same_ratings=False)
        if not any(collection.again.any() for collection in collections):
            return once
        second = [
            collection.family.accountant(collection.again, collection.sent) for collection in collections
        ]
        return PrivacyAccountant.of_all([once, PrivacyAccountant.of_all(second, same_ratings=False)])

    def notes(self, collections: int) -> tuple[str, ...]:
        """Say what is asked."""
        cap = "" if self.answers_per_user is None else f", and {self.answers_per_user} of a user's at most"
        once = (
            f"Each rating is answered once{cap}: what it loses does not grow with the number of "
            "collections. That a device reports tells in which period the user rated those items."
        )
        changed = (
            "A rating that is changed is answered once more, at another epsilon: whoever sees the reports "
            "sees that it was changed."
        )
        return (once, changed) if self.on_change == "update" else (once,)
