"""The columns of tables of results, and the tables of pages, terminal and notebooks that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from dprec.accounting import ComparableUnit
from simulation.analysis.gains import (
    NOTHING_SENT,
    Gain,
    baseline_in_words,
    from_best,
    gain_digits,
    held_against,
    is_best,
    nothing_sent,
)
from simulation.analysis.protocol_results import (
    BYTES,
    COMPOSED,
    EPSILON,
    NETWORK_BYTES,
    ProtocolResult,
    at_reference,
    by_accuracy,
    by_evaluation,
    distinguishing_words,
    metrics_of,
    results_of,
)
from simulation.analysis.vocabulary import (
    DASH,
    Metric,
    headlines,
    loss,
    number,
    size,
    spread_in_words,
    unit_in_words,
    with_spread,
)
from simulation.storage.column import Column, Line
from simulation.storage.columns import ACROSS, FIGURES, figure, figures_of
from simulation.storage.files import Row
from strategies.participation import RoundRecord

Held = TypeVar("Held")

ResultColumn = Column[ProtocolResult]
"""A column of a table with one line per result."""


def held_column(
    title: str,
    unit: str,
    content_of: Callable[[Line], Held | None],
    key: Callable[[Held], float | str],
    written: Callable[[Held], str],
    *,
    numeric: bool = True,
) -> Column[Line]:
    """Return a column of what lines hold: what it is sorted by, and how it is written; a dash for None."""

    def value(line: Line) -> float | str | None:
        content = content_of(line)
        return None if content is None else key(content)

    def text(line: Line) -> str:
        content = content_of(line)
        return DASH if content is None else written(content)

    return Column(title, unit, value=value, text=text, holds=float if numeric else str)


def text_column(title: str, text: Callable[[Line], object], unit: str = "") -> Column[Line]:
    """Return a column of text; a dash stands for None."""
    return held_column(title, unit, text, str, str, numeric=False)


def figure_column(
    title: str, unit: str, value: Callable[[Line], float | None], written: int | Callable[[float], str]
) -> Column[Line]:
    """Return a column of numbers, with so many decimals or written in a way of their own; a dash for None."""

    def write(quantity: float) -> str:
        return number(quantity, written) if isinstance(written, int) else written(quantity)

    return held_column(title, unit, value, lambda quantity: quantity, write)


_OF_PROFILES = ("privacy.epsilon_per_user.", "privacy.epsilon_composed.")
"""Beginnings of the keys of losses that say for which profiles they hold."""


def declared_column(declared: Column[Any]) -> ResultColumn:
    """Return a column of comparison.csv as it is declared, averaged over folds and seeds."""
    of_profiles = (declared.key or "").startswith(_OF_PROFILES)

    def text(result: ProtocolResult) -> str:
        value = result.value(declared)
        written = loss(value) if declared.written == "loss" else number(value, declared.digits)
        return written + (result.profiles_compared(value) if of_profiles else "")

    words: ResultColumn = text_column("", lambda result: result.text(declared))
    numeric = {"value": lambda result: result.value(declared), "text": text}
    accessors = numeric if declared.numeric else {"value": words.value, "text": words.text}
    return replace(declared, **accessors, figures=(declared.name,))


def accuracy_column(metric: Metric) -> ResultColumn:
    """Return the column of a metric."""
    averages: ResultColumn = figure_column(
        metric.label, "", lambda result: result.mean(metric.column), metric.digits
    )
    return replace(averages, figures=(metric.column,))


def spread_column(
    metric: Metric, results: Sequence[ProtocolResult], *, direction: bool = False
) -> ResultColumn:
    """Return the column of a metric with its standard deviations, over seeds and folds as the unit says."""
    averages = [average for result in results if (average := result.average(metric.column))]
    return replace(
        accuracy_column(metric),
        unit=_unit(metric.direction if direction else "", spread_in_words(averages)),
        text=lambda result: with_spread(result.average(metric.column), metric.digits),
    )


_NOT_SIGNIFICANT = "n.s."


def baseline_columns(
    metric: Metric, results: Sequence[ProtocolResult], *, brief: bool = False
) -> list[ResultColumn]:
    """Return the columns that hold results against nothing sent; none where that was not run.

    That of lines that know nothing of the items, beside others that do, is a column of its own.
    """

    def in_brief(against: Gain) -> str:
        doubtful = against.low is not None and not against.significant
        return _NOT_SIGNIFICANT if doubtful else f"{against.mean:+.{against.digits}f}"

    columns = []
    for base, gained in held_against(results, metric):
        if brief:
            return [held_column("gain", "", gained, attrgetter("mean"), in_brief)]
        intervals = dict.fromkeys(against.interval for result in results if (against := gained(result)))
        title, unit = f"against {baseline_in_words(base)}", _unit(metric.label, *intervals)
        columns.append(held_column(title, unit, gained, attrgetter("mean"), attrgetter("written")))
    return columns


def best_columns(metric: Metric, results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return the column that holds every result against the best of its budget; none without intervals."""
    compared, digits = [gain for result in results if (gain := from_best(result))], gain_digits(metric)
    best = Gain(0.0, None, None, digits)

    def behind(result: ProtocolResult) -> Gain | None:
        return best if is_best(result) else from_best(result)

    def text(gain: Gain) -> str:
        width = f" ± {number(gain.half_width, digits)}" + ("" if gain.significant else ", not significant")
        return "best" if gain is best else number(-gain.mean, digits) + width

    unit = _unit(f"{metric.label}, same ε asked", *dict.fromkeys(gain.interval for gain in compared))
    return (
        [held_column("behind the best", unit, behind, lambda gain: 0.0 - gain.mean, text)] if compared else []
    )


def _unit(first: str, *spreads: str) -> str:
    """Join a unit with what the ± in its column is."""
    named = " or ".join(spread for spread in spreads if spread)
    return ", ".join(part for part in (first, f"± {named}" if named else "") if part)


def composed_column(results: Sequence[ProtocolResult]) -> ResultColumn:
    """Return the column of losses per user by composition; its unit has the delta with which they hold."""
    return replace(declared_column(COMPOSED), unit=", ".join(["largest", *_deltas(results)]))


def _deltas(results: Sequence[ProtocolResult]) -> list[str]:
    """Return every delta with which losses were composed, the smallest first."""
    return [
        f"δ={delta:g}" for delta in sorted({result.delta for result in results if result.delta is not None})
    ]


def _loss_column(unit: ComparableUnit) -> ResultColumn:
    """Return the column of the largest proved losses in a unit, beside those that are claimed."""

    def text(result: ProtocolResult) -> str:
        proved, claimed = result.epsilon(unit), result.claimed(unit)
        beside = "" if claimed is None else f" ({result.word} {loss(claimed)})"
        compared = result.profiles_compared(claimed if proved is None else proved) if unit == "user" else ""
        return f"{loss(proved)}{beside}{compared}"

    return replace(declared_column(EPSILON[unit]), text=text)


def losses_of(results: Sequence[ProtocolResult]) -> tuple[ResultColumn, ResultColumn]:
    """Return the columns of the losses of a rating, or an item where all are lists, and of a user."""
    rating, user = LOSSES
    unit = unit_in_words("rating", lists=all(result.lists for result in results))
    return replace(rating, title=f"ε per {unit}"), user


BUDGET: ResultColumn = figure_column("budget", "ε", attrgetter("budget"), "{:g}".format)
LOSSES = (_loss_column("rating"), _loss_column("user"))
ANY_TWO = declared_column(figure(lambda run: run.privacy.epsilon_any_two))
BYTES_BOTH_WAYS = tuple(map(declared_column, BYTES))
NETWORK: ResultColumn = replace(
    figure_column("network bytes", "per user", attrgetter("network_bytes_per_user"), 0),
    figures=tuple(column.name for column in NETWORK_BYTES),
)
RUNS: ResultColumn = figure_column("runs", "", lambda result: len(result.rows), 0)
STATUS: ResultColumn = replace(text_column("privacy", attrgetter("status")), figures=("status",))
TRUST: ResultColumn = replace(text_column("trust", attrgetter("trust")), figures=("trust",))
SERVER_SEES: ResultColumn = text_column("server sees", attrgetter("server_sees"))


def _and_declared(
    placed: Sequence[ResultColumn], results: Sequence[ProtocolResult], *places: str
) -> tuple[ResultColumn, ...]:
    """Return columns, and after them those declared for such tables that none of them shows."""
    covered = {name for column in placed for name in column.figures}
    others = [
        declared
        for declared in (*FIGURES, *ACROSS)
        if declared.where in places and declared.better is None and declared.name not in covered
    ]
    filled = (declared for declared in others if any(result.has(declared) for result in results))
    return (*placed, *map(declared_column, filled))


def every_column(metric: Metric, results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return all that a table says of results that predict the same, the main metric first.

    A figure that is added to the summary of a run gets its column here.
    """
    metrics = [metric, *(further for further in metrics_of(results) if further != metric)]
    main, *others = [spread_column(accuracy, results, direction=True) for accuracy in metrics]
    against = [*baseline_columns(metric, results), *best_columns(metric, results)]
    losses = [*losses_of(results), composed_column(results), ANY_TWO]
    price = [SERVER_SEES, *BYTES_BOTH_WAYS, NETWORK]
    placed = [BUDGET, main, *against, *others, STATUS, TRUST, *losses, *price]
    return list(_and_declared(placed, results, "everywhere", "page"))


MOST_ROWS = 10
"""Rows that are shown before the rest is unfolded."""


def headline_rows(
    results: Sequence[ProtocolResult], metric: Metric
) -> tuple[list[ProtocolResult], list[ProtocolResult]]:
    """Return one result per protocol, at the reference budget or its nearest, the most accurate first.

    Those that are shown come first, nothing sent always among them, and then the others.
    """
    ordered = by_accuracy(at_reference(results), metric)
    others = [result for result in ordered if result.baseline != NOTHING_SENT]
    left_out = others[MOST_ROWS - (len(ordered) - len(others)) :]
    return [result for result in ordered if result not in left_out], left_out


def asked_column(unit: ComparableUnit) -> ResultColumn:
    """Return the column of the budgets that were asked for, with what is claimed where they are not kept.

    A budget that is not for the unit says for what it is, and with which delta if it holds with one alone.
    """

    def value(result: ProtocolResult) -> float | None:
        # Where nothing is spent, 0 is asked for.
        return 0.0 if result.budget is None and result.epsilon("user") == 0 else result.budget

    def text(result: ProtocolResult) -> str:
        budget, claimed, proved = value(result), result.claimed(unit), result.epsilon(unit)
        if budget is None:
            return DASH
        words = f"{budget:g}{result.asked_otherwise(unit)}"
        if not result.falls_short:
            return words
        if claimed not in (None, budget):
            return f"{words}, {'declared' if result.status == 'declared' else 'claims'} {loss(claimed)}"
        differs = proved is not None and loss(proved) != loss(budget)
        return f"{words} {result.word}" + (f", {loss(proved)} proved" if differs else "")

    return Column("ε asked", f"per {unit}", value=value, text=text, holds=float)


def headline_columns(
    results: Sequence[ProtocolResult], metric: Metric, unit: ComparableUnit
) -> list[ResultColumn]:
    """Return the columns of the headline, after the name of the protocol."""
    network: ResultColumn = figure_column("network", "per user", attrgetter("network_bytes_per_user"), size)
    return [
        asked_column(unit),
        ANY_TWO,
        replace(composed_column(results), title="ε composed"),
        spread_column(replace(metric, digits=gain_digits(metric)), results),
        *baseline_columns(metric, results),
        figure_column("messages", "per user", attrgetter("bytes_per_user"), size),
        replace(network, figures=NETWORK.figures),
        SERVER_SEES,
    ]


def _network_column(title: str, declared: Column[Any]) -> ResultColumn:
    return figure_column(title, "per user", lambda result: result.mean(declared), size)


_ASKED = replace(BUDGET, title="ε asked", unit="")


def _asked_columns(results: Sequence[ProtocolResult]) -> tuple[ResultColumn, ResultColumn]:
    """Return the column of the budgets, and that in brief; where their units differ, with these."""
    if len({result.asked_per_user for result in results if result.budget is not None}) < 2:
        return _ASKED, _ASKED

    def named(link: str, result: ProtocolResult) -> str:
        return _ASKED.text(result) + f"{link}per user" * result.asked_per_user

    column = replace(_ASKED, unit="per rating")
    return replace(column, text=partial(named, " ")), replace(column, text=partial(named, "\n"))


_NETWORK_BOTH_WAYS = tuple(
    replace(_network_column(title, column), figures=(column.name,))
    for title, column in zip(("network up", "network down"), NETWORK_BYTES, strict=True)
)


def _brief_loss(result: ProtocolResult) -> str:
    """Write the proved loss of a user, and below it what is claimed and which profiles are compared."""
    proved, claimed = result.epsilon("user"), result.claimed("user")
    beside = [] if claimed is None else [f"{result.word} {loss(claimed)}"]
    compared = result.profiles_compared(claimed if proved is None else proved, "")
    return "\n".join([loss(proved), *beside, *filter(None, [compared])])


def _brief_composed(result: ProtocolResult) -> str:
    """Write the composed loss of a user, with the profiles compared unless the other loss has them."""
    has_other_loss = result.epsilon("user") is not None or result.claimed("user") is not None
    compared = "" if has_other_loss else result.profiles_compared(result.composed, "\n")
    return loss(result.composed) + compared


_BRIEF_COSTS = (
    replace(LOSSES[1], unit="", text=_brief_loss),
    replace(declared_column(COMPOSED), title="ε composed", unit="", text=_brief_composed),
    *(replace(column, unit="") for column in _NETWORK_BOTH_WAYS),
)


def brief_notes(results: Sequence[ProtocolResult]) -> list[str]:
    """Return what a reader of columns in brief must know."""
    base, deltas = nothing_sent(results), _deltas(results)
    gain = [f"gain: over {baseline_in_words(base)}; {_NOT_SIGNIFICANT}: not significant"] if base else []
    return [*gain, *([f"ε composed: {', '.join(deltas)}"] if deltas else []), "network: bytes per user"]


@dataclass(frozen=True)
class SmallTable:
    """A table with one line per result."""

    title: str | None
    first: str
    """Heading of the results' names."""
    columns: tuple[ResultColumn, ...]
    """The most important first."""
    results: tuple[ProtocolResult, ...]
    main: int = 0
    """How many of the columns are to be seen in any width."""
    brief: tuple[ResultColumn, ...] = ()
    """Those where there is little room: without spreads and intervals."""

    @property
    def in_brief(self) -> tuple[ResultColumn, ...]:
        """All columns, the main ones in brief."""
        return (*self.brief, *self.columns[self.main :])


def run_table(summary: Mapping[str, Any]) -> SmallTable:
    """Return a run as one line, from its summary.json: accuracy, privacy and bytes side by side."""
    result = ProtocolResult(summary["name"], None, (figures_of(summary),))
    first, *others = [*map(accuracy_column, headlines(metrics_of([result]))), losses_of([result])[0]]
    columns = (first, *_main_costs([result]), SERVER_SEES, *BYTES_BOTH_WAYS, *others)
    return SmallTable(None, "run", _with_declared(columns, [result]), (result,))


def tables_of_comparison(rows: Sequence[Row]) -> list[SmallTable]:
    """Return one table per evaluation, with one line per protocol and epsilon, the most accurate first.

    Figures are averages over folds and seeds; only the main accuracy is shown with its spread.
    """
    groups = by_evaluation([result for result in results_of(rows) if result.population is None])
    tables = []
    for evaluation, group in groups.items():
        metric, results = evaluation.metric, by_accuracy(group, evaluation.metric)
        others = [
            accuracy_column(headline) for headline in headlines(metrics_of(results)) if headline != metric
        ]
        against, in_brief = (baseline_columns(metric, results, brief=brief) for brief in (False, True))
        asked, asked_in_brief = _asked_columns(results)
        main = (asked, spread_column(metric, results), *against, *_main_costs(results))
        more = (SERVER_SEES, *BYTES_BOTH_WAYS, *best_columns(metric, results), *others, losses_of(results)[0])
        title = ", ".join(distinguishing_words(evaluation, list(groups))) or None
        columns = _with_declared((*main, *more), results)
        brief = (asked_in_brief, accuracy_column(metric), *in_brief, *_BRIEF_COSTS)
        tables.append(SmallTable(title, "protocol", columns, tuple(results), len(main), brief))
    return tables


OBSERVED = {"norm": "before clipping", "clip": "", "loss": "of the model"}
"""What a simulation may observe of a round, by name, and what is said of it."""


def round_columns(rounds: Sequence[RoundRecord], metrics: Sequence[Metric]) -> list[Column[RoundRecord]]:
    """Return the columns of rounds: who was asked and answered, and what is known of any of them."""

    def add_column(title: str, unit: str, key: str, written: Any, part: Callable[[RoundRecord], Any]) -> None:
        def value(record: RoundRecord) -> float | None:
            figure: float | None = (part(record) or {}).get(key)
            return figure

        if any(value(record) is not None for record in rounds):
            columns.append(figure_column(title, unit, value, written))

    columns: list[Column[RoundRecord]] = [
        figure_column(title, "", attrgetter(name), 0)
        for title, name in (("round", "round"), ("asked", "asked"), ("answered", "replies"))
    ]
    for metric in metrics:
        add_column(metric.label, "", metric.column, metric.digits, attrgetter("accuracy"))
    add_column("ε so far", "per user, largest", "epsilon", loss, vars)
    for name, unit in OBSERVED.items():
        add_column(name, unit, name, loss, attrgetter("observed"))
    return columns


def run_lines(summary: Mapping[str, Any]) -> str:
    """Return the table of a run as text, with a line per figure."""
    table = run_table(summary)
    lines = [(table.first, table.results[0].name)]
    lines += [
        (f"{column.title} {column.unit}".strip(), column.text(table.results[0])) for column in table.columns
    ]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in lines)


def _main_costs(results: Sequence[ProtocolResult]) -> tuple[ResultColumn, ...]:
    """Return the columns of what a user loses and sends."""
    return (LOSSES[1], composed_column(results), *_NETWORK_BOTH_WAYS)


def _with_declared(
    columns: Sequence[ResultColumn], results: Sequence[ProtocolResult]
) -> tuple[ResultColumn, ...]:
    """Return columns, and after them how far ε carries and what else is declared."""
    return _and_declared((*columns, STATUS, TRUST, ANY_TWO), results, "everywhere")
