"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from simulation.analysis.columns import (
    BYTES,
    LOSSES,
    RUNS,
    STATUS,
    ResultColumn,
    TableColumn,
    accuracy_column,
    baseline_columns,
    every_column,
    figure_column,
    headline_columns,
    headline_rows,
    text_column,
    trust_columns,
)
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.gains import NOTHING_SENT, is_best, not_significant
from simulation.analysis.protocol_results import ProtocolResult, at_reference, frontier, reference_budget
from simulation.analysis.vocabulary import number
from simulation.configuration.strict_yaml import at
from simulation.pages.evaluation_parts import EvaluationPart, RunLinks
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.panels import SERIES
from simulation.pages.page import Section, cells_of, paragraph, render_template, table


def named_column(looks: Looks, links: RunLinks, title: str = "protocol") -> ResultColumn:
    """Return the column of names, with the colour of their lines, as links where their runs have pages."""

    def named(result: ProtocolResult) -> Markup:
        colour = looks[result.name].colour
        look = str(SERIES.index(colour)) if colour in SERIES else "reference"
        address = links.get((result.name, result.budget))
        name = Markup('<a href="{}">{}</a>').format(address, result.name) if address else result.name
        chip = Markup('<span class="chip look-{}" aria-hidden="true"></span>{}')
        return chip.format(look, name)

    return TableColumn(title, "", lambda result: result.name, named, numeric=False)


def headline_table(part: EvaluationPart) -> Markup:
    """Return the headline of one evaluation; rows after the first ten are folded."""
    shown, others = headline_rows(part.results, part.metric)
    costs = headline_columns(part.results, part.metric, part.files.matched_unit)
    columns = [named_column(part.looks, part.links), *costs]
    budget = reference_budget(part.results)
    at = "" if budget is None else f" at ε = {budget:g} per {part.files.matched_unit}, or the nearest it has"
    return render_template(
        "headline.html",
        caption=f"Each protocol{at}; the most accurate first",
        columns=columns,
        shown=[_row(result, columns) for result in shown],
        others=[_row(result, columns) for result in others],
        summary=_summary(others, part) if others else "",
        table=f"table{part.suffix}",
    )


def _row(result: ProtocolResult, columns: Sequence[ResultColumn]) -> tuple[str, str, Any]:
    """Return the kind of a row in words and for its style, and its cells."""
    words = "baseline" if result.baseline else "no privacy" if result.reference else ""
    return words, "base" if result.baseline == NOTHING_SENT else "", cells_of(columns, result)


def _summary(results: Sequence[ProtocolResult], part: EvaluationPart) -> str:
    """Say what is folded."""
    metric = part.metric
    first, last = (number(results[place].mean(metric.column), metric.digits - 1) for place in (0, -1))
    return f"{len(results)} more, {metric.label} {first} to {last}"


def best_table(part: EvaluationPart) -> Markup:
    """Return the most accurate result of every budget, beside the cheapest on its frontier."""
    results, metric = part.results, part.metric
    accuracy, against = accuracy_column(metric), baseline_columns(metric, results)
    of_cheap = (accuracy, *against, BYTES, STATUS, *trust_columns(results))
    of_accurate = (*of_cheap, *LOSSES)
    # Baselines are what the others are compared with; they compete at no budget.
    competing = [result for result in results if result.baseline is None]
    given = sorted({result.budget for result in competing if result.budget is not None})
    without = [None] if any(result.budget is None for result in competing) else []
    tested = any(is_best(result) for result in competing)
    frontiers = (
        (budget, frontier([result for result in competing if result.budget == budget], metric))
        for budget in [*given, *without]
    )
    lines = [_AtBudget(budget, best[-1], best[0]) for budget, best in frontiers if best]
    alike: TableColumn[ProtocolResult] = text_column(
        "not significantly worse", lambda each: _alike(each, competing)
    )
    accurate = [named_column(part.looks, part.links, "most accurate"), *of_accurate, *([alike] * tested)]
    columns = [
        TableColumn[_AtBudget](
            "budget",
            "",
            lambda line: line.budget,
            lambda line: "none" if line.budget is None else f"ε {line.budget:g}",
            numeric=False,
        ),
        *(column.of(lambda line: line.accurate) for column in accurate),
        *(
            column.of(lambda line: line.cheap)
            for column in (named_column(part.looks, part.links, "fewest bytes"), *of_cheap)
        ),
    ]
    return table("Most accurate, and fewest bytes on the frontier, at each budget", columns, lines)


class _AtBudget(NamedTuple):
    """The most accurate result of a budget, and the one on its frontier with the fewest bytes."""

    budget: float | None
    accurate: ProtocolResult
    cheap: ProtocolResult


def _alike(best: ProtocolResult, results: Sequence[ProtocolResult]) -> str:
    return ", ".join(result.name for result in not_significant(best, results)) or "none"


def results_table(part: EvaluationPart) -> Markup:
    """Return every figure of every protocol, one line per budget."""
    results, metric = part.results, part.metric
    columns = [
        named_column(part.looks, part.links),
        *every_column(metric, results),
        *_timing_columns(part.files),
        RUNS,
    ]
    return table("Means over seeds and folds; ε is the largest proved of any run", columns, results)


def _timing_columns(files: ComparisonFiles) -> list[ResultColumn]:
    """Return the seconds on devices and server, which come from timing.csv."""
    own = [timing for timing in files.timings if timing.population is None]
    timings = {(timing.name, timing.budget): timing for timing in own}

    def seconds(column: str, factor: float) -> Callable[[ProtocolResult], float | None]:
        def value(result: ProtocolResult) -> float | None:
            timing = timings.get((result.name, result.budget))
            mean = None if timing is None else timing.mean(column)
            return None if mean is None else factor * mean

        return value

    device, server = seconds("device_s_per_user", 1000), seconds("server_s", 1)
    return [
        figure_column("device", "ms per user", device, 3),
        figure_column("server", "s", server, 2),
    ]


def published_section(files: ComparisonFiles) -> list[Section]:
    """Return published costs beside the measured ones, if the configuration lists any."""
    published = files.config.get("published")
    if not isinstance(published, list):
        return []
    measured = {result.name: result for result in at_reference(files.results)}

    def stated(key: str) -> Callable[[Any], object]:
        return lambda line: at(line, key)

    def figure(
        title: str, hint: str, value: Callable[[ProtocolResult], float | None], digits: int = 0
    ) -> _Published:
        def of_line(line: Any) -> float | None:
            result = measured.get(str(at(line, "label")))
            return None if result is None else value(result)

        return figure_column(title, hint, of_line, digits)

    def a_round(way: str, what: str) -> _Published:
        column = f"{way}link_{what}"
        hint = f"{what} bytes per user and round"
        return figure(f"measured, {way}", hint, lambda result: _a_round(result, column))

    columns = [
        text_column("protocol", stated("label")),
        text_column("published, up", stated("up"), "as printed"),
        figure("measured, up", "payload bits per rating", _bits_per_rating, 2),
        a_round("up", "payload"),
        a_round("up", "message"),
        text_column("published, down", stated("down"), "as printed"),
        a_round("down", "payload"),
        a_round("down", "message"),
        figure("rounds", "", lambda result: result.mean("rounds")),
        text_column("source", stated("source")),
    ]
    words = (
        "What the papers state for one round, beside what was counted here. A payload is the encoded report "
        "alone; a message is everything that is sent."
    )
    content = paragraph(words), table("Cost of one round", columns, published)
    return [Section("published", "Published costs beside measured ones", content)]


_Published = TableColumn[Any]
_Figure = Callable[[ProtocolResult], float | None]


def _bits_per_rating(result: ProtocolResult) -> float | None:
    sent, ratings, rounds = (result.mean(key) for key in ("uplink_payload_bytes", "train_ratings", "rounds"))
    return 8 * sent / ratings / rounds if sent is not None and ratings and rounds else None


def _a_round(result: ProtocolResult, what: str) -> float | None:
    spent, rounds = result.mean(f"{what}_mean_per_user"), result.mean("rounds")
    return spent / rounds if spent is not None and rounds else None
