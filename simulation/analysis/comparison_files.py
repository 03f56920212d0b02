"""The contents of a comparison directory: its settings, and the run directories of their cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from dprec.privacy.units import ComparableUnit, unit_from_text
from simulation.analysis.protocol_results import ProtocolResult, read_results, read_rows, results_of
from simulation.configuration.strict_yaml import read_yaml
from simulation.storage.directories import CELLS, COMPARISON, SUMMARY, TABLE, TIMINGS, cell_key, check_table
from simulation.storage.summary import Summary, read_summary


@dataclass(frozen=True, eq=False)
class ComparisonFiles:
    """A comparison."""

    directory: Path
    config: dict[str, Any]
    """As in comparison.yaml."""
    results: list[ProtocolResult]
    """From comparison.csv, on the comparison's own ratings."""
    populations: list[ProtocolResult]
    """From comparison.csv, on the other populations."""
    timings: list[ProtocolResult]
    """From timing.csv; empty where there is none."""

    def cells(self, result: ProtocolResult) -> list[Path]:
        """Return the existing run directories of a setting, in the order of its lines."""
        folders = [self.directory / CELLS / key for key in _keys(result)]
        # A table may come from anywhere; its names must not lead out of the directory.
        inside = [folder for folder in folders if folder.parent == self.directory / CELLS]
        return [folder for folder in inside if (folder / SUMMARY).is_file()]

    @cached_property
    def summary(self) -> Callable[[Path], Summary]:
        """What reads the summary of a run directory, and each only once."""
        return cache(read_summary)

    @cached_property
    def summaries(self) -> dict[str, list[Summary]]:
        """The summaries of every protocol's cells, by the protocol's name."""
        by_name: dict[str, list[Summary]] = {}
        for result in self.results:
            by_name.setdefault(result.name, []).extend(map(self.summary, self.cells(result)))
        return by_name

    @property
    def published(self) -> frozenset[str]:
        """Names of the protocols whose runs, those that are here, have the settings of their paper."""
        return frozenset(
            name
            for name, summaries in self.summaries.items()
            if summaries and not any(summary.beyond_the_paper for summary in summaries)
        )

    @property
    def matched_unit(self) -> ComparableUnit:
        """The unit in which every protocol was given the same epsilon."""
        match = self.config.get("match")
        unit = match.get("epsilon") if isinstance(match, dict) else None
        return "user" if unit_from_text(unit) == "user" else "rating"

    @property
    def epsilons(self) -> list[float]:
        """The budgets that protocols were given unless they had their own."""
        given = self.config.get("epsilons")
        return (
            [float(each) for each in given if isinstance(each, int | float)]
            if isinstance(given, list)
            else []
        )

    @property
    def matched_delta(self) -> float | None:
        """The delta that every protocol was given beside it; None if losses are added up."""
        match = self.config.get("match")
        delta = match.get("delta") if isinstance(match, dict) else None
        return delta if isinstance(delta, float) else None

    @property
    def unfinished(self) -> list[str]:
        """Keys of the cells that the configuration asks for but the table lacks."""
        held = {key for result in (*self.results, *self.populations) for key in _keys(result)}
        planned = self.config.get("cells")
        return [str(key) for key in planned if key not in held] if isinstance(planned, dict) else []


def _keys(result: ProtocolResult) -> list[str]:
    """Return the keys of a setting's cells, in the order of its lines."""
    return [
        cell_key(result.name, result.budget, row.get("fold"), row.get("seed"), result.population)
        for row in result.rows
    ]


def read_comparison(directory: Path) -> ComparisonFiles:
    """Read a comparison directory; its cells are read on demand.

    Raises
    ------
    InputError
    """
    config, timings = directory / COMPARISON, directory / TIMINGS
    if timings.is_file():
        check_table(timings)
    results = read_results(directory / TABLE)
    return ComparisonFiles(
        directory=directory,
        config=read_yaml(config) if config.is_file() else {},
        results=[result for result in results if result.population is None],
        populations=[result for result in results if result.population is not None],
        timings=results_of(read_rows(timings, ("name", "epsilon"))) if timings.is_file() else [],
    )
