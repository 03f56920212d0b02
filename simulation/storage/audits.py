"""audit.json, read as strictly as a run's summary: one audit, or those of all presets."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from dprec.accounting import PrivacyUnit
from dprec.errors import InputError
from simulation.storage.files import Count, Document, parse_document

_Loss = Annotated[float, Field(ge=0, allow_inf_nan=True)]
"""A loss that was computed may be infinite."""

_Probability = Annotated[float, Field(ge=0, le=1)]

_Schema = Annotated[Literal[2], Field(alias="schema")]


class _FindingRecord(Document):
    test: str
    unit: PrivacyUnit
    promised: _Loss
    at_least: _Loss
    charged: _Loss | None
    exact: bool
    power: _Probability
    holds: bool
    defect: str | None
    strength: str


class AuditRecord(Document):
    """The audit of one configuration."""

    schema_version: _Schema
    name: str
    protocol: str
    mechanism: str
    trials: Count
    confidence: _Probability
    findings: tuple[_FindingRecord, ...] = Field(min_length=1)
    declared_by: dict[str, str]
    holds: bool
    promised: _Loss
    lower_bound: _Loss
    power: _Probability
    verdict: str


class PresetRecord(Document):
    """What became of the audit of one preset."""

    name: str
    audit: AuditRecord | None
    reason: str
    same_as: str | None


class PresetsRecord(Document):
    """The audits of all presets."""

    schema_version: _Schema
    presets: tuple[PresetRecord, ...] = Field(min_length=1)

    @property
    def audits(self) -> Sequence[AuditRecord]:
        """Those that there are."""
        return [preset.audit for preset in self.presets if preset.audit is not None]


def parse_audit(text: str, where: str) -> AuditRecord | PresetsRecord:
    """Parse the contents of audit.json.

    Raises
    ------
    InputError
        Naming the first key that is missing, unknown or of another type, or that contradicts the others.
    """
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        values = None  # what is wrong with it is said below
    if isinstance(values, dict) and "presets" in values:
        presets = parse_document(PresetsRecord, text, where)
        for audit in presets.audits:
            _check_consistent(audit, where)
        return presets
    audit = parse_document(AuditRecord, text, where)
    _check_consistent(audit, where)
    return audit


def _check_consistent(audit: AuditRecord, where: str) -> None:
    """Refuse a conclusion that the findings do not have."""
    found = [(each.promised, each.at_least) for each in audit.findings]
    if (audit.promised, audit.lower_bound) not in found:
        concluded = f"{audit.lower_bound:g} of {audit.promised:g}"
        raise InputError(f"{where}: lower_bound", concluded, "what one of the findings measured")
    if audit.holds != all(each.holds for each in audit.findings):
        raise InputError(f"{where}: holds", str(audit.holds).lower(), "what the findings say together")
