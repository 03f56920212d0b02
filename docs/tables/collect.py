"""Keep the summary of a comparison with the project.

    python -m docs.tables.collect DIR -o docs/results/NAME.csv --command "dprec compare ..."

Every figure is taken from comparison.csv as the comparison's page takes it, and rounded.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from docs.tables.results import Provenance, Result, write_results
from simulation.analysis.comparison_files import ComparisonFiles, read_comparison
from simulation.analysis.gains import Gain, gain, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult, by_evaluation
from simulation.console.exit_codes import exit_code
from simulation.storage.directories import TABLE, cell_key

_DIGITS = 8
"""Significant digits that are kept."""


def results_of(files: ComparisonFiles) -> list[Result]:
    """Return the lines of a comparison's summary, in the comparison's order."""
    baselines = {
        id(result): nothing_sent(group) for group in by_evaluation(files.results).values() for result in group
    }
    presets = {str(line["name"]): str(line.get("preset") or line["name"]) for line in _protocols(files)}
    return [
        _result(files, result, presets.get(result.name, result.name), baselines[id(result)])
        for result in files.results
        if result.evaluation is not None
    ]


def provenance_of(files: ComparisonFiles, command: str) -> Provenance:
    """Return how a comparison was made."""
    finished = datetime.datetime.fromtimestamp((files.directory / TABLE).stat().st_mtime, datetime.UTC)
    runs = {
        key: dict.fromkeys(str(row[key]) for own in files.results for row in own.rows if row[key] is not None)
        for key in ("seed", "fold")
    }
    title = str(files.config.get("title") or files.config.get("name"))
    version = files.summary(files.cells(files.results[0])[0]).environment["dprec"]
    return Provenance(
        title, command, tuple(runs["seed"]), tuple(runs["fold"]), str(version), finished.date().isoformat()
    )


def _protocols(files: ComparisonFiles) -> list[Mapping[str, Any]]:
    listed = files.config.get("protocols")
    return [line for line in listed if isinstance(line, Mapping)] if isinstance(listed, list) else []


def _result(
    files: ComparisonFiles, result: ProtocolResult, preset: str, baseline: ProtocolResult | None
) -> Result:
    evaluation = result.evaluation
    assert evaluation is not None  # only results that were evaluated are asked about
    accuracy = result.average(evaluation.metric.column)
    assert accuracy is not None
    against = None if baseline is None or result is baseline else gain(result, baseline, evaluation.metric)
    return Result(
        protocol=result.name,
        preset=preset,
        dataset=evaluation.dataset,
        split=_split(files, result),
        panel=evaluation.panel or "",
        unit=files.matched_unit,
        epsilon=result.budget,
        baseline=result.baseline is not None,
        metric=evaluation.metric.column,
        accuracy=_kept(accuracy.mean),
        deviation=_kept(accuracy.deviation) if accuracy.seeds or accuracy.folds else None,
        runs=accuracy.count,
        mae=_mean(result, "mae"),
        f_score=_mean(result, "f_score_at_k"),
        **_gained(against),
        **_promised(result),
        bytes_up=_mean(result, "uplink_message_mean_per_user"),
        bytes_down=_mean(result, "downlink_message_mean_per_user"),
        network_up=_mean(result, "uplink_network_mean_per_user"),
        network_down=_mean(result, "downlink_network_mean_per_user"),
        rounds=_mean(result, "rounds"),
    )


def _gained(against: Gain | None) -> dict[str, Any]:
    """Return what is gained over nothing sent; the interval only if it is one over users."""
    if against is None:
        return {"gain": None, "gain_low": None, "gain_high": None}
    low, high = _maybe(against.low), _maybe(against.high)
    return {"gain": _kept(against.mean), "gain_low": low, "gain_high": high}


def _promised(result: ProtocolResult) -> dict[str, Any]:
    return {
        "epsilon_per_rating": _maybe(result.epsilon("rating")),
        "epsilon_per_user": _maybe(result.epsilon("user")),
        "claimed_per_rating": _maybe(result.claimed("rating")),
        "claimed_per_user": _maybe(result.claimed("user")),
        "composed": _maybe(result.composed),
        "delta": result.delta,
        "status": result.status,
        "trust": result.trust,
        "hides_rated_items": result.flag("hides_rated_items"),
        "server_sees": result.server_sees,
    }


def _split(files: ComparisonFiles, result: ProtocolResult) -> str:
    """Return the split of a result in words, without its fold where the comparison has several."""
    row, cells = result.rows[0], files.config.get("cells")
    key = cell_key(result.name, result.budget, row["fold"], row["seed"], result.population)
    config = cells.get(key) if isinstance(cells, dict) else None
    split = dict(config["split"]) if isinstance(config, dict) else {}
    if row["fold"] is not None:
        split.pop("fold", None)
    kind = str(split.pop("kind", ""))
    return ", ".join([kind, *(f"{name.replace('_', ' ')} {value}" for name, value in split.items())])


def _mean(result: ProtocolResult, column: str) -> float | None:
    return _maybe(result.mean(column))


def _maybe(value: float | None) -> float | None:
    return None if value is None else _kept(value)


def _kept(value: float) -> float:
    """Return a number with the digits that are kept."""
    return float(f"{value:.{_DIGITS}g}")


def main() -> None:
    """Write the summary of a comparison, and how it was made beside it."""
    parser = argparse.ArgumentParser(description="Keep the summary of a comparison with the project.")
    parser.add_argument("directory", type=Path, metavar="DIR", help="a finished comparison")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="CSV")
    parser.add_argument("--command", required=True, help="what was typed, with PATH/TO for the data")
    options = parser.parse_args()
    files = read_comparison(options.directory)
    write_results(options.output, results_of(files))
    made = {
        key: list(own) if isinstance(own, tuple) else own
        for key, own in asdict(provenance_of(files, options.command)).items()
    }
    options.output.with_suffix(".yaml").write_text(
        yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=110), encoding="utf-8"
    )


if __name__ == "__main__":
    sys.exit(exit_code(main))
