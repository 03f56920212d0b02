"""What protocols share: budgets that are matched, what they refuse, and phrases of their guarantees."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dprec.accounting import Adjacency, MatchedBudget, PrivacyBudget, PrivacyUnit
from dprec.arrays import Bools, Uint8s
from dprec.completion import Completion
from dprec.components import Options, option
from dprec.errors import SettingError, within
from dprec.mechanisms import Mechanism
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportFamily

if TYPE_CHECKING:
    from dprec.protocols.base import Public

EXACT_CHANNEL = (
    "epsilon is the largest log ratio of a channel's rows, counted in the same integer weights with which "
    "devices choose what they send"
)
"""Why the loss of a channel is proved."""

COMPARED = (
    "What epsilon compares: a user's profile with none, that of one who takes part and holds nothing, or "
    "with any other, which takes {} noise."
)
"""What `adjacency` is for, with how much more noise the second takes."""

GUARD = (
    "Against what share of the users lists are guarded, who may lie to promote items; null for none. Lists "
    "are then ranked by the least that items may be worth; predictions stay as they are."
)
"""What the setting means, for every protocol that has it."""

MAX_BYTES_DOWN = (
    "Most bytes of what devices are sent to predict from; by default as many as its noise is worth. To fit, "
    "numbers are rounded to longer steps, and a table of items has fewer of them."
)
"""What the setting means, for every protocol that has it."""


class Completes:
    """What protocols share whose servers complete a matrix."""

    completion: Completion

    def model_bytes(self, public: Public) -> float:
        """Return that of the completion; see `Protocol.model_bytes`."""
        return self.completion.model_bytes(public.n_users, public.n_items)


class Limited(typing.Protocol):
    """What devices are sent to predict from, which can be made to fit a number of bytes."""

    def encode(self) -> bytes:
        """Return the bytes."""

    def within(self, most: int | None) -> Limited:
        """Return it in at most so many bytes."""


def note_on_limit(max_bytes: int | None, model: Limited) -> tuple[str, ...]:
    """Say what a limit costs that is put to what devices are sent; nothing where it costs nothing."""
    if max_bytes is None:
        return ()
    needed, sent = len(model.encode()), len(model.within(max_bytes).encode())
    if sent == needed:
        return ()
    return (
        f"Devices are sent {sent:,} bytes to predict from, in place of {needed:,} (max_bytes_down: "
        f"{max_bytes:,}): {sent / needed:.0%} of the bits that their noise is worth.",
    )


@dataclass(frozen=True, kw_only=True)
class TopN(Options):
    """Each user gets the best items that the server has not seen as rated, with their predicted ratings."""

    items: int = option("Length of the list.", 10, ge=1, le=10_000)


DELIVERY = (
    "What users are sent where the server predicts: a list of the best items, or null for nothing. Papers do "
    "not say."
)
"""What the setting means, for every protocol that has it."""


def budget_at(
    privacy: PrivacyBudget | None, budget: MatchedBudget, per: PrivacyUnit, *, composes: bool = True
) -> PrivacyBudget:
    """Return a protocol's own budget with the epsilon, and the delta if there is one, of another.

    Raises SettingError where users choose their own epsilons.
    """
    if privacy is not None and privacy.own:
        found = f"shares of the users by epsilon, with {budget.epsilon:g} for everybody"
        raise SettingError("privacy.epsilon", found, "one number, or no epsilons that all are matched at")
    changes: dict[str, Any] = {"epsilon": budget.epsilon, "per": per}
    if budget.delta is not None and per == "user":
        changes |= {"composition": "pld", "delta": budget.delta} if composes else {"composition": "sum"}
    with within("privacy"):
        return PrivacyBudget(**changes) if privacy is None else replace(privacy, **changes)


def chosen_epsilons(
    privacy: PrivacyBudget | None, people: Ratings, seed: int, malicious: int = 0
) -> Uint8s | None:
    """Return the number of every user's epsilon, which only a simulation knows; None if all have the same.

    ``malicious``: so many of the people, the last ones, choose the largest, which serves them best.
    """
    if privacy is None or not privacy.own:
        return None
    honest = np.arange(people.n_users - malicious)
    numbers = privacy.chosen(people.counts[honest], people.user_means(honest), seed)
    return np.append(numbers, np.full(malicious, len(privacy.epsilons) - 1, dtype=np.uint8))


def refusing(privacy: PrivacyBudget | None, numbers: Uint8s | None) -> Bools | None:
    """Return who has chosen 0 and sends nothing, shape (users,); None where nobody chooses."""
    if privacy is None or numbers is None:
        return None
    refuses: Bools = np.array(privacy.epsilons)[numbers] == 0
    return refuses


def compared_in_words(adjacency: Adjacency, between: float) -> str:
    """Say what epsilon compares, and what it is between any two profiles; infinite if none is proved."""
    if adjacency == "replace-one":
        return "Epsilon compares any two profiles of a user."
    proved = f"it is {between:.4g}" if math.isfinite(between) else "none is proved"
    return (
        "Epsilon compares a user's profile with none, that of one who takes part and holds nothing; between "
        f"any two profiles {proved}."
    )


def mechanism_budget(
    mechanism: Mechanism, privacy: PrivacyBudget | None, budget: MatchedBudget
) -> PrivacyBudget:
    """Return the budget of a mechanism, for what its family of reports can promise."""
    family = mechanism.report_family
    return budget_at(privacy, budget, family.matched_unit(budget.unit), composes=family.composes)


def cell_reports(
    mechanism: Mechanism, privacy: PrivacyBudget | None, scale: RatingScale, n_items: int
) -> ReportFamily:
    """Return what a mechanism reports by cell; raises SettingError for another, or for its budget."""
    if not mechanism.report_family.by_cell:
        accepted = "a mechanism that treats each rating by itself, or protocol one-shot"
        raise SettingError("mechanism", mechanism.kind, accepted)
    return mechanism.family(privacy, scale, n_items)


def check_private(mechanism: Mechanism) -> None:
    """Refuse to audit a mechanism that promises nothing."""
    if not mechanism.private:
        promise = f"{mechanism.kind!r}, which promises nothing"
        raise SettingError("mechanism.kind", promise, "a private mechanism")


def check_unit(privacy: PrivacyBudget, accepted: PrivacyUnit, reason: str) -> None:
    """Refuse a budget in a unit other than the one that a protocol can promise."""
    if privacy.per != accepted:
        raise SettingError("privacy.per", repr(privacy.per), f"{accepted!r}: {reason}")
