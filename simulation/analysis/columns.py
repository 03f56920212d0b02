"""The columns of a table of results, each defined once, and the tables of pages, terminal and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dprec.accounting import ComparableUnit
from simulation.analysis.gains import NOTHING_SENT, Gain, from_best, gain, gain_digits, is_best, nothing_sent
from simulation.analysis.protocol_results import (
    ProtocolResult,
    at_reference,
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
    with_claim,
    with_spread,
)
from simulation.storage.columns import ACROSS, FIGURES, figures_of
from simulation.storage.columns import column as declared_as
from simulation.storage.files import Row

Line = TypeVar("Line")
Other = TypeVar("Other")


@dataclass(frozen=True)
class TableColumn(Generic[Line]):
    """A column of a table: its heading, and what it says of each line."""

    title: str
    hint: str
    """Its unit, or how it is counted."""
    value: Callable[[Line], float | str | None]
    """What a line is sorted by; None if the column does not apply to it."""
    text: Callable[[Line], str]
    """The same, as text for a reader."""
    numeric: bool = True
    figures: tuple[str, ...] = ()
    """The columns of comparison.csv that it shows, of results."""

    def of(self, part: Callable[[Other], Line]) -> TableColumn[Other]:
        """Return the column of a table whose lines have what it speaks of as a part."""
        return TableColumn(
            self.title,
            self.hint,
            lambda line: self.value(part(line)),
            lambda line: self.text(part(line)),
            self.numeric,
        )


ResultColumn = TableColumn[ProtocolResult]
"""A column of a table with one line per result."""


def text_column(title: str, text: Callable[[Line], object], hint: str = "") -> TableColumn[Line]:
    """Return a column of text; a dash stands for None."""

    def value(line: Line) -> str | None:
        said = text(line)
        return None if said is None else str(said)

    def written(line: Line) -> str:
        said = value(line)
        return DASH if said is None else said

    return TableColumn(title, hint, value, written, numeric=False)


def figure_column(
    title: str, hint: str, value: Callable[[Line], float | None], digits: int
) -> TableColumn[Line]:
    """Return a column of numbers with the given number of decimals."""
    return written_column(title, value, lambda known: number(known, digits), hint)


def written_column(
    title: str,
    value: Callable[[Line], float | None],
    written: Callable[[float], str],
    hint: str = "",
) -> TableColumn[Line]:
    """Return a column of numbers that are written in a way of their own; a dash stands for None."""

    def text(line: Line) -> str:
        known = value(line)
        return DASH if known is None else written(known)

    return TableColumn(title, hint, value, text)


def declared_column(name: str, *, title: str | None = None, hint: str | None = None) -> ResultColumn:
    """Return a column as it is declared, averaged over folds and seeds.

    Parameters
    ----------
    name : str
        Of comparison.csv.
    title, hint : str, optional
        By default as declared.
    """
    declared = declared_as(name)
    title = declared.title if title is None else title
    hint = declared.shown.unit if hint is None else hint
    if declared.kind in ("text", "flag"):
        return replace(text_column(title, lambda result: result.text(name), hint), figures=(name,))

    def written(value: float) -> str:
        return loss(value) if declared.shown.written == "loss" else number(value, declared.shown.digits)

    return replace(written_column(title, lambda result: result.value(name), written, hint), figures=(name,))


def accuracy_column(metric: Metric, *, direction: bool = False) -> ResultColumn:
    """Return the column of a metric, and whether it says which way is better."""
    hint = metric.direction if direction else ""
    plain: ResultColumn = figure_column(
        metric.label, hint, lambda result: result.mean(metric.column), metric.digits
    )
    return replace(plain, figures=(metric.column,))


def spread_column(
    metric: Metric, results: Sequence[ProtocolResult], *, direction: bool = False
) -> ResultColumn:
    """Return the column of a metric with its standard deviations over seeds and folds, which the hint names.

    Parameters
    ----------
    direction : bool
        Whether its heading says which way is better.
    """
    plain = accuracy_column(metric, direction=direction)
    averages = [average for result in results if (average := result.average(metric.column))]
    return replace(
        plain,
        hint=_hint(plain.hint, spread_in_words(averages)),
        text=lambda result: with_spread(result.average(metric.column), metric.digits),
    )


def baseline_columns(metric: Metric, results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return the column that holds every result against nothing sent; none where that was not run."""
    baseline = nothing_sent(results)
    if baseline is None:
        return []

    def gained(result: ProtocolResult) -> Gain | None:
        return None if result.baseline == NOTHING_SENT else gain(result, baseline, metric)

    def text(result: ProtocolResult) -> str:
        against = gained(result)
        return DASH if against is None else against.written

    def value(result: ProtocolResult) -> float | None:
        against = gained(result)
        return None if against is None else against.mean

    intervals = dict.fromkeys(against.interval for result in results if (against := gained(result)))
    return [ResultColumn("against nothing sent", _hint(metric.label, *intervals), value, text)]


def best_columns(metric: Metric, results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return the column that holds every result against the best of its budget; none without intervals.

    Parameters
    ----------
    metric : Metric
        The main one.
    """
    compared, digits = [gain for each in results if (gain := from_best(each))], gain_digits(metric)
    if not compared:
        return []

    def text(result: ProtocolResult) -> str:
        if is_best(result):
            return "best"
        gain = from_best(result)
        if gain is None:
            return DASH
        width = f" ± {number(gain.half_width, digits)}"
        return number(-gain.mean, digits) + width + ("" if gain.significant else ", not significant")

    def value(result: ProtocolResult) -> float | None:
        gain = from_best(result)
        return 0.0 if is_best(result) else None if gain is None else -gain.mean

    hint = _hint(f"{metric.label}, same budget", *dict.fromkeys(gain.interval for gain in compared))
    return [ResultColumn("behind the best", hint, value, text)]


def _hint(first: str, *spreads: str) -> str:
    """Join a hint with what the ± in its column is."""
    named = " or ".join(spread for spread in spreads if spread)
    return ", ".join(part for part in (first, f"± {named}" if named else "") if part)


def composed_column(results: Sequence[ProtocolResult]) -> ResultColumn:
    """Return the column of losses per user by composition; its hint has the delta with which they hold."""
    deltas = sorted({delta for result in results if (delta := result.delta) is not None})
    hint = ", ".join(["largest", *(f"δ={delta:g}" for delta in deltas)])
    return _of_profiles("epsilon_composed_max", hint)


def trust_columns(results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return the column of trust models; none where all protocols with a budget have the same."""
    return [TRUST] if len({result.trust for result in results if result.budget is not None}) > 1 else []


def _of_profiles(name: str, hint: str | None = None) -> ResultColumn:
    """Return a column of losses per user, with what qualifies them."""
    plain = declared_column(name, hint=hint)
    return replace(
        plain, text=lambda result: plain.text(result) + result.profiles_compared(result.value(name))
    )


def _loss_column(unit: ComparableUnit, name: str, hint: str) -> ResultColumn:
    """Return the column of the largest proved losses in a unit, beside those that are claimed."""

    def text(result: ProtocolResult) -> str:
        proved, claimed = result.epsilon(unit), result.claimed(unit)
        compared = result.profiles_compared(claimed if proved is None else proved) if unit == "user" else ""
        return with_claim(proved, claimed, result.word) + compared

    return replace(declared_column(name, hint=hint), text=text)


def _bytes_columns(way: str) -> tuple[ResultColumn, ...]:
    return tuple(
        declared_column(f"{way}link_message_{statistic}_per_user") for statistic in ("mean", "p95", "max")
    )


BUDGET: ResultColumn = written_column("budget", lambda result: result.budget, "{:g}".format, "ε")
LOSSES = (
    _loss_column("rating", "epsilon_per_rating", ""),
    _loss_column("user", "epsilon_per_user_max", "largest"),
)
MEDIAN_LOSS = _of_profiles("epsilon_per_user_median")
ANY_TWO = declared_column("epsilon_any_two")
BYTES: ResultColumn = figure_column("bytes", "per user", lambda result: result.bytes_per_user, 0)
BYTES_UP, BYTES_DOWN = _bytes_columns("up"), _bytes_columns("down")
NETWORK: ResultColumn = replace(
    figure_column("network bytes", "per user", lambda result: result.network_bytes_per_user, 0),
    figures=("uplink_network_mean_per_user", "downlink_network_mean_per_user"),
)
RUNS: ResultColumn = figure_column("runs", "", lambda result: len(result.rows), 0)
STATUS: ResultColumn = replace(text_column("privacy", lambda result: result.status), figures=("status",))
TRUST: ResultColumn = replace(text_column("trust", lambda result: result.trust), figures=("trust",))
SERVER_SEES: ResultColumn = text_column("server sees", lambda result: result.server_sees)


def _and_declared(
    placed: Sequence[ResultColumn], results: Sequence[ProtocolResult], *shown: str
) -> tuple[ResultColumn, ...]:
    """Return columns, and after them those declared for such tables that none of them shows."""
    known = {name for column in placed for name in column.figures}
    others = [
        each.name
        for each in (*FIGURES, *ACROSS)
        if each.shown.where in shown and each.shown.better is None and each.name not in known
    ]
    return (*placed, *(declared_column(name) for name in others if any(each.has(name) for each in results)))


def every_column(metric: Metric, results: Sequence[ProtocolResult]) -> list[ResultColumn]:
    """Return all that a table says of results that predict the same, the main metric first.

    A figure that is added to the summary of a run gets its column here.
    """
    metrics = [metric, *(other for other in metrics_of(results) if other != metric)]
    main, *others = [spread_column(each, results, direction=True) for each in metrics]
    placed = [
        BUDGET,
        main,
        *baseline_columns(metric, results),
        *best_columns(metric, results),
        *others,
        STATUS,
        TRUST,
        *LOSSES,
        composed_column(results),
        MEDIAN_LOSS,
        ANY_TWO,
        SERVER_SEES,
        *(*BYTES_UP, *BYTES_DOWN, NETWORK),
    ]
    return list(_and_declared(placed, results, "everywhere", "page"))


MOST_ROWS = 10
"""Rows that are shown before the rest is unfolded."""


def headline_rows(
    results: Sequence[ProtocolResult], metric: Metric
) -> tuple[list[ProtocolResult], list[ProtocolResult]]:
    """Return one result per protocol, at the reference budget or its nearest, the most accurate first.

    Returns
    -------
    tuple of list
        Those that are shown, nothing sent always among them, and the others.
    """
    known = [
        (metric.sort_key(accuracy), result.name, result)
        for result in at_reference(results)
        if (accuracy := result.mean(metric.column)) is not None
    ]
    ordered = [result for *_, result in sorted(known, key=lambda entry: entry[:2])]
    baselines = [result for result in ordered if result.baseline == NOTHING_SENT]
    others = [result for result in ordered if result not in baselines]
    shown = [*baselines, *others[: MOST_ROWS - len(baselines)]]
    return (
        [result for result in ordered if result in shown],
        [result for result in ordered if result not in shown],
    )


def headline_columns(
    results: Sequence[ProtocolResult], metric: Metric, unit: ComparableUnit
) -> list[ResultColumn]:
    """Return the columns of the headline, after the name of the protocol."""
    rounded = replace(metric, digits=gain_digits(metric))
    return [
        ResultColumn("ε asked", f"per {unit}", _asked, lambda result: _asked_in_words(result, unit)),
        ANY_TWO,
        replace(composed_column(results), title="ε composed"),
        spread_column(rounded, results),
        *baseline_columns(metric, results),
        _sized(BYTES, "messages"),
        _sized(NETWORK, "network"),
        SERVER_SEES,
    ]


def _sized(column: ResultColumn, title: str) -> ResultColumn:
    """Return a column of bytes with their units."""

    def text(result: ProtocolResult) -> str:
        spent = column.value(result)
        return DASH if spent is None else size(float(spent))

    return replace(column, title=title, text=text)


def _asked(result: ProtocolResult) -> float | None:
    """Return the budget of a result; 0 where nothing is spent."""
    return 0.0 if result.budget is None and result.epsilon("user") == 0 else result.budget


def _asked_in_words(result: ProtocolResult, unit: ComparableUnit) -> str:
    asked = _asked(result)
    if asked is None:
        return DASH
    if not result.falls_short:
        return f"{asked:g}"
    claimed = result.claimed(unit)
    if claimed in (None, asked):
        return f"{asked:g} {result.word}"
    return (
        f"{asked:g}, {result.word} {loss(claimed)}"
        if result.status == "declared"
        else (f"{asked:g}, claims {loss(claimed)}")
    )


_ASKED = replace(BUDGET, title="ε asked", hint="")
_MAIN_COSTS = (LOSSES[1], NETWORK, SERVER_SEES, BYTES_UP[0], BYTES_DOWN[0])


def _brief_loss(result: ProtocolResult) -> str:
    """Write the loss of a user, by composition with a mark where no sum is proved."""
    summed, composed = result.epsilon("user"), result.composed
    return f"{loss(composed)}, δ" if summed is None and composed is not None else loss(summed)


_BRIEF_COSTS = (
    replace(declared_column("epsilon_per_user_max", hint=""), text=_brief_loss),
    *(NETWORK, SERVER_SEES),
    *(replace(each, hint="per user") for each in (BYTES_UP[0], BYTES_DOWN[0])),
)

GAIN_IN_BRIEF = "gain"
"""Title of the column over nothing sent in a brief table, without intervals."""


def _brief_gain(
    metric: Metric, against: Sequence[ResultColumn], results: Sequence[ProtocolResult]
) -> Iterator[ResultColumn]:
    """Yield the column that holds every result against nothing sent in a few characters, if there is one."""
    baseline = nothing_sent(results)
    for column in against if baseline else ():

        def text(result: ProtocolResult) -> str:
            gained = gain(result, baseline, metric) if baseline and result is not baseline else None
            if gained is None:
                return DASH
            significant = gained.low is None or gained.significant
            return f"{gained.mean:+.{gained.digits}f}" if significant else "n.s."

        yield replace(column, title=GAIN_IN_BRIEF, hint="", text=text)


@dataclass(frozen=True)
class SmallTable:
    """A table with one line per result."""

    title: str | None
    first: str
    """Heading of the results' names."""
    columns: tuple[ResultColumn, ...]
    """The most important first."""
    results: tuple[ProtocolResult, ...]
    brief: tuple[ResultColumn, ...] = ()
    """The first columns as they are where there is little room: without the spread of the accuracy."""


def run_table(summary: Mapping[str, Any]) -> SmallTable:
    """Return a run as one line: accuracy, privacy and bytes side by side.

    Parameters
    ----------
    summary : mapping
        The contents of summary.json.
    """
    result = ProtocolResult(summary["name"], None, (figures_of(summary),))
    first, *others = [*map(accuracy_column, _metrics([result])), LOSSES[0]]
    return SmallTable(None, "run", _with_costs((first, *_MAIN_COSTS, *others), [result]), (result,))


def tables_of_comparison(rows: Sequence[Row]) -> list[SmallTable]:
    """Return one table per evaluation, with one line per protocol and epsilon.

    Figures are averages over folds and seeds; only the main accuracy is shown with its spread.
    """
    groups = by_evaluation([each for each in results_of(rows) if each.population is None])
    tables = []
    for evaluation, results in groups.items():
        main = evaluation.metric
        others = [accuracy_column(each) for each in _metrics(results) if each != main]
        against = baseline_columns(main, results)
        brief = (_ASKED, accuracy_column(main), *_brief_gain(main, against, results), *_BRIEF_COSTS)
        first = (_ASKED, spread_column(main, results), *against, *_MAIN_COSTS)
        columns = _with_costs((*first, *best_columns(main, results), *others, LOSSES[0]), results)
        title = ", ".join(distinguishing_words(evaluation, list(groups))) or None
        tables.append(SmallTable(title, "protocol", columns, tuple(results), brief))
    return tables


def run_lines(summary: Mapping[str, Any]) -> str:
    """Return the table of a run as text, with a line per figure."""
    small = run_table(summary)
    lines = [(small.first, small.results[0].name)]
    lines += [(f"{each.title} {each.hint}".strip(), each.text(small.results[0])) for each in small.columns]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in lines)


def _with_costs(
    columns: Sequence[ResultColumn], results: Sequence[ProtocolResult]
) -> tuple[ResultColumn, ...]:
    """Return columns, and after them how far ε carries and what else is declared."""
    placed = (*columns, STATUS, TRUST, composed_column(results), ANY_TWO)
    return _and_declared(placed, results, "everywhere")


def _metrics(results: Sequence[ProtocolResult]) -> list[Metric]:
    """Return the headline metrics that any of the results has."""
    return headlines(metrics_of(results))
