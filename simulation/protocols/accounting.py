"""What the protocols share: matched budgets, what they refuse, and notes on failures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dprec.accounting import MatchedBudget, PrivacyBudget, PrivacyUnit
from dprec.errors import SettingError, within
from dprec.mechanisms import Mechanism
from dprec.ratings import RatingScale
from dprec.reports import ReportFamily
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
    """Return a protocol's own budget with the epsilon, and the delta if there is one, of another."""
    own: dict[str, Any] = {"epsilon": budget.epsilon, "per": per}
    if budget.delta is not None and per == "user":
        own |= {"composition": "pld", "delta": budget.delta} if composes else {"composition": "sum"}
    with within("privacy"):
        return PrivacyBudget(**own) if privacy is None else replace(privacy, **own)


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


def notes_on_failures(records: Sequence[RoundRecord], reports: str = "reports") -> tuple[str, ...]:
    """Note how many of the requested reports, in the plural, could not be used; empty if all could."""
    failures = sum(record.failures for record in records)
    asked = failures + sum(record.replies for record in records)
    if not failures:
        return ()
    notes = (f"{failures} of {asked} {reports} were missing, late or malformed and were not used.",)
    refusals = sum((Counter(record.causes) for record in records), Counter[str]())
    refused = [f"{count} {cause}" for cause, count in sorted(refusals.items()) if cause not in _FAULTS]
    return (*notes, f"Devices refused to send {reports}: {', '.join(refused)}.") if refused else notes
