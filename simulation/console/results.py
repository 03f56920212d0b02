"""What commands print of their results: tables, notes beside them, and where everything is."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dprec.errors import RunError
from simulation.analysis.answer import answer_to
from simulation.analysis.columns import (
    BUDGET,
    GAIN_IN_BRIEF,
    ResultColumn,
    SmallTable,
    declared_column,
    figure_column,
    run_table,
    tables_of_comparison,
    text_column,
)
from simulation.analysis.gains import baseline_in_words, nothing_sent, same_figures, worse_than_nothing
from simulation.analysis.populations import METHOD, Projection
from simulation.analysis.protocol_results import (
    ProtocolResult,
    by_evaluation,
    distinguishing_words,
    no_answer_yet,
    notes_on_delta,
    results_of,
)
from simulation.analysis.vocabulary import QUICK_IN_WORDS, main_metric, number
from simulation.console.terminal import Fitted, console, fitted, print_lines, table_console, width_of
from simulation.storage.column import Column
from simulation.storage.columns import FIGURES, column
from simulation.storage.directories import ATTACK, AUDIT, REPORT, SUMMARY, TABLE
from simulation.storage.files import Row
from simulation.tuning.running import TABLE_OF_TRIALS

if TYPE_CHECKING:
    from simulation.auditing import Audit, PresetAudit
    from simulation.comparison.running import ComparisonResult
    from simulation.protocols.base import Finding
    from simulation.result import RunResult
    from simulation.storage.attacked import AttackSummary, Reached
    from simulation.tuning.running import Trial, Tuned


def results_table(summary: Mapping[str, Any], width: int | None = None) -> Fitted:
    """Return a run as one line: accuracy, privacy and bytes side by side."""
    return _of_results(run_table(summary), width)


def comparison_answer(result: ComparisonResult) -> tuple[list[str], set[Marked]]:
    """Return what a comparison answers, the verdict first, and the lines of its tables that are named."""
    config = result.comparison.config
    run = {row["name"] for row in result.rows}
    waiting = no_answer_yet({cell.protocol for cell in result.comparison.cells}, run)
    groups = by_evaluation([each for each in results_of(result.rows) if each.population is None])
    said, marked = [], set[Marked]()
    for evaluation, results in groups.items():
        answer = answer_to(
            results, evaluation.metric, config.match.epsilon, config.match.delta, waiting=waiting
        )
        words = ", ".join(distinguishing_words(evaluation, list(groups)))
        said += [f"{words}: {each}" if words else each for each in answer.sentences]
        marked |= {(each.best.name, each.best.budget) for each in answer.cells if each.best}
    return list(dict.fromkeys(said)), marked


def comparison_tables(
    rows: Sequence[Row], width: int | None = None, marked: Collection[Marked] = ()
) -> list[Fitted]:
    """Return one table per evaluation, with one line per protocol and epsilon.

    ``rows``: the lines of comparison.csv.
    ``width``: characters that there are; by default, enough.
    ``marked``: protocols and budgets whose lines have an asterisk.
    """
    return [_of_results(table, width, marked) for table in tables_of_comparison(rows)]


def comparison_notes(result: ComparisonResult) -> Iterator[str]:
    """Yield what a reader of the tables must know beside them."""
    if result.comparison.config.quick:
        yield f"Quick: {QUICK_IN_WORDS}"
    if (delta := result.comparison.config.match.delta) is not None:
        yield from notes_on_delta(delta, results_of(result.rows))
    yield from result.notes_on_ratings()
    own = [each for each in results_of(result.rows) if each.population is None]
    for evaluation, results in by_evaluation(own).items():
        yield from same_figures(results, evaluation.metric)


def _audit_table(audit: Audit, width: int | None = None) -> Fitted:
    """Return one line per test: the epsilon that is promised, its lower bound, and the verdict."""

    def verdict(finding: Finding) -> str:
        return f"{finding.defect or 'no evidence against it'}; {finding.strength}"

    columns: list[Column[Finding]] = [
        replace(text_column("test", lambda each: each.test), wrapped=True),
        replace(text_column("promised for a", lambda each: each.unit), rank=2),
        figure_column("ε promised", "", lambda each: each.promised, 4),
        replace(figure_column("ε charged", "", lambda each: each.charged, 4), rank=1),
        figure_column("ε at least", "", lambda each: each.at_least, 4),
        replace(text_column("verdict", verdict), wrapped=True),
    ]
    people = f"{audit.trials:,} people per profile"
    caption = f"{people}; all bounds hold together with probability {audit.confidence:g}"
    return fitted(columns, audit.findings, width, caption=caption)


def _presets_table(presets: Sequence[PresetAudit], width: int | None = None) -> Fitted:
    """Return one line per preset: what its audit found, or why there is none."""

    def verdict(preset: PresetAudit) -> str:
        if preset.audit is None:
            return preset.reason
        return preset.audit.verdict + (f" (as {preset.same_as})" if preset.same_as else "")

    columns: list[Column[PresetAudit]] = [
        text_column("preset", lambda each: each.name),
        figure_column("ε promised", "", lambda each: each.audit.promised if each.audit else None, 4),
        figure_column("ε at least", "", lambda each: each.audit.lower_bound if each.audit else None, 4),
        replace(figure_column("seconds", "", lambda each: each.seconds if each.audit else None, 1), rank=1),
        replace(text_column("verdict", verdict), wrapped=True),
    ]
    return fitted(columns, presets, width)


_HEADING = 12
"""Characters per line of a heading where there is room; where there is not, a line has at least a word."""


Marked = tuple[str, float | None]
"""A protocol and its budget."""


def _of_results(small: SmallTable, width: int | None, marked: Collection[Marked] = ()) -> Fitted:
    """Return a table whose last columns are left out first, brief if more of them fit then."""
    rest = small.columns[len(small.brief) :]
    whole = _fitted_results(small, small.columns, width, marked, brief=False)
    brief = _fitted_results(small, (*small.brief, *rest), width, marked, brief=True)
    return whole if whole.left_out <= brief.left_out else brief


def _fitted_results(
    small: SmallTable,
    columns: Sequence[ResultColumn],
    width: int | None,
    marked: Collection[Marked],
    *,
    brief: bool,
) -> Fitted:
    def name(result: ProtocolResult) -> str:
        return result.title + " *" * ((result.name, result.budget) in marked)

    # What is brief goes on in the next line.
    ordered = [replace(each, wrapped=brief and not each.numeric) for each in columns]
    ranked = [
        replace(each, rank=place) for place, each in enumerate([text_column(small.first, name), *ordered])
    ]
    base = nothing_sent(small.results) if any(each.title == GAIN_IN_BRIEF for each in columns) else None
    notes = [f"gain: over {baseline_in_words(base)}; n.s.: not significant"] if brief and base else []
    notes += ["*: named above"] if any(name(each).endswith(" *") for each in small.results) else []
    heading = 1 if brief else _HEADING
    return fitted(ranked, small.results, width, small.title, "; ".join(notes), heading)


def projection_table(
    rows: Sequence[tuple[str, Projection]], population: float, width: int | None = None
) -> Fitted:
    """Return the projected traffic of a population, one row per direction or protocol."""
    columns: list[Column[tuple[str, Projection]]] = [
        text_column("", lambda row: row[0]),
        figure_column("bytes a day", "", lambda row: row[1].total, 0),
        replace(figure_column("from", "", lambda row: row[1].low, 0), rank=1),
        replace(figure_column("to", "", lambda row: row[1].high, 0), rank=1),
        figure_column("mean Mbit/s", "", lambda row: row[1].bits_per_second / 1e6, 2),
    ]
    title = f"traffic of {population:,.0f} users a day, each taking part once"
    return fitted(columns, rows, width, title, METHOD)


def print_tables(make: Callable[[int | None], Sequence[Fitted]], everything: str) -> None:
    """Print tables; on a terminal they fit, and what is left out is said.

    ``make``: returns the tables for a width.
    ``everything``: where all columns are.
    """
    width = width_of(console())
    tables = make(width)
    shown = table_console(max((each.width for each in tables), default=0))
    for place, each in enumerate(tables):
        shown.print(*([""] if place else []), each.table)
    narrowest = max(tables, key=lambda each: each.left_out, default=None)
    if narrowest is not None and narrowest.left_out:
        columns = f"{narrowest.left_out} of {narrowest.columns} columns"
        print_lines([f"left out in a width of {width}: {columns}; all are in {everything}"])


def print_run(result: RunResult, folder: Path, population: float | None) -> None:
    """Print a run: whether nothing sent does better, its table, what a reader must know, and where all is."""
    print_lines(_worse(result.summary))
    print_tables(lambda width: [results_table(result.summary, width)], str(folder / SUMMARY))
    print_lines(f"- {note}" for note in result.record.summary.notes)
    print_projection(folder, population)
    _print_places("run", folder)


def _worse(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield that a run is worse than nothing sent, if it is."""
    metric, base = main_metric(summary["accuracy"]), summary.get("nothing_sent")
    if metric is not None and base is not None:
        said = worse_than_nothing(summary["accuracy"][metric.column], base, metric)
        yield from (said, "") if said else ()


def print_comparison(result: ComparisonResult, population: float | None) -> None:
    """Print a comparison: its answer, its tables, what a reader must know, and where everything is."""
    said, marked = comparison_answer(result) if result.rows else ([], set[Marked]())
    print_lines([*said, *([""] if said else [])])
    print_tables(lambda width: comparison_tables(result.rows, width, marked), _where(result.directory))
    print_lines(f"- {note}" for note in comparison_notes(result))
    print_lines(f"- {each.name} is left out: {each.reason}" for each in result.comparison.left_out)
    if result.rows:
        print_projection(result.directory, population)
    _print_places("comparison", result.directory)


def _attack_table(summary: AttackSummary, width: int | None = None) -> Fitted:
    """Return one line per figure of the attacks on a run."""
    columns: list[Column[tuple[str, Reached]]] = [
        text_column("", lambda line: column(line[0]).title),
        figure_column("reached", "", lambda line: line[1].value, 3),
        figure_column("nothing sent", "", lambda line: line[1].baseline, 3),
        figure_column("epsilon allows", "", lambda line: line[1].bound, 3),
    ]
    return fitted(columns, list(summary.reached.items()), width)


def _attacked_tables(rows: Sequence[Row], width: int | None = None) -> list[Fitted]:
    """Return what attacks reached in a comparison: one line per protocol and epsilon."""
    results = tuple(each for each in results_of(rows) if each.population is None)
    declared = [each for each in FIGURES if (each.key or "").startswith("attacks.")]
    reached = [each for each in declared if not each.name.endswith(("_baseline", "_bound"))]
    shown = [declared_column(each) for each in reached if any(own.has(each) for own in results)]
    return [_of_results(SmallTable(None, "protocol", (BUDGET, *shown), results), width)]


def conclude_attack(result: RunResult | ComparisonResult, folder: Path, *, quiet: bool) -> None:
    """Print what attacks reached, and where everything is; raises RunError where runs have failed."""
    from simulation.result import RunResult

    if not isinstance(result, RunResult):
        if not quiet and result.rows:
            print_tables(lambda width: _attacked_tables(result.rows, width), _where(result.directory))
        if not quiet:
            _print_places("comparison", result.directory)
        check_complete(result)
        return
    summary = result.record.summary.attacks
    if not quiet and summary is not None:
        print_tables(lambda width: [_attack_table(summary, width)], str(folder / ATTACK))
        print_lines(f"- {note}" for each in summary.performed for note in each.notes)
        _print_places("run", folder)


def check_complete(result: ComparisonResult) -> None:
    """Refuse a comparison in which runs have failed.

    Raises RunError with the first reason, and how to go on.
    """
    if result.failures:
        key, reason = next(iter(result.failures.items()))
        failed = f"{len(result.failures)} of {len(result.comparison.cells)} cells failed, {key}: {reason}"
        raise RunError(f"{failed}; --resume -o {result.directory} runs them again")


def print_projection(folder: Path, population: float | None) -> None:
    """Print the projected traffic of a population, if there is one."""
    if population is not None:
        from simulation.pages import projected

        rows = projected(folder, population)
        print_tables(lambda width: [projection_table(rows, population, width)], str(folder / REPORT))


def _print_places(what: str, folder: Path) -> None:
    """Print where the page of a directory is, if it was drawn, and where the rest."""
    if (folder / REPORT).is_file():
        typer.echo(f"page: {folder / REPORT}")
    typer.echo(f"{what} directory: {folder}")


def _where(folder: Path) -> str:
    """Return where every column of a comparison is."""
    page = folder / REPORT
    return f"{folder / TABLE} and {page}" if page.is_file() else str(folder / TABLE)


def conclude(audit: Audit, folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Print an audit; raises RunError when the promise is broken."""
    _show_audit(lambda width: _audit_table(audit, width), audit.to_json, folder, as_json, quiet)
    if not audit.holds:
        raise RunError(audit.verdict)


def conclude_presets(presets: Sequence[PresetAudit], folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Print the audits of all presets; raises RunError when one of the promises is broken."""

    def to_json() -> str:
        return json.dumps([preset.values() for preset in presets], indent=2) + "\n"

    _show_audit(lambda width: _presets_table(presets, width), to_json, folder, as_json, quiet)
    broken = [preset.name for preset in presets if preset.audit is not None and not preset.audit.holds]
    if broken:
        raise RunError(f"{len(broken)} of {len(presets)} presets break a promise: {', '.join(broken)}")


def _show_audit(
    table: Callable[[int | None], Fitted],
    to_json: Callable[[], str],
    folder: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    if as_json:
        typer.echo(to_json(), nl=False)
    elif not quiet:
        print_tables(lambda width: [table(width)], f"{folder / AUDIT} and {folder / REPORT}")
        _print_places("audit", folder)


def print_tuning(tuned: Sequence[Tuned], folder: Path) -> None:
    """Print a tuning: a line per configuration, what its trials cost, and where everything is."""
    print_tables(lambda width: [_tuning_table(tuned, width)], str(folder / TABLE_OF_TRIALS))
    print_lines(f"- {each.privacy_note}" for each in tuned)
    typer.echo(f"tuning directory: {folder}")


def _tuning_table(tuned: Sequence[Tuned], width: int | None) -> Fitted:
    def value(each: Tuned, trial: Trial | None) -> str:
        return number(None if trial is None else trial.judgement.value, each.metric.digits)

    def settings(each: Tuned) -> str:
        best = {} if each.best is None else each.best.settings
        return ", ".join(
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in best.items()
        )

    columns: list[Column[Tuned]] = [
        text_column("configuration", lambda each: each.config.name),
        replace(figure_column("trials", "", lambda each: len(each.trials), 0), rank=1),
        replace(figure_column("could not run", "", lambda each: each.failed, 0), rank=1),
        text_column("metric", lambda each: each.metric.label),
        replace(text_column("as it was", lambda each: value(each, each.start)), holds=float),
        replace(text_column("best", lambda each: value(each, each.best)), holds=float),
        replace(text_column("best settings", settings), wrapped=True),
    ]
    return fitted(columns, tuned, width)
