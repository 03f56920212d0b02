"""Audits: lower bounds on what is revealed, beside what a configuration promises."""

from simulation.auditing.auditing import PresetAudit, audit, audit_presets
from simulation.auditing.experiments import Audit
from simulation.protocols.base import Finding

__all__ = ["Audit", "Finding", "PresetAudit", "audit", "audit_presets"]
