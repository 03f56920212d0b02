"""What the protocols share: matched budgets, what they refuse, and notes on failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dprec.accounting import MatchedBudget, PrivacyBudget, PrivacyUnit
from dprec.errors import SettingError, within
from dprec.mechanisms import Mechanism
from strategies.participation import RoundRecord

EXACT_CHANNEL = (
    "epsilon is the largest log ratio of a channel's rows, counted in the same integer weights with which "
    "devices choose what they send"
)
"""Why the loss of a channel is proved."""

_FAULTS = ("absent", "late", "malformed")
"""Causes of failures that are no refusals."""


def budget_at(
    privacy: PrivacyBudget | None, budget: MatchedBudget, per: PrivacyUnit, *, composes: bool = True
) -> PrivacyBudget:
    """Return a protocol's own budget with the epsilon, and the delta if there is one, of another.

    Parameters
    ----------
    privacy : PrivacyBudget or None
        The protocol's own.
    per : {"rating", "cell", "user"}
        What the protocol promises it for.
    composes : bool
        Whether the draws about a user can share a budget by composition.
    """
    own: dict[str, Any] = {"epsilon": budget.epsilon, "per": per}
    if budget.delta is not None and per == "user":
        own |= {"composition": "pld", "delta": budget.delta} if composes else {"composition": "sum"}
    with within("privacy"):
        return PrivacyBudget(**own) if privacy is None else replace(privacy, **own)


def mechanism_budget(
    mechanism: Mechanism, privacy: PrivacyBudget | None, budget: MatchedBudget
) -> PrivacyBudget:
    """Return the budget of a mechanism; if it hides the rated items, per rating means per cell.

    A mechanism that compares a user's ratings promises the same per user and per rating.
    """
    per: PrivacyUnit = budget.unit
    if mechanism.compares_ratings:
        per = "user"
    elif mechanism.hides_rated_items and per == "rating":
        per = "cell"
    return budget_at(privacy, budget, per, composes=mechanism.composes)


def check_private(mechanism: Mechanism) -> None:
    """Refuse to audit a mechanism that promises nothing.

    Raises
    ------
    SettingError
    """
    if not mechanism.private:
        promise = f"{mechanism.kind!r}, which promises nothing"
        raise SettingError("mechanism.kind", promise, "a private mechanism")


def check_unit(privacy: PrivacyBudget, accepted: PrivacyUnit, reason: str) -> None:
    """Refuse a budget in a unit other than the one that a protocol can promise.

    Raises
    ------
    SettingError
    """
    if privacy.per != accepted:
        raise SettingError("privacy.per", repr(privacy.per), f"{accepted!r}: {reason}")


def notes_on_failures(records: Sequence[RoundRecord], reports: str = "reports") -> tuple[str, ...]:
    """Note how many of the requested reports could not be used; empty if all could.

    Parameters
    ----------
    reports : str
        What was requested, in the plural.
    """
    failures = sum(record.failures for record in records)
    asked = failures + sum(record.replies for record in records)
    if not failures:
        return ()
    notes = (f"{failures} of {asked} {reports} were missing, late or malformed and were not used.",)
    refusals = sum((Counter(record.causes) for record in records), Counter[str]())
    refused = [f"{count} {cause}" for cause, count in sorted(refusals.items()) if cause not in _FAULTS]
    return (*notes, f"Devices refused to send {reports}: {', '.join(refused)}.") if refused else notes
