"""Published policies: every collection asks about all ratings, with a permanent answer on each."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.accounting import PrivacyAccountant
from dprec.components import option
from dprec.mechanisms import BucketBits, LayeredMechanism, LocalHashing, TwoLayers
from dprec.schedules.answers import PermanentAnswers
from dprec.schedules.base import Collection, Schedule


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

    def accountant(self, made: Sequence[Collection]) -> PrivacyAccountant:
        """Charge every answer once: of each collection, those that no earlier one had, and about changes."""
        answered, charged, changed = np.zeros_like(made[0].counts), [], []
        for each in made:
            new = np.where(each.sent, np.maximum(each.counts - answered, 0), 0)
            charged.append(each.family.accountant(new, new > 0))
            changed.append(each.family.accountant(each.again, each.sent & (each.again > 0)))
            answered += new
        every = [PrivacyAccountant.of_all(each, same_ratings=False) for each in (charged, changed)]
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
