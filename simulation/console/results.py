"""What commands print of their results: tables, notes beside them, and where everything is."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from dprec.errors import RunError
from dprec.protocols.base import TOLD
from simulation.analysis.answer import answer_to
from simulation.analysis.attacks import told
from simulation.analysis.audits import strength_of_tests
from simulation.analysis.columns import (
    BUDGET,
    SmallTable,
    brief_notes,
    declared_column,
    figure_column,
    round_columns,
    run_table,
    tables_of_comparison,
    text_column,
)
from simulation.analysis.gains import same_figures, worse_than_nothing
from simulation.analysis.populations import METHOD, Projection, notes_on_delta
from simulation.analysis.protocol_results import (
    ProtocolResult,
    by_evaluation,
    distinguishing_words,
    no_answer_yet,
    results_of,
)
from simulation.analysis.samples import reversed_by_samples
from simulation.analysis.vocabulary import QUICK_IN_WORDS, Metric, listed, main_metric, number
from simulation.configuration.strict_yaml import as_argument
from simulation.console.terminal import (
    FittedTable,
    fitted,
    print_json,
    print_lines,
    print_table,
    print_tables,
)
from simulation.storage.column import Column
from simulation.storage.columns import FIGURES, column
from simulation.storage.directories import ATTACK, AUDIT, REPORT, ROUNDS, SUMMARY, TABLE
from simulation.storage.files import Row
from simulation.tuning.running import TABLE_OF_TRIALS
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from dprec.protocols.findings import Finding
    from simulation.auditing import Audit, PresetAudit
    from simulation.comparison.running import ComparisonResult
    from simulation.result import RunResult
    from simulation.storage.attacked import Reached
    from simulation.tuning.running import Trial, Tuned

Marked = tuple[str, float | None]
"""A protocol and its budget."""

_HEADING = 12
"""Characters per line of a heading where there is room; where there is not, a line has at least a word."""

_FORMS = ((False, 2, None), (True, 2, None), (True, 1, None), (True, 1, 24), (True, 1, 18))
"""How tables are written, from the most room to the least: whether in brief, characters between two columns,
and characters per line of a name, which goes on after a hyphen."""


def _of_results(small: SmallTable, width: int | None, marked: Collection[Marked] = ()) -> FittedTable:
    """Return a table in the first form that fits with its main columns; others are left out, the last first.

    ``marked``: protocols and budgets whose lines have an asterisk.
    """
    forms = _FORMS if small.brief else _FORMS[:1]
    tables = [_in_form(small, width, marked, *form) for form in forms]
    others = len(small.columns) - small.main
    enough = (table for table in tables if table.left_out <= others)
    return next(enough, None) or min(tables, key=lambda table: table.left_out)


def _in_form(
    small: SmallTable,
    width: int | None,
    marked: Collection[Marked],
    brief: bool,
    gap: int,
    longest_name: int | None,
) -> FittedTable:
    """Return a table in one of the forms."""

    def name(result: ProtocolResult) -> str:
        title = result.title + " *" * ((result.name, result.budget) in marked)
        return title if longest_name is None else textwrap.fill(title, longest_name, break_long_words=False)

    columns, notes = small.columns, []
    if brief:
        # What is brief goes on in the next line.
        columns = tuple(replace(column, wrapped=not column.numeric) for column in small.in_brief)
        notes = brief_notes(small.results)
    ranked = [
        replace(column, rank=place) for place, column in enumerate([text_column(small.first, name), *columns])
    ]
    notes += (
        ["*: named above"] if any((result.name, result.budget) in marked for result in small.results) else []
    )
    heading = 1 if brief else _HEADING
    return fitted(ranked, small.results, width, small.title, "; ".join(notes), heading, gap)


def print_run(result: RunResult, folder: Path, users_a_day: float | None, saved_split: str | None) -> None:
    """Print a run: whether nothing sent does better, its table, what a reader must know, and where all is."""
    summary = result.summary
    metric, base = main_metric(summary["accuracy"]), summary.get("nothing_sent")
    if metric is not None and base is not None:
        warning = worse_than_nothing(summary["accuracy"][metric.column], base, metric)
        print_lines((warning, "") if warning else ())
    print_tables(lambda width: [_of_results(run_table(summary), width)], str(folder / SUMMARY))
    _print_rounds(result.record.rounds, metric, str(folder / ROUNDS))
    print_lines(f"- {note}" for note in result.record.summary.notes)
    print_projection(folder, users_a_day)
    _print_places("run", folder)
    if saved_split is not None:
        typer.echo(f"split: {saved_split}; runs on the same parts: {as_argument('dataset', saved_split)}")


_MOST_ROUNDS = 6


def _print_rounds(rounds: Sequence[RoundRecord], metric: Metric | None, where: str) -> None:
    """Print the first, the last and some rounds in between, if there are several."""
    if len(rounds) > 1:
        places = dict.fromkeys(round(place) for place in np.linspace(0, len(rounds) - 1, _MOST_ROUNDS))
        columns = round_columns(rounds, [] if metric is None else [metric])
        typer.echo()
        print_table(columns, [rounds[place] for place in places], where)


def comparison_answer(result: ComparisonResult) -> tuple[list[str], set[Marked]]:
    """Return what a comparison answers, the verdict first, and the lines of its tables that are named."""
    config = result.comparison.config
    run = {row["name"] for row in result.rows}
    waiting = no_answer_yet({cell.protocol for cell in result.comparison.cells}, run)
    groups = by_evaluation([line for line in results_of(result.rows) if line.population is None])
    sentences, marked = [], set[Marked]()
    for evaluation, results in groups.items():
        answer = answer_to(
            results, evaluation.metric, config.match.epsilon, config.match.delta, waiting=waiting
        )
        words = ", ".join(distinguishing_words(evaluation, list(groups)))
        sentences += [f"{words}: {sentence}" if words else sentence for sentence in answer.sentences]
        marked |= {(cell.best.name, cell.best.budget) for cell in answer.cells if cell.best}
    return list(dict.fromkeys(sentences)), marked


def comparison_tables(
    rows: Sequence[Row], width: int | None = None, marked: Collection[Marked] = ()
) -> list[FittedTable]:
    """Return one table per evaluation, with one line per protocol and epsilon.

    ``rows``: the lines of comparison.csv.
    ``width``: characters that there are; by default, enough.
    ``marked``: protocols and budgets whose lines have an asterisk.
    """
    return [_of_results(table, width, marked) for table in tables_of_comparison(rows)]


def print_comparison(result: ComparisonResult, users_a_day: float | None) -> None:
    """Print a comparison: its answer, its tables, what a reader must know, and where everything is."""
    sentences, marked = comparison_answer(result) if result.rows else ([], set[Marked]())
    print_lines([*sentences, *([""] if sentences else [])])
    print_tables(lambda width: comparison_tables(result.rows, width, marked), _where(result.directory))
    print_lines(f"- {note}" for note in _comparison_notes(result))
    print_lines(f"- Left out: {name}: {why}" for name, why in result.comparison.left_out.items())
    if result.rows:
        print_projection(result.directory, users_a_day)
    _print_places("comparison", result.directory)


def _comparison_notes(result: ComparisonResult) -> Iterator[str]:
    """Yield what a reader of the tables must know beside them."""
    results = results_of(result.rows)
    if result.comparison.config.quick:
        yield f"Quick: {QUICK_IN_WORDS}"
    if (delta := result.comparison.config.match.delta) is not None:
        yield from notes_on_delta(delta, results)
    yield from result.notes_on_ratings()
    if informed := dict.fromkeys(result.name for result in results if result.baseline == TOLD):
        yield f"Told which items they are tested on, and compared with no other: {listed(list(informed))}."
    for evaluation, group in by_evaluation([line for line in results if line.population is None]).items():
        yield from same_figures(group, evaluation.metric)
        yield from reversed_by_samples(group)


def conclude_attack(result: RunResult | ComparisonResult, folder: Path, *, quiet: bool) -> None:
    """Print what attacks reached, and where everything is; raises RunError where runs have failed."""
    from simulation.result import RunResult

    if isinstance(result, RunResult):
        summary = result.record.summary.attacks
        if not quiet and summary is not None:
            columns: list[Column[tuple[str, Reached]]] = [
                replace(text_column("", lambda line: column(line[0]).title), wrapped=True),
                figure_column("reached", "", lambda line: line[1].value, 3),
                figure_column("nothing sent", "", lambda line: line[1].baseline, 3),
                figure_column("epsilon allows", "", lambda line: line[1].bound, 3),
            ]
            figures = told(summary.reached, result.record.summary.accuracy.metrics())
            print_table(columns, list(figures.items()), str(folder / ATTACK))
            print_lines(f"- {note}" for attack in summary.performed for note in attack.notes)
            _print_places("run", folder)
        return
    if not quiet and result.rows:
        # One line per protocol and epsilon.
        results = tuple(line for line in results_of(result.rows) if line.population is None)
        declared = [figure for figure in FIGURES if (figure.key or "").startswith("attacks.")]
        reached = [figure for figure in declared if not figure.name.endswith(("_baseline", "_bound"))]
        reached_columns = [
            declared_column(figure) for figure in reached if any(line.has(figure) for line in results)
        ]
        small = SmallTable(None, "protocol", (BUDGET, *reached_columns), results)
        print_tables(lambda width: [_of_results(small, width)], _where(result.directory))
    if not quiet:
        _print_places("comparison", result.directory)
    check_complete(result)


def check_complete(result: ComparisonResult) -> None:
    """Refuse a comparison in which runs have failed.

    Raises RunError with the first reason, and how to go on.
    """
    if result.failures:
        key, reason = next(iter(result.failures.items()))
        failed = f"{len(result.failures)} of {len(result.comparison.cells)} cells failed, {key}: {reason}"
        raise RunError(f"{failed}; the same command with --resume -o {result.directory} runs them again")


def print_projection(folder: Path, users_a_day: float | None) -> None:
    """Print the projected traffic of so many users, one line per direction or protocol, if there is one."""
    if users_a_day is None:
        return
    from simulation.pages import projected

    columns: list[Column[tuple[str, Projection]]] = [
        text_column("", lambda row: row[0]),
        figure_column("bytes a day", "", lambda row: row[1].total, 0),
        replace(figure_column("from", "", lambda row: row[1].low, 0), rank=1),
        replace(figure_column("to", "", lambda row: row[1].high, 0), rank=1),
        figure_column("mean Mbit/s", "", lambda row: row[1].bits_per_second / 1e6, 2),
    ]
    title = f"traffic of {users_a_day:,.0f} users a day, each taking part once"
    print_table(columns, projected(folder, users_a_day), str(folder / REPORT), title, METHOD)


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
    """Print an audit, a line per test; raises RunError when the promise is broken."""

    def verdict(finding: Finding) -> str:
        return f"{finding.defect or 'no evidence against it'}; {finding.strength}"

    columns: list[Column[Finding]] = [
        replace(text_column("test", lambda finding: finding.test), wrapped=True),
        replace(text_column("promised for a", lambda finding: finding.unit), rank=2),
        figure_column("ε promised", "", lambda finding: finding.promised, 4),
        replace(figure_column("ε charged", "", lambda finding: finding.charged, 4), rank=1),
        figure_column("ε at least", "", lambda finding: finding.at_least, 4),
        replace(text_column("verdict", verdict), wrapped=True),
    ]
    if as_json:
        typer.echo(audit.to_json(), nl=False)
    elif not quiet:
        people = f"{audit.trials:,} people per profile"
        caption = f"{people}; all bounds hold together with probability {audit.confidence:g}"
        files = f"{folder / AUDIT} and {folder / REPORT}"
        print_table(columns, audit.findings, files, caption=caption)
        print_lines([strength_of_tests(audit.values()["findings"])] if audit.holds else [])
        _print_places("audit", folder)
    if not audit.holds:
        raise RunError(audit.verdict)


def conclude_presets(presets: Sequence[PresetAudit], folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Print the audits of all presets, or why there is none; raises RunError when a promise is broken."""

    def verdict(preset: PresetAudit) -> str:
        if preset.audit is None:
            return preset.reason
        return preset.audit.verdict + (f" (as {preset.same_as})" if preset.same_as else "")

    columns: list[Column[PresetAudit]] = [
        text_column("preset", lambda preset: preset.name),
        figure_column("ε promised", "", lambda preset: preset.audit.promised if preset.audit else None, 4),
        figure_column("ε at least", "", lambda preset: preset.audit.lower_bound if preset.audit else None, 4),
        replace(
            figure_column("seconds", "", lambda preset: preset.seconds if preset.audit else None, 1), rank=1
        ),
        replace(text_column("verdict", verdict), wrapped=True),
    ]
    if as_json:
        print_json([preset.values() for preset in presets])
    elif not quiet:
        print_table(columns, presets, f"{folder / AUDIT} and {folder / REPORT}")
        _print_places("audit", folder)
    broken = [preset.name for preset in presets if preset.audit is not None and not preset.audit.holds]
    if broken:
        raise RunError(f"{len(broken)} of {len(presets)} presets break a promise: {', '.join(broken)}")


def print_tuning(tuned: Sequence[Tuned], folder: Path) -> None:
    """Print a tuning: a line per configuration, what its trials cost, and where everything is."""

    def value(tuning: Tuned, trial: Trial | None) -> str:
        return number(None if trial is None else trial.judgement.value, tuning.metric.digits)

    def settings(tuning: Tuned) -> str:
        best: Mapping[str, Any] = {} if tuning.best is None else tuning.best.settings
        return ", ".join(
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in best.items()
        )

    columns: list[Column[Tuned]] = [
        text_column("configuration", lambda tuning: tuning.config.name),
        replace(figure_column("trials", "", lambda tuning: len(tuning.trials), 0), rank=1),
        replace(figure_column("could not run", "", lambda tuning: tuning.failed, 0), rank=1),
        text_column("metric", lambda tuning: tuning.metric.label),
        replace(text_column("as it was", lambda tuning: value(tuning, tuning.start)), holds=float),
        replace(text_column("best", lambda tuning: value(tuning, tuning.best)), holds=float),
        replace(text_column("best settings", settings), wrapped=True),
    ]
    print_table(columns, tuned, str(folder / TABLE_OF_TRIALS))
    print_lines(f"- {tuning.privacy_note}" for tuning in tuned)
    typer.echo(f"tuning directory: {folder}")
