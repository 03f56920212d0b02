"""The best of this project's one-shot protocols at a budget, by a table.

benchmarks/choose_best.py holds the table against validation ratings. The size of the population needs no
column: the calibrated completion leaves factors out until the reports say enough about them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from dprec.completion.calibrated.completion import Calibrated
from dprec.completion.placement import Placement
from dprec.errors import SettingError
from dprec.mechanisms import (
    BitsAndCounts,
    FisherOptimal,
    HiddenThreshold,
    Mechanism,
    ResidualBits,
    UserLevelBit,
)
from dprec.options import option
from dprec.privacy.calibration import PrivacyBudget
from dprec.privacy.guarantee import Guarantee
from dprec.privacy.matched_budget import MatchedBudget
from dprec.ratings import Ratings
from dprec.setups import Setup
from simulation.protocols.accounting import budget_at
from simulation.protocols.base import Protocol
from simulation.protocols.one_shot import OneShotProtocol
from simulation.protocols.outcome import Outcome
from simulation.protocols.sent import Example, Sent
from simulation.protocols.task import Task

if TYPE_CHECKING:
    from flwr.serverapp import Grid

COUNTS_UP_TO = {"device": 0.15, "server": 0.9}
"""The largest epsilon per rating at which bits and counts serve a device or a server better than symbols."""

_FACTORS, _HIDDEN_SWEEPS = 5, 20
"""As in the presets of the protocols that are picked."""


@dataclass(frozen=True, kw_only=True)
class BestProtocol(Protocol):
    """The one-shot protocol that is best at the budget; it says which one that is, and why."""

    kind: Literal["best"] = "best"
    privacy: PrivacyBudget = option("What is promised.")
    predicts: Literal["device", "server"] = option("Who predicts.", "device")
    item_set: Literal["visible", "hidden"] = option(
        "Whether the server sees which items are rated.", "visible"
    )
    places: Placement = option("What devices that predict are sent of everybody's item sets.", Placement())

    @property
    def private(self) -> bool:
        """True."""
        return True

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that is picked."""
        if self.item_set == "hidden":
            return UserLevelBit() if self.privacy.per == "user" else HiddenThreshold()
        if self.privacy.per == "user":
            return ResidualBits()
        if self.privacy.epsilon <= COUNTS_UP_TO[self.predicts]:
            return BitsAndCounts()
        return FisherOptimal(histogram="netflix")

    @property
    def picked(self) -> OneShotProtocol:
        """The protocol that is picked."""
        plain = self.mechanism.hides_rated_items or self.mechanism.compares_ratings
        completion = Calibrated(histogram="netflix", factors=0 if plain else _FACTORS)
        if self.mechanism.hides_rated_items:
            completion = replace(completion, sweeps=_HIDDEN_SWEEPS)
        return OneShotProtocol(
            privacy=self.privacy,
            mechanism=self.mechanism,
            completion=completion,
            personalization="on-device" if self.predicts == "device" else "none",
            places=self.places,
        )

    @property
    def reason(self) -> str:
        """What is picked, and why, in a sentence."""
        most = COUNTS_UP_TO[self.predicts]
        who = "devices predict" if self.predicts == "device" else "the server predicts"
        reasons = {
            "hidden-threshold": "the set of rated items is hidden, so that every cell is reported",
            "user-level-bit": "whole profiles are protected, and the set of rated items is hidden",
            "residual-bits": "all values of a user are protected together, and the item set is seen",
            "bits-and-counts": f"{who}, and epsilon per rating is at most {most:g}",
            "fisher-optimal": "its symbols say most about a rating at any epsilon",
        }
        return f"Best picked {self.mechanism.kind}: {reasons[self.mechanism.kind]}."

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; where the item set is hidden, per rating means per cell."""
        hidden = self.item_set == "hidden" and budget.unit == "rating"
        return replace(self, privacy=budget_at(self.privacy, budget, "cell" if hidden else budget.unit))

    @property
    def mechanism_name(self) -> str:
        """Kind of the mechanism that is picked."""
        return self.picked.mechanism_name

    @property
    def completion_name(self) -> str:
        """Kind of the completion."""
        return self.picked.completion_name

    def check(self, train: Ratings) -> None:
        """Refuse a budget that no candidate can hold, and what the picked protocol refuses."""
        self._check_choices()
        self.picked.check(train)

    def _check_choices(self) -> None:
        if self.privacy.per == "cell" and self.item_set == "visible":
            raise SettingError(
                "item_set", "'visible', with a budget per cell", "'hidden', or per: rating or user"
            )
        if self.privacy.per == "user" and self.item_set == "visible" and self.predicts == "server":
            found = "'server', with a budget per user and the item set visible"
            raise SettingError("predicts", found, "'device', which knows its user's mean")

    def audited(self) -> Protocol:
        """Return the picked protocol for an audit."""
        self._check_choices()
        return self.picked.audited()

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise what the picked protocol does; refuse as `check` does."""
        self._check_choices()
        guarantee = self.picked.guarantee(shape)
        return replace(guarantee, notes=(*guarantee.notes, self.reason))

    def sent(self, example: Example) -> Sent | None:
        """Return the one report."""
        self._check_choices()
        return self.picked.sent(example)

    def setup(self) -> Setup:
        """Return the mechanism and the budget that are picked."""
        return self.picked.setup()

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the picked protocol."""
        outcome = self.picked.run(grid, task)
        notes = (*outcome.guarantee.notes, self.reason)
        return replace(outcome, guarantee=replace(outcome.guarantee, notes=notes))
