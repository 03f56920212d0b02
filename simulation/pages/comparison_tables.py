"""The tables of a comparison: the decision and its grid, the headline, all results, and what papers state."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from markupsafe import Markup

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit, Trust
from simulation.analysis.answer import (
    PROTECTED,
    Candidate,
    GridCell,
    candidates,
    decision_grid,
    kept_epsilon,
    preferred,
    price,
)
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
from simulation.analysis.gains import NOTHING_SENT, baseline_in_words, gain_digits, nothing_sent, to_beat
from simulation.analysis.populations import Point, course_of, users_needed
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    ProtocolResult,
    at_reference,
    reference_budget,
)
from simulation.analysis.vocabulary import DASH, TRUST_IN_WORDS, Metric, loss, number
from simulation.configuration.strict_yaml import at
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.looks import SERIES
from simulation.pages.page import Section, render_template, table
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
    content = words, table("Cost of one round", columns, published)
    return [Section("published", "Published costs beside measured ones", content)]


_TRUSTED: Mapping[Trust, str] = {
    "local": "nobody",
    "shuffle": "a shuffler",
    "secure-aggregation": "secure aggregation",
    "central": "the server",
}

_KEYS: Mapping[tuple[ComparableUnit, bool], str] = {
    ("rating", False): "rating",
    ("rating", True): "cell",
    ("user", False): "values",
    ("user", True): "profile",
}
"""What epsilon is for in the address, by its unit and whether the item set is hidden."""


def decision(part: EvaluationPart) -> Markup:
    """Return the questions of a reader, and the results among which the script chooses."""
    metric, files = part.metric, part.files
    competing = [each for each in candidates(part.results, metric) if each.result.baseline is None]
    if not competing or files.waiting:
        return Markup("")
    base, users = nothing_sent(part.results), part.results[0].mean("users")
    known = "" if base is None else baseline_in_words(base).removeprefix("nothing sent")
    reached = None if base is None else base.mean(metric.column)
    offers = [_offer(each, part) for each in preferred(competing, metric)]
    return render_template(
        "decision.html",
        trusts=[(trust, _TRUSTED[trust]) for trust in LEAST_TRUST_FIRST],
        protects=[(key, PROTECTED[unit][hides]) for (unit, hides), key in _KEYS.items()],
        names=dict.fromkeys(each["name"] for each in offers),
        offers={
            "start": _start(part, offers),
            "base": "" if base is None or reached is None else f" ({_reached(metric, reached)}{known})",
            "users": None if users is None else round(users),
            "offers": offers,
        },
    )


def _start(part: EvaluationPart, offers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is asked first: what the headline answers, if it takes anything."""
    if part.answer.choices:
        cell = part.answer.choices[0].cell
        return {"trust": cell.trust, "protect": _KEYS[cell.unit, cell.hides], "epsilon": cell.epsilon}
    unit = part.files.matched_unit
    kept = [key for each in offers for key, loss in each["losses"].items() if loss]
    asked = _KEYS[unit, unit == "user"]
    return {
        "trust": "local",
        "protect": asked if asked in kept else next(iter(kept), asked),
        "epsilon": reference_budget(part.results) or 1,
    }


def _offer(each: Candidate, part: EvaluationPart) -> dict[str, Any]:
    """Return what the script knows of a result: what it protects, reaches and costs, with how many users.

    Errors on other ratings are no errors on these: for a number of users, offers are sorted by what each
    gains over what is to be beaten.
    """
    result, delta = each.result, part.files.matched_delta
    offer: dict[str, Any] = {
        "row": part.anchors[result.name, result.budget],
        "name": result.name,
        "trust": LEAST_TRUST_FIRST.index(result.trust),
        "hides": each.hides,
        "losses": {
            key: _loss(result, unit, delta) for (unit, hides), key in _KEYS.items() if hides == each.hides
        },
        "better": each.against is None or each.against.better,
        **_figures_of(each, part.metric),
    }
    course, base = course_of(part.courses, result), to_beat(part.results)
    reached = None if base is None else base.mean(part.metric.column)
    if course is not None and reached is not None:
        points = [
            {
                "users": point.users,
                "of": "" if _data(point.result) == _data(result) else f" ({_data(point.result)})",
                **_figures_of(point, part.metric),
                "key": part.metric.sort_key(reached) - point.against.mean,
            }
            for point in course.points
        ]
        needed = {"crossing": course.crossing, "needed": course.users_needed, "over": course.base}
        offer |= {"points": points, **needed}
    return offer


def _data(result: ProtocolResult) -> str:
    return str(result.rows[0].get("dataset"))


def _loss(result: ProtocolResult, unit: ComparableUnit, delta: float | None) -> tuple[float, str] | None:
    """Return what a result is proved to lose at most, and with which delta that holds."""
    kept, without = kept_epsilon(result, unit, delta), result.epsilon(unit)
    if kept is None:
        return None
    if without is not None and loss(without) == loss(kept):
        return without, ""
    return kept, f" with δ = {result.delta or 0:g}"


def _figures_of(each: Candidate | Point, metric: Metric) -> dict[str, Any]:
    """Return what a result reaches and what it costs: to be sorted and limited by, and in words."""
    against = each.against
    held = f"against {against.base}: {against.written}" if against else "nothing sent was not run"
    return {
        "key": metric.sort_key(each.accuracy),
        "messages": each.result.bytes_per_user,
        "network": each.result.network_bytes_per_user,
        "says": f"{_reached(metric, each.accuracy)} ({held}) for {price(each.result)} a user",
    }


def _reached(metric: Metric, accuracy: float) -> str:
    return f"{metric.label} {number(accuracy, gain_digits(metric))}"


def grids(part: EvaluationPart) -> Markup:
    """Return a table for what is protected, with a row per trust model and a column per epsilon."""
    files, unit = part.files, part.files.matched_unit
    if files.waiting:
        return Markup("")
    cells = decision_grid(
        part.results, part.metric, unit, files.matched_delta, epsilons=files.epsilons, every=part.courses
    )
    protected = groupby(cells, key=lambda cell: cell.hides)
    return Markup("").join(_grid(list(own), PROTECTED[unit][hides], part) for hides, own in protected)


def _grid(cells: Sequence[GridCell], protected: str, part: EvaluationPart) -> Markup:
    every_row = [list(own) for _, own in groupby(cells, key=lambda cell: cell.trust)]
    rows = [row for row in every_row if any(cell.best for cell in row)]
    if not rows:
        return Markup("")
    deltas = {f" with δ = {cell.delta:g}" for cell in cells if cell.delta is not None}

    def chosen(place: int, cell: GridCell) -> TableColumn[list[GridCell]]:
        title = f"ε {cell.epsilon:g}"
        return TableColumn(title, "", lambda row: "", lambda row: _cell(row[place], part), numeric=False)

    trust = TableColumn[list[GridCell]]("trust", "", lambda row: row[0].trust, _trusted, numeric=False)
    columns = [trust, *(chosen(place, cell) for place, cell in enumerate(rows[0]))]
    caption = f"The protocol to take: ε for {protected}{', or'.join(sorted(deltas))}"
    return table(caption, columns, rows, sortable=False, style="grid")


def _trusted(row: Sequence[GridCell]) -> Markup:
    trust = row[0].trust
    worth = [cell for cell in row if cell.best and not cell.nothing_sent_wins]
    vain = trust != "local" and bool(worth) and all(cell.with_less for cell in worth)
    words = f"trusting {_TRUSTED[trust]} buys nothing here" if vain else f"{_TRUSTED[trust]} trusted"
    return Markup("{}<small>{}</small>").format(TRUST_IN_WORDS[trust], words)


def _cell(cell: GridCell, part: EvaluationPart) -> Markup:
    best = cell.best
    if best is None:
        return Markup('<span class="dash">{}</span>').format(DASH)
    name = part.link(best, best.name)
    small = Markup("").join(Markup("<small>{}</small>").format(line) for line in _details(cell, best))
    vain = Markup('<div class="vain"><b>send nothing</b><small>nearest: {}</small>{}</div>')
    return (vain if cell.nothing_sent_wins else Markup("<div><b>{}</b>{}</div>")).format(name, small)


def _details(cell: GridCell, best: ProtocolResult) -> Iterator[str]:
    """Yield the lines below the name: what it gains, what it costs, what it needs."""
    if cell.against:
        yield cell.against.written
    if cell.nothing_sent_wins:
        return
    yield price(best)
    if cell.users_needed:
        yield f"needs {cell.users_needed} users"
    if cell.with_less:
        yield f"no better than {cell.with_less.name} ({cell.with_less.trust})"
