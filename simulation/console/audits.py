"""What the command "audit" prints, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dprec.errors import RunError
from simulation.console.results import audit_table, presets_table, print_places, print_tables
from simulation.storage.directories import AUDIT, REPORT

if TYPE_CHECKING:
    from simulation.auditing import Audit, PresetAudit


def conclude(audit: Audit, folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Print an audit.

    Raises
    ------
    RunError
        When the promise is broken.
    """
    if as_json:
        typer.echo(audit.to_json(), nl=False)
    elif not quiet:
        print_tables(lambda width: [audit_table(audit, width)], _where(folder))
        print_places("audit", folder)
    if not audit.holds:
        raise RunError(audit.verdict)


def conclude_presets(presets: Sequence[PresetAudit], folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Print the audits of all presets.

    Raises
    ------
    RunError
        When one of the promises is broken.
    """
    if as_json:
        typer.echo(json.dumps([preset.values() for preset in presets], indent=2))
    elif not quiet:
        print_tables(lambda width: [presets_table(presets, width)], _where(folder))
        print_places("audit", folder)
    broken = [preset.name for preset in presets if preset.audit is not None and not preset.audit.holds]
    if broken:
        raise RunError(f"{len(broken)} of {len(presets)} presets break a promise: {', '.join(broken)}")


def _where(folder: Path) -> str:
    return f"{folder / AUDIT} and {folder / REPORT}"
