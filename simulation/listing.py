"""What a folder holds of runs, comparisons, audits and tunings, and how far each of them is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from dprec.errors import InputError, one_line, plural
from simulation.analysis.protocol_results import by_evaluation, read_results
from simulation.analysis.vocabulary import Metric, loss, metrics_in, number
from simulation.configuration.strict_yaml import at, read_yaml
from simulation.storage.directories import (
    AUDIT,
    CELLS,
    COMPARISON,
    CONFIG,
    DEPLOYMENT,
    SUMMARY,
    TABLE,
    TUNING,
    PresetsRecord,
    parse_audit,
)
from simulation.storage.files import read_text
from simulation.storage.summary import read_summary
from simulation.tuning.running import TRIALS, read_trials

Kind = Literal["run", "comparison", "audit", "tuning"]
State = Literal["finished", "unfinished", "damaged"]

_DEPTH = 3
"""Levels of folders that are searched; what is in a result is part of it."""


@dataclass(frozen=True)
class Found:
    """A directory of results."""

    path: Path
    kind: Kind
    changed: datetime
    """When its files were last written."""
    what: str = ""
    """What was run, on which data."""
    state: State = "finished"
    done: int | None = None
    planned: int | None = None
    """How many parts are finished, and are planned; None where there are none."""
    best: str = ""
    """Its best figure."""
    damage: str = ""
    """What is wrong with it."""

    def values(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {**asdict(self), "path": str(self.path), "changed": self.changed.isoformat()}

    @property
    def progress(self) -> str:
        """Its state in words."""
        if self.state != "unfinished" or self.done is None:
            return self.state
        planned = "" if self.planned is None else f" of {self.planned}"
        return f"{self.done}{planned} finished"


def results_in(folder: str | Path) -> list[Found]:
    """List the results in a folder; see `dprec.ls`."""
    top = Path(folder)
    if not top.is_dir():
        raise InputError(str(top), "no such directory", "a directory")
    return sorted(_found(top, _DEPTH), key=lambda result: result.changed, reverse=True)


def _found(folder: Path, depth: int) -> Iterator[Found]:
    if (folder / DEPLOYMENT).is_file():  # a pilot's server, whose runs are in a folder of its own
        for inner in _folders(folder):
            yield from _found(inner, max(depth - 1, 1))
        return
    for (kind, marker), read in _KINDS.items():
        if _marks(folder / marker):
            result = Found(folder, kind, datetime.fromtimestamp(0, UTC))
            try:
                files = (folder / name for name in (marker, SUMMARY, TABLE, TRIALS))
                written = max(file.stat().st_mtime for file in files if file.is_file())
                result = replace(result, changed=datetime.fromtimestamp(int(written), UTC))
                yield read(result)
            except Exception as error:  # whatever is wrong with one must not hide the others
                damage = one_line(error).removeprefix(f"{folder}{os.sep}")
                yield replace(result, state="damaged", damage=damage)
            return
    for inner in _folders(folder) if depth else ():
        yield from _found(inner, depth - 1)


def _marks(file: Path) -> bool:
    """Return whether a file marks a result; comparison.yaml alone may be what is yet to be run."""
    outputs = (file.with_name(name).exists() for name in (TABLE, CELLS))
    return file.is_file() and (file.name != COMPARISON or any(outputs))


def _folders(folder: Path) -> list[Path]:
    """Return the folders in one, without links and what is hidden; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            inside = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(folder / name for name in inside if not name.startswith("."))


def _run(result: Found) -> Found:
    if not (result.path / SUMMARY).is_file():
        config = read_yaml(result.path / CONFIG)
        what = f"{config.get('name')} on {at(config, 'dataset', 'kind')}"
        return replace(result, what=what, state="unfinished")
    summary = read_summary(result.path)
    measured = {column: value for column, value in summary.accuracy.metrics().items() if value is not None}
    main = metrics_in(measured)[:1]
    best = "".join(_measured(metric, measured[metric.column]) for metric in main)
    return replace(result, what=f"{summary.name} on {summary.dataset.kind}", best=best)


def _comparison(result: Found) -> Found:
    config, table = read_yaml(result.path / COMPARISON), result.path / TABLE
    cells = config.get("cells")
    planned = {str(key) for key in cells} if isinstance(cells, dict) else set()
    finished = {cell.name for cell in _folders(result.path / CELLS) if (cell / SUMMARY).is_file()}
    done = len(planned & finished)
    best = _best_of(table) if table.is_file() else ""
    state: State = "finished" if best and done == len(planned) else "unfinished"
    what = str(config.get("name"))
    return replace(result, what=what, done=done, planned=len(planned), best=best, state=state)


def _best_of(table: Path) -> str:
    """Return the best result with a bounded loss, by the main metric of the first thing that is predicted."""
    for evaluation, results in by_evaluation(read_results(table)).items():
        metric = evaluation.metric
        private = [result for result in results if result.baseline is None and result.private]
        values = [(value, result) for result in private if (value := result.mean(metric.column)) is not None]
        if values:
            value, best = min(values, key=lambda pair: metric.sort_key(pair[0]))
            budget = "" if best.budget is None else f", budget {best.budget:g}"
            return f"{_measured(metric, value)} ({best.name}{budget})"
        return plural(len(results), "result")
    return ""


def _measured(metric: Metric, value: float) -> str:
    return f"{metric.label} {number(value, metric.digits)}"


def _audit(result: Found) -> Found:
    path = result.path / AUDIT
    audit = parse_audit(read_text(path), str(path))
    if isinstance(audit, PresetsRecord):
        verdicts = [preset.holds for preset in audit.audits]
        return replace(
            result, what="all presets", best=f"{verdicts.count(False)} of {len(verdicts)} promises broken"
        )
    verdict = "not broken" if audit.holds else "broken"
    measured = f"{verdict}: ε = {loss(audit.promised)}, at least {loss(audit.lower_bound)}"
    return replace(result, what=audit.name, best=measured)


def _tuning(result: Found) -> Found:
    names = at(read_yaml(result.path / TUNING), "configurations")
    configurations = [str(name) for name in names] if isinstance(names, dict) else []
    done = sum(map(len, read_trials(result.path).values()))
    # A configuration with its best settings is written after the last of its trials.
    finished = configurations and all(
        (result.path / f"{name}.yaml").is_file() for name in configurations if "/" not in name
    )
    state: State = "finished" if finished else "unfinished"
    return replace(result, what=", ".join(configurations), done=done, best=f"{done} trials", state=state)


_KINDS: dict[tuple[Kind, str], Callable[[Found], Found]] = {
    ("comparison", COMPARISON): _comparison,
    ("tuning", TUNING): _tuning,
    ("audit", AUDIT): _audit,
    ("run", CONFIG): _run,
}
"""What is in a directory, by the first of these files that it holds."""
