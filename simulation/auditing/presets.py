"""Audits all presets, each protocol once."""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dprec.errors import InputError
from dprec.progress import Progress, silent
from simulation.auditing.auditing import Auditor, audit_of, check_options
from simulation.auditing.result import SCHEMA, Audit
from simulation.configuration.loading import load
from simulation.configuration.presets import presets
from simulation.configuration.strict_yaml import parse_yaml
from simulation.pages.audit_page import presets_page
from simulation.storage.directories import AUDIT, REPORT, check_unused
from simulation.storage.files import write_files

TRIALS = 20_000
"""Default, with which all presets take less than six minutes on two cores."""


@dataclass(frozen=True)
class PresetAudit:
    """What became of the audit of one preset."""

    name: str
    audit: Audit | None
    """None if it cannot be audited."""
    reason: str = ""
    """Why not; empty if it can."""
    same_as: str | None = None
    """The preset that sends the same reports, and whose findings these are."""
    seconds: float = 0.0

    def values(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        audit = None if self.audit is None else self.audit.values()
        return {"name": self.name, "audit": audit, "reason": self.reason, "same_as": self.same_as}


def audit_presets(
    *,
    trials: int = TRIALS,
    seed: int | None = None,
    confidence: float = 0.99,
    progress: Progress = silent,
) -> tuple[PresetAudit, ...]:
    """Audit every preset by name, or give the reason why it promises nothing; see `audit`."""
    check_options(trials, confidence)
    names = _runs()
    known: dict[str, PresetAudit] = {}
    results = []
    for done, name in enumerate(names):
        progress("presets", done, len(names))
        results.append(_audited(name, known, trials, seed, confidence))
    progress("presets", len(names), len(names))
    return tuple(results)


def audit_all(
    output: str | Path | None, *, trials: int, seed: int | None, confidence: float, progress: Progress
) -> tuple[PresetAudit, ...]:
    """Audit all presets and write audit.json and report.html; see `simulation.audit.audit_all`."""
    folder = None if output is None else Path(output)
    if folder is not None:
        check_unused(folder)
    results = audit_presets(trials=trials, seed=seed, confidence=confidence, progress=progress)
    if folder is not None:
        values = [each.values() for each in results]
        record = json.dumps({"schema": SCHEMA, "presets": values}, indent=2) + "\n"
        write_files(folder, {AUDIT: record, REPORT: presets_page(values)})
    return results


def _runs() -> list[str]:
    """Return the names of the presets of runs, which have a protocol; comparisons have several."""
    return [
        name
        for name, path in presets().items()
        if "protocol" in parse_yaml(path.read_text(encoding="utf-8"), str(path))
    ]


def _audited(
    name: str, known: dict[str, PresetAudit], trials: int, seed: int | None, confidence: float
) -> PresetAudit:
    """Audit a preset, or return the audit of one that sends the same."""
    started = time.perf_counter()
    config = load(name)
    if seed is not None:
        config = config.model_copy(update={"seed": seed})
    try:
        auditor = Auditor.of(config, trials, confidence)
    except InputError as error:
        return PresetAudit(name, None, reason=str(error))
    before = known.get(auditor.key)
    if before is not None and before.audit is not None:
        return PresetAudit(name, replace(before.audit, name=name), same_as=before.name)
    result = PresetAudit(name, audit_of(config, auditor, silent), seconds=time.perf_counter() - started)
    known[auditor.key] = result
    return result
