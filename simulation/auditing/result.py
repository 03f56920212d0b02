"""The result of an audit: its findings, and whether they leave the promise standing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from dprec.accounting import PrivacyUnit

SCHEMA = 2

ROUNDING = 1e-9
"""Relative excess over a promise that adding up floating-point numbers may cause."""

_LEAST = 1e-9


@dataclass(frozen=True)
class Finding:
    """What one of the tests of an audit measured."""

    test: str
    """What was compared, in words."""
    unit: PrivacyUnit
    """Unit of the promise."""
    promised: float
    """Largest epsilon that the configuration allows; 0 for reports that must not depend on each other."""
    at_least: float
    """Lower bound on the true epsilon; the loss itself if it is exact."""
    charged: float | None
    """Epsilon that the run's ledger charges; None if the ledger does not state it."""
    exact: bool
    """Whether the loss was computed from a matrix rather than bounded by samples."""
    power: float
    """Probability that a leak of twice the promise would have been detected, or noise that is reused."""

    @property
    def defect(self) -> str | None:
        """What contradicts the promise, in words; None if nothing does."""
        allowed = self.promised * (1 + ROUNDING)
        if self.at_least > (allowed if self.exact else self.promised):
            return f"epsilon is at least {self.at_least:.4g}"
        if self.charged is not None and self.charged > allowed:
            return f"the ledger charges {self.charged:.4g}"
        if self.charged is not None and self.at_least > self.charged * (1 + ROUNDING):
            return f"epsilon is at least {self.at_least:.4g}, and the ledger charges {self.charged:.4g}"
        return None

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against the promise."""
        return self.defect is None

    @property
    def strength(self) -> str:
        """How strong the test was, in words."""
        if self.exact:
            return "exact"
        leak = "a twofold leak" if self.promised else "noise that is reused"
        return f"{leak} would be seen with probability {self.power:.2f} or more"


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

    name: str
    protocol: str
    mechanism: str
    trials: int
    """Number of people per profile."""
    confidence: float
    """Probability with which all lower bounds hold together."""
    findings: tuple[Finding, ...]
    declared_by: dict[str, str] = field(default_factory=dict)
    """A digest of the code of each class from outside dprec on whose word the promise rests."""

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against any of the promises."""
        return all(finding.holds for finding in self.findings)

    @property
    def worst(self) -> Finding:
        """The finding that contradicts the promise most, or the samples that come nearest to it."""
        eligible = [each for each in self.findings if not each.holds] or [
            each for each in self.findings if each.promised and not each.exact
        ]
        return max(eligible, key=lambda each: each.at_least / max(each.promised, _LEAST))

    @property
    def promised(self) -> float:
        """Epsilon that is promised where the audit found most."""
        return self.worst.promised

    @property
    def lower_bound(self) -> float:
        """Lower bound on epsilon where the audit found most."""
        return self.worst.at_least

    @property
    def power(self) -> float:
        """Largest probability with which one of the tests would have detected a leak of twice the promise."""
        return max((each.power for each in self.findings if each.promised and not each.exact), default=0.0)

    @property
    def verdict(self) -> str:
        """What the audit says of the promise, in words."""
        worst = self.worst
        if worst.defect:
            budget = f"epsilon = {worst.promised:.4g} per {worst.unit}"
            return f"{worst.test}: {budget} is promised, but {worst.defect}"
        return (
            f"no evidence against it; a twofold leak would be seen with probability {self.power:.2f} or more"
        )

    def values(self) -> dict[str, Any]:
        """Return the contents of audit.json."""
        findings = [
            {**asdict(each), "holds": each.holds, "defect": each.defect, "strength": each.strength}
            for each in self.findings
        ]
        own = {**asdict(self), "findings": findings}
        return {"schema": SCHEMA, **own, **self._conclusion()}

    def _conclusion(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "promised": self.promised,
            "lower_bound": self.lower_bound,
            "power": self.power,
            "verdict": self.verdict,
        }

    def to_json(self) -> str:
        """Return audit.json."""
        return json.dumps(self.values(), indent=2) + "\n"
