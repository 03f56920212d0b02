"""How two runs, or two comparisons, differ: settings, figures, and accuracy over the same users."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprec.errors import InputError
from simulation.analysis.comparison_files import read_comparison
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import METRICS, Metric
from simulation.comparison.tabulation import METRICS_OF_USERS, DrawnUsers, UserErrors
from simulation.configuration.strict_yaml import flatten, read_yaml
from simulation.storage.columns import figures_of
from simulation.storage.directories import CONFIG
from simulation.storage.run_files import holds_comparison, read_predictions
from simulation.storage.summary import Summary, read_summary

_DERIVED = "cells"
"""Part of a comparison's configuration that follows from the others."""


@dataclass(frozen=True)
class Figure:
    """A figure that differs."""

    of: str
    """The protocol at its budget; empty for runs."""
    name: str
    """Its column in comparison.csv."""
    first: float | str | bool | None
    second: float | str | bool | None
    """None where it does not apply, or is not there."""


@dataclass(frozen=True)
class Gain:
    """By how much the second of two runs predicts better than the first."""

    metric: Metric
    better_by: float
    """Negative if it predicts worse."""
    low: float
    high: float
    """Ends of the 95 % interval over users."""

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Difference:
    """In what two runs or comparisons differ."""

    first: Path
    second: Path
    settings: dict[str, tuple[Any, Any]]
    """Both values of every setting that differs, by dotted key; None where it is not set."""
    figures: tuple[Figure, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    """Protocols at budgets that only one of two comparisons has."""
    gains: tuple[Gain, ...]
    """Of two runs on the same test ratings, by metric."""
    same_ratings: bool | None
    """Whether two runs have the same test ratings; None for comparisons."""

    def values(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        gains = {
            gain.metric.column: {
                "better_by": gain.better_by,
                "low": gain.low,
                "high": gain.high,
                "significant": gain.significant,
            }
            for gain in self.gains
        }
        plain = {"first": str(self.first), "second": str(self.second), "gains": gains}
        return {**asdict(self), **plain}


def differences(first: Path, second: Path) -> Difference:
    """Compare two directories; see `simulation.diff`."""
    compared = holds_comparison(first)
    if holds_comparison(second) != compared:
        kind = "comparison" if compared else "run"
        raise InputError(str(second), f"not a {kind}", f"a {kind}, as {first} is")
    return _of_comparisons(first, second) if compared else _of_runs(first, second)


def _of_runs(first: Path, second: Path) -> Difference:
    summaries = read_summary(first), read_summary(second)
    one, other = (figures_of(summary.as_json()) for summary in summaries)
    gains = _gains((first, summaries[0]), (second, summaries[1]))
    return Difference(
        first,
        second,
        _settings(read_yaml(first / CONFIG), read_yaml(second / CONFIG)),
        tuple(Figure("", name, *both) for name, both in _unequal(one, other).items()),
        (),
        (),
        gains or (),
        gains is not None,
    )


def _gains(*runs: tuple[Path, Summary]) -> tuple[Gain, ...] | None:
    """Return by how much the second run predicts better than the first; None on other test ratings."""
    one, other = (read_predictions(directory, summary) for directory, summary in runs)
    if any(not np.array_equal(one[name], other[name]) for name in ("user", "item", "rating")):
        return None
    drawn = DrawnUsers.of({"first": UserErrors.of(one), "second": UserErrors.of(other)})
    measured = [summary.accuracy.metrics() for _, summary in runs]
    shared = [
        metric
        for metric in METRICS
        if metric.column in METRICS_OF_USERS and all(own.get(metric.column) is not None for own in measured)
    ]
    return tuple(Gain(each, *drawn.better_by(each, [("second", "first")], np.ones(1))) for each in shared)


def _of_comparisons(first: Path, second: Path) -> Difference:
    files = read_comparison(first), read_comparison(second)
    one, other = ({_label(each): each for each in [*own.results, *own.populations]} for own in files)
    return Difference(
        first,
        second,
        _settings(*(own.config for own in files)),
        tuple(
            Figure(label, name, *both)
            for label in one
            if label in other
            for name, both in _unequal(_compared(one[label]), _compared(other[label])).items()
        ),
        tuple(label for label in one if label not in other),
        tuple(label for label in other if label not in one),
        (),
        None,
    )


def _label(result: ProtocolResult) -> str:
    budget = "" if result.budget is None else f", budget {result.budget:g}"
    return f"{result.name}{budget}" + ("" if result.population is None else f", {result.population} users")


def _compared(result: ProtocolResult) -> dict[str, float | str | bool | None]:
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


def _settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    own = ({key: value for key, value in each.items() if key != _DERIVED} for each in (one, other))
    return _unequal(*map(flatten, own))


def _unequal(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return both values of what differs, by key, in the order of the first."""
    return {
        key: (one.get(key), other.get(key))
        for key in {**one, **other}
        if not _same(one.get(key), other.get(key))
    }


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        # Sums over users differ in their last bits with the order of their terms.
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return one == other
