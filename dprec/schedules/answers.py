"""What devices remember of their answers from one collection to the next, as a schedule has it.

The words of an answer that is remembered are bound to the device's secret, to mechanism, budget and scale, to
the item and to its value: to no run, and to no other rating. So the same value is answered alike without
anything being stored. About another value of the same item the answer is independent, at another epsilon.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dprec.accounting import PrivacyBudget
from dprec.components import Options, one_of_classes, option
from dprec.errors import SettingError
from dprec.mechanisms import BucketBits, LayeredMechanism, LocalHashing, Mechanism, TwoLayers
from dprec.ratings import RatingScale
from dprec.reports import CellFamily, PartlyAnsweredFamily, ReportFamily
from dprec.reports.layers import PERMANENT

if TYPE_CHECKING:
    AnyLayered = LayeredMechanism
else:
    AnyLayered = one_of_classes((TwoLayers, LocalHashing, BucketBits), LayeredMechanism)


@dataclass(frozen=True, kw_only=True)
class Answers(Options):
    """Base of what is remembered."""

    kind: str = ""

    @property
    def per_rating(self) -> int:
        """Levels of one rating about which a device answers, at most, at the budget each."""
        return 1

    @abstractmethod
    def check(self, mechanism: Mechanism, privacy: PrivacyBudget | None) -> None:
        """Refuse what does not suit it; raises SettingError under the protocol's keys."""

    @abstractmethod
    def remembers(self, purpose: str) -> bool:
        """Return whether the words for a purpose are the same in every run."""

    def applied(self, mechanism: Mechanism) -> Mechanism:
        """Return what devices apply to each rating, given the protocol's mechanism."""
        return mechanism

    def family(
        self, mechanism: Mechanism, privacy: PrivacyBudget | None, scale: RatingScale, n_items: int
    ) -> ReportFamily:
        """Return what devices report."""
        return self.applied(mechanism).family(privacy, scale, n_items)


@dataclass(frozen=True, kw_only=True)
class RepeatedAnswers(Answers):
    """Devices answer about each rating once, and repeat that answer in whichever run they are asked."""

    kind: Literal["repeated"] = "repeated"
    on_change: Literal["keep", "update"] = option(
        "Whether a rating that was changed is answered as it was first, or once more, at another epsilon; "
        "then it can be seen that it was changed.",
        "keep",
    )
    answers_per_user: int | None = option(
        "Ratings that a device answers about, ever; the others are reported as rated, without an answer. All "
        "by default.",
        None,
        ge=1,
    )

    def check(self, mechanism: Mechanism, privacy: PrivacyBudget | None) -> None:
        """Refuse reports whose answers are not about one rating each, at an epsilon of its own."""
        family, kind = mechanism.report_family, mechanism.kind
        if not family.of_single_ratings() or family.asks_further:
            accepted = "a mechanism that answers once about each rated item, by itself"
            raise SettingError("mechanism", f"{kind}, repeated in every run", accepted)
        if privacy is not None and privacy.own:
            found = "several, where answers are repeated in every run"
            raise SettingError("privacy.epsilon", found, "one number")
        if privacy is not None and privacy.per != "rating":
            found = f"{privacy.per!r}, where answers are repeated in every run"
            raise SettingError("privacy.per", found, "'rating': a share of a profile changes as it grows")
        if self.shows_all and family is not CellFamily:
            accepted = "a mechanism that sends a symbol for each rated item and nothing else"
            raise SettingError("mechanism", f"{kind}, with a cap on answers", accepted)

    @property
    def per_rating(self) -> int:
        """One, ever, or two where a change is answered."""
        return 2 if self.on_change == "update" else 1

    @property
    def shows_all(self) -> bool:
        """Whether ratings that are not answered about are reported as rated all the same."""
        return self.answers_per_user is not None

    def remembers(self, purpose: str) -> bool:
        """Return True: with another mechanism, budget or scale, answers are independent, and cost anew."""
        return True

    def family(
        self, mechanism: Mechanism, privacy: PrivacyBudget | None, scale: RatingScale, n_items: int
    ) -> ReportFamily:
        """Return the family of the mechanism, or one of reports in which an answer may be missing."""
        if self.shows_all:
            return PartlyAnsweredFamily(mechanism, privacy, scale, n_items)
        return mechanism.family(privacy, scale, n_items)


@dataclass(frozen=True, kw_only=True)
class PermanentAnswers(Answers):
    """Devices answer about each rating for good, and send another report on that answer in every run."""

    kind: Literal["permanent"] = "permanent"
    mechanism: AnyLayered = option("What the device applies to each rating, in place of the protocol's.")

    def check(self, mechanism: Mechanism, privacy: PrivacyBudget | None) -> None:
        """Refuse a budget that is not for one answer."""
        if privacy is None or privacy.per != "rating" or privacy.own:
            budgets = "several" if privacy and privacy.own else "one per user or cell"
            found = f"{budgets if privacy else 'none'}, where answers are permanent"
            accepted = "one per rating, such as --set 'protocol.privacy={epsilon: 1, per: rating}'"
            raise SettingError("privacy", found, accepted)

    def remembers(self, purpose: str) -> bool:
        """Return whether they are the words of answers; those of a report are its run's."""
        return purpose == PERMANENT

    def applied(self, mechanism: Mechanism) -> Mechanism:
        """Return the mechanism of two layers."""
        return self.mechanism


if TYPE_CHECKING:
    AnyAnswers = Answers
else:
    AnyAnswers = one_of_classes((RepeatedAnswers, PermanentAnswers), Answers)
