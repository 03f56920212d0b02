"""Keep the summary of a comparison with the project.

    python -m docs.tables.collect DIR -o docs/results/NAME.csv --command "dprec compare ..."

Every figure is taken from comparison.csv as the comparison's page takes it, and rounded. Groups of users
stand in NAME/groups.csv, as the comparison has them.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from docs.tables.results import RESULTS, Provenance
from dprec import __version__
from simulation.analysis.gains import AGAINST, PLAIN, PUBLIC, gain_columns
from simulation.analysis.protocol_results import ComparisonFiles, ProtocolResult, read_comparison
from simulation.analysis.vocabulary import Metric
from simulation.console.terminal import exit_code
from simulation.storage.attacked import titled
from simulation.storage.columns import column
from simulation.storage.directories import GROUPS, TABLE, cell_key
from simulation.storage.files import Row, csv_of_rows

FIGURES = (
    *("status", "trust", "hides_rated_items", "unlinked", "epsilon_per_rating", "epsilon_per_user_max"),
    *("epsilon_claimed_per_rating", "epsilon_claimed_per_user", "epsilon_composed_max", "epsilon_any_two"),
    *(
        "delta",
        "tau",
        "users",
        "represents",
        "items",
        "rmse",
        "mae",
        "sign_accuracy",
        "relative_error",
        "f_score_at_k",
        "rounds",
    ),
    *("ndcg_at_10", "recall_at_20", "ranking_ndcg_at_20", "ranking_hit_rate_at_10"),
    *("sampled_ranking_hit_rate_at_10", "sampled_ranking_ndcg_at_10", "precision_at_k", "coverage"),
    "influence_of_one",
    *(
        f"{way}link_{kind}_mean_per_user"
        for kind in ("payload", "message", "network")
        for way in ("up", "down")
    ),
)
"""Columns of comparison.csv that are kept, beside those of attacks and newcomers."""


def is_kept(name: str) -> bool:
    """Return whether a column is kept without being listed: of attacks, with bounds, and of newcomers."""
    return (column(name).key or "").startswith(("attacks.", "accuracy.newcomers.")) or bool(titled(name))


def rows_of(files: ComparisonFiles) -> list[Row]:
    """Return one line for every protocol at every budget that was evaluated, in the comparison's order."""
    every = [*files.results, *files.populations]
    return [_row(result, result.evaluation.metric) for result in every if result.evaluation]


def provenance_of(files: ComparisonFiles, command: str, before: Sequence[str] = ()) -> Provenance:
    """Return how a comparison was made; ``before``: what was typed before the command."""
    finished = datetime.datetime.fromtimestamp((files.directory / TABLE).stat().st_mtime, datetime.UTC)
    runs = [f"dprec {__version__}, {finished.date().isoformat()}"]
    for key in ("fold", "seed"):
        own = dict.fromkeys(f"{row[key]}" for each in files.results for row in each.rows if row[key])
        if own:
            runs.insert(0, f"{key}{'' if len(own) == 1 else 's'} {', '.join(own)}")
    listed = [line for line in files.config["protocols"] if isinstance(line, dict)]
    # What `promises: all` lists names no preset: it is the preset `best` at other promises.
    best = [line["name"] for line in listed if line.get("protocol", {}).get("kind") == "best"]
    named = {line["name"]: line["preset"] for line in listed if line.get("preset")}
    return Provenance(
        command=command,
        unit=files.matched_unit,
        splits={own.data[0]: split for own in files.results if (split := _split(files, own))},
        presets={str(name): str(preset) for name, preset in (dict.fromkeys(best, "best") | named).items()},
        runs="; ".join(runs),
        before=tuple(before),
        versions=_versions(files),
        ratings=tuple(sorted(set(files.config.get("ratings", {}).values()))),
        cheapest=_cheapest(files),
    )


def _versions(files: ComparisonFiles) -> str:
    """Return the versions that figures depend on; empty without runs."""
    cells = [cell for own in files.results for cell in files.cells(own)]
    if not cells:
        return ""
    environment = files.summary(cells[0]).environment
    known = [f"{name} {environment[name]}" for name in ("python", "numpy", "scipy") if name in environment]
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(asked, cwd=RESULTS, capture_output=True, text=True, check=False).stdout.strip()
    return ", ".join([*known, platform.machine(), *([f"commit {commit}"] if commit else [])])


def _cheapest(files: ComparisonFiles) -> dict[str, Any] | None:
    """Return the listed protocol and budget whose runs took the least time together; None without times."""
    listed = {line if isinstance(line, str) else line["name"] for line in files.config["protocols"]}
    seconds = {
        (own.name, own.budget): sum(float(row["total_s"]) for row in own.rows)
        for own in files.timings
        if own.name in listed
    }
    if not seconds:
        return None
    name, epsilon = min(seconds, key=lambda key: seconds[key])
    return {"name": name, "epsilon": epsilon}


def _row(result: ProtocolResult, metric: Metric) -> Row:
    accuracy = result.average(metric.column)
    assert accuracy is not None  # it is what was evaluated
    data = {"dataset": result.data[0], "panel": result.data[2], "baseline": result.baseline}
    row: Row = {"name": result.name, "epsilon": result.budget, "population": result.population, **data}
    further = [name for name in result.rows[0] if is_kept(name)]
    row |= {name: _figure(result, name) for name in (*FIGURES, *further)} | {"runs": len(accuracy.figures)}
    row |= {"deviation": accuracy.deviation if accuracy.seeds or accuracy.folds else None}
    # The interval over users is of all runs, and the same in each of their lines.
    across = (PUBLIC, AGAINST, *gain_columns(metric)[1:], *PLAIN)
    row |= {key: result.rows[0].get(key) for key in across}
    return {key: float(f"{each:.8g}") if isinstance(each, float) else each for key, each in row.items()}


def _figure(result: ProtocolResult, name: str) -> float | str | None:
    """Return what stands for a column of all runs, as tables have it."""
    declared = column(name)
    if declared.kind == "flag":
        return result.flag(declared)
    return result.value(declared) if declared.numeric else result.text(declared)


def _split(files: ComparisonFiles, result: ProtocolResult) -> str:
    """Return the split of a result in words, without its fold where the comparison has several."""
    row = result.rows[0]
    key = cell_key(result.name, result.budget, row["fold"], row["seed"], result.population)
    split = dict(files.config["cells"].get(key, {}).get("split", {}))
    if row["fold"] is not None:
        split.pop("fold", None)
    kind = str(split.pop("kind", ""))
    return ", ".join([kind, *(f"{name.replace('_', ' ')} {value}" for name, value in split.items())])


def main() -> None:
    """Write the summary of a comparison, and how it was made beside it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="a finished comparison")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="CSV")
    parser.add_argument("--command", required=True, help="what was typed, with PATH/TO for the data")
    parser.add_argument("--before", action="append", default=[], help="what was typed before")
    options = parser.parse_args()
    how = options.output.with_suffix(".yaml")
    collect(options.directory, options.output, how, options.command, options.before)


def collect(directory: Path, output: Path, how: Path, command: str, before: Sequence[str]) -> None:
    """Write the summary of a comparison, and in a second file how it was made; see `provenance_of`."""
    files = read_comparison(directory)
    output.write_text("".join(csv_of_rows(rows_of(files))), encoding="utf-8")
    made = asdict(provenance_of(files, command, before))
    made = {key: list(value) if isinstance(value, tuple) else value for key, value in made.items()}
    text = yaml.safe_dump(made, sort_keys=False, width=110)
    how.write_text(text, encoding="utf-8")
    if (directory / GROUPS).is_file():
        output.with_suffix("").mkdir(exist_ok=True)
        shutil.copy(directory / GROUPS, output.with_suffix(""))


if __name__ == "__main__":
    sys.exit(exit_code(main))
