"""The tables of a comparison: its headline, all results, and what papers state."""

from dataclasses import replace
from operator import attrgetter
from typing import Any

from markupsafe import Markup

from simulation.analysis.columns import (
    RUNS,
    ResultColumn,
    TableColumn,
    every_column,
    figure_column,
    headline_columns,
    headline_rows,
    text_column,
)
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.gains import NOTHING_SENT
from simulation.analysis.populations import users_needed
from simulation.analysis.protocol_results import ProtocolResult, at_reference, reference_budget
from simulation.configuration.strict_yaml import at
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.figures.panels import SERIES
from simulation.pages.page import Section, paragraph, table
from simulation.storage.directories import FIGURES


def _headline_columns(part: EvaluationPart) -> list[ResultColumn]:
    """Return the columns that answer most questions; the budget leads to the row with all the others."""
    asked, *others = headline_columns(part.results, part.metric, part.files.matched_unit)

    def named(result: ProtocolResult) -> Markup:
        """Return the name with the colour of its line, as a link where its run has a page."""
        colour = part.looks[result.name].colour
        look = str(SERIES.index(colour)) if colour in SERIES else "reference"
        address = part.links.get((result.name, result.budget))
        name = Markup('<a href="{}">{}</a>').format(address, result.name) if address else result.name
        words = "baseline" if result.baseline else "no privacy" if result.reference else ""
        kind = (
            Markup(" <small>{}</small>").format(words)
            if (words := "your own" if result.own else words)
            else ""
        )
        return Markup('<span class="chip look-{}" aria-hidden="true"></span>{}{}').format(look, name, kind)

    name = TableColumn("protocol", "", attrgetter("name"), named, numeric=False)
    linked = replace(asked, text=lambda result: part.link(result, asked.text(result)))
    needed: ResultColumn = text_column("users needed", lambda result: users_needed(part.courses, result))
    return [name, linked, *others, *([needed] if part.courses else [])]


def headline_table(part: EvaluationPart) -> Markup:
    """Return the headline of one evaluation: a row per protocol, at most ten."""
    shown, others = headline_rows(part.results, part.metric)
    budget = reference_budget(part.results)
    at = "" if budget is None else f" at ε = {budget:g} per {part.files.matched_unit}, or the nearest it has"
    more = f"{len(others)} more protocols, and all " if others else "All "

    def attributes(result: ProtocolResult) -> dict[str, str]:
        style = {"class": "base"} if result.baseline == NOTHING_SENT else {}
        return {"data-of": part.anchors[result.name, result.budget], **style}

    caption = f"Each protocol{at}; the most accurate first"
    rows = table(
        caption, _headline_columns(part), shown, sortable=False, style="headline", attributes=attributes
    )
    drawn = (part.files.directory / FIGURES).is_dir()
    return rows + Markup(
        '<p class="all"><a href="#table{}">{}{} results</a>, to filter and sort · '
        '<a href="comparison.csv">comparison.csv</a>{}</p>'
    ).format(part.suffix, more, len(part.results), _FIGURES if drawn else "")


_FIGURES = Markup(' · <a href="figures/">figures</a>')


def results_table(part: EvaluationPart) -> Markup:
    """Return every figure of every result; at first the columns of the headline are shown."""
    first = _headline_columns(part)
    titles = {column.title for column in first} | {"budget"}
    known = {figure for column in first for figure in column.figures}
    others = [
        each
        for each in every_column(part.metric, part.results)
        if each.title not in titles and not (each.figures and known.issuperset(each.figures))
    ]
    return table(
        "Means over seeds and folds; ε is the largest proved of any run",
        [*first, *others, *_timing_columns(part.files), RUNS],
        part.results,
        first_shown=len(first),
        attributes=lambda result: {"id": part.anchors[result.name, result.budget]},
    )


def _timing_columns(files: ComparisonFiles) -> list[ResultColumn]:
    """Return the seconds on devices and server, which come from timing.csv."""
    timings = {(each.name, each.budget): each for each in files.timings if each.population is None}

    def seconds(result: ProtocolResult, name: str, factor: float) -> float | None:
        timing = timings.get((result.name, result.budget))
        mean = None if timing is None else timing.mean(name)
        return None if mean is None else factor * mean

    return [
        figure_column("device", "ms per user", lambda each: seconds(each, "device_s_per_user", 1000), 3),
        figure_column("server", "s", lambda each: seconds(each, "server_s", 1), 2),
    ]


def published_section(files: ComparisonFiles) -> list[Section]:
    """Return published costs beside the measured ones, if the configuration lists any."""
    published = files.config.get("published")
    if not isinstance(published, list):
        return []
    results = {result.name: result for result in at_reference(files.results)}

    def stated(title: str, key: str, hint: str = "") -> TableColumn[Any]:
        return text_column(title, lambda line: at(line, key), hint)

    def measured(way: str, hint: str, column: str, digits: int = 0) -> TableColumn[Any]:
        def a_round(line: Any) -> float | None:
            result = results.get(str(at(line, "label")))
            spent, rounds = (result.mean(each) if result else None for each in (column, "rounds"))
            return spent / rounds if spent is not None and rounds else None

        return figure_column(f"measured, {way}", hint, a_round, digits)

    columns = [
        stated("protocol", "label"),
        stated("published, up", "up", "as printed"),
        measured("up", "payload bits per rating", "payload_bits_per_rating", 2),
        measured("up", "payload bytes per user", "uplink_payload_mean_per_user"),
        measured("up", "message bytes per user", "uplink_message_mean_per_user"),
        stated("published, down", "down", "as printed"),
        measured("down", "payload bytes per user", "downlink_payload_mean_per_user"),
        measured("down", "message bytes per user", "downlink_message_mean_per_user"),
        stated("source", "source"),
    ]
    words = "A payload is the encoded report alone; a message is everything that is sent."
    content = paragraph(words), table("Cost of one round", columns, published)
    return [Section("published", "Published costs beside measured ones", content)]
