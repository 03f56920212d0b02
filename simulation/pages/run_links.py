"""Which run of a comparison stands for a protocol, and where its page is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.protocol_results import ProtocolResult, at_reference, by_evaluation
from simulation.storage.directories import REPORT

RunLinks = Mapping[tuple[str, float | None], str]
"""Addresses of the pages of runs, from the comparison's page, by protocol and budget."""


def representative_runs(files: ComparisonFiles) -> dict[tuple[str, float | None], Path]:
    """Return a run directory for each protocol: at the reference budget, of the first fold and seed.

    Baselines are left out: what they are needs no page.
    """
    results: list[ProtocolResult] = []
    for own in by_evaluation(files.results).values():
        results += [result for result in at_reference(own) if result.baseline is None]
    return {(result.name, result.budget): cells[0] for result in results if (cells := files.cells(result))}


def run_links(files: ComparisonFiles) -> RunLinks:
    """Return the addresses of those pages of runs that exist."""
    return {
        key: quote((folder / REPORT).relative_to(files.directory).as_posix())
        for key, folder in representative_runs(files).items()
        if (folder / REPORT).is_file()
    }
