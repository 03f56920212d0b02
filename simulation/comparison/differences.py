"""In which settings and figures two runs, or two comparisons, differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dprec.errors import InputError
from simulation.analysis.gains import Gain
from simulation.analysis.protocol_results import ProtocolResult, read_comparison
from simulation.analysis.vocabulary import METRICS
from simulation.comparison.tabulation import METRICS_OF_USERS, DrawnUsers, UserErrors
from simulation.configuration.strict_yaml import flatten, read_yaml
from simulation.storage.columns import figures_of
from simulation.storage.directories import CONFIG
from simulation.storage.run_files import holds_comparison, read_predictions
from simulation.storage.summary import read_summary


@dataclass(frozen=True)
class UnequalFigure:
    """A figure that differs."""

    of: str
    """The protocol at its budget; empty for runs."""
    name: str
    """Its column in comparison.csv."""
    first: float | str | bool | None
    second: float | str | bool | None
    """None where it does not apply, or is not there."""


@dataclass(frozen=True)
class Difference:
    """In what two runs or comparisons differ."""

    first: Path
    second: Path
    settings: dict[str, tuple[Any, Any]]
    """Both values of every setting that differs, by dotted key; None where it is not set."""
    figures: tuple[UnequalFigure, ...]
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    """Protocols at budgets that only one of two comparisons has."""
    gains: dict[str, Gain] = field(default_factory=dict)
    """How much better the second of two runs on the same test ratings predicts, by the metric's column."""
    same_ratings: bool | None = None
    """Whether two runs have the same test ratings; None for comparisons."""

    def values(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        gains = {
            name: {
                "better_by": gain.mean,
                "low": gain.low,
                "high": gain.high,
                "significant": gain.significant,
            }
            for name, gain in self.gains.items()
        }
        return {**asdict(self), "first": str(self.first), "second": str(self.second), "gains": gains}


def differences(first: Path, second: Path) -> Difference:
    """Compare two directories; see `dprec.diff`."""
    compared = holds_comparison(first)
    if holds_comparison(second) != compared:
        kind = "comparison" if compared else "run"
        raise InputError(str(second), f"not a {kind}", f"a {kind}, as {first} is")
    return _of_comparisons(first, second) if compared else _of_runs(first, second)


def _of_runs(first: Path, second: Path) -> Difference:
    summaries = read_summary(first), read_summary(second)
    figures = _unequal(*(figures_of(summary.as_json()) for summary in summaries))
    one, other = read_predictions(first, summaries[0]), read_predictions(second, summaries[1])
    same = all(np.array_equal(one[name], other[name]) for name in ("user", "item"))
    same = same and np.array_equal(one["rating"], other["rating"], equal_nan=True)
    gains = {}
    if same:
        users = DrawnUsers({"first": UserErrors.of(one), "second": UserErrors.of(other)})
        measured = [summary.accuracy.metrics() for summary in summaries]
        for metric in METRICS:
            name, both = metric.column, [accuracy.get(metric.column) for accuracy in measured]
            if name in METRICS_OF_USERS and None not in both:
                gain = users.better_by(metric, [("second", "first")], np.ones(1))
                gains[name] = Gain(*gain, metric.digits, str(first))
    return Difference(
        first,
        second,
        _unequal(flatten(read_yaml(first / CONFIG)), flatten(read_yaml(second / CONFIG))),
        tuple(UnequalFigure("", name, *both) for name, both in figures.items()),
        gains=gains,
        same_ratings=same,
    )


def _of_comparisons(first: Path, second: Path) -> Difference:
    comparisons = read_comparison(first), read_comparison(second)
    one, other = (
        {_label(result): result for result in [*comparison.results, *comparison.populations]}
        for comparison in comparisons
    )
    figures = [
        UnequalFigure(label, name, *both)
        for label in one
        if label in other
        for name, both in _unequal(_means(one[label]), _means(other[label])).items()
    ]
    # The cells follow from the rest.
    settings = (
        {key: value for key, value in comparison.config.items() if key != "cells"}
        for comparison in comparisons
    )
    only_first = tuple(label for label in one if label not in other)
    only_second = tuple(label for label in other if label not in one)
    unequal = _unequal(*map(flatten, settings))
    return Difference(first, second, unequal, tuple(figures), only_first, only_second)


def _label(result: ProtocolResult) -> str:
    budget = "" if result.budget is None else f", budget {result.budget:g}"
    return f"{result.name}{budget}" + ("" if result.population is None else f", {result.population} users")


def _means(result: ProtocolResult) -> dict[str, float | str | bool | None]:
    """Return the means of a result that two comparisons are compared by."""
    evaluation = result.evaluation
    measured = {} if evaluation is None else {evaluation.metric.column: result.mean(evaluation.metric.column)}
    return {
        **measured,
        "epsilon_per_rating": result.epsilon("rating"),
        "epsilon_per_user_max": result.epsilon("user"),
        "epsilon_composed_max": result.composed,
        "message_bytes_per_user": result.bytes_per_user,
        "network_bytes_per_user": result.network_bytes_per_user,
    }


def _unequal(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return both values of what differs, by key, in the order of the first."""
    both = {key: (one.get(key), other.get(key)) for key in {**one, **other}}
    return {key: values for key, values in both.items() if not _same(*values)}


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        # Sums over users differ in their last bits with the order of their terms.
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return one == other
