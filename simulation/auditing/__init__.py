"""Audits: lower bounds on what is revealed, beside what a configuration promises."""

from dprec.protocols.findings import Finding
from simulation.auditing.auditing import PresetAudit, audit, audit_presets
from simulation.auditing.experiments import Audit

__all__ = ["Audit", "Finding", "PresetAudit", "audit", "audit_presets"]
