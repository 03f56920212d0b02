"""The result of an audit: its findings, and whether they leave the promise standing."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from simulation.protocols.base import Finding

SCHEMA = 2

_LEAST = 1e-9


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
