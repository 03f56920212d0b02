"""What several commands make of their arguments."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from dprec.errors import InputError


def results_of(overrides: list[str] | None, population_dir: str | None) -> list[str]:
    """Return all replacements of settings, among them that of the population's directory."""
    if population_dir is None:
        return overrides or []
    return [*(overrides or []), f"simulation.population_dir={json.dumps(population_dir)}"]


def output_folder(output: str | None, name: str, resume: bool, quiet: bool) -> Path:
    """Return the directory to write to; print a note if there is nothing to resume in it."""
    if output == "":
        raise InputError("-o", "an empty name", "a directory")
    if output is None:
        if resume:
            raise InputError("--resume", "no directory", "-o DIR, the one that was interrupted")
        from simulation.storage.run_directory import timestamped

        return timestamped(name)
    folder = Path(output)
    # Not an error: a command that is repeated until it succeeds may be killed before it writes anything.
    resumable = any(folder.iterdir()) if folder.is_dir() else folder.exists()
    if resume and not resumable and not quiet:
        typer.echo(f"dprec: {folder}: nothing to resume, starting a new one", err=True)
    return folder
