"""The tables of a comparison: the decision and its grid, the headline, all results, and what papers state."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from operator import attrgetter
from typing import Any

from markupsafe import Markup

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit, Trust
from simulation.analysis.answer import PROTECTED, price
from simulation.analysis.columns import (
    RUNS,
    ResultColumn,
    every_column,
    figure_column,
    free_column,
    headline_columns,
    headline_rows,
    text_column,
)
from simulation.analysis.decision import (
    OWN_DELTA,
    Candidate,
    GridCell,
    Limits,
    candidates,
    decide,
    decision_grid,
    with_users,
)
from simulation.analysis.gains import NOTHING_SENT, PUBLIC, gain_digits, nothing_sent, to_beat
from simulation.analysis.populations import course_of, users_needed
from simulation.analysis.protocol_results import (
    BYTES,
    REPRESENTS,
    USERS,
    ComparisonFiles,
    ProtocolResult,
    at_reference,
    reference_budget,
)
from simulation.analysis.vocabulary import DASH, TRUST_IN_WORDS, Metric, loss, number, size
from simulation.configuration.strict_yaml import at
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.looks import SERIES
from simulation.pages.page import Section, render_template, table
from simulation.storage.column import Column
from simulation.storage.columns import PER_DEVICE, figure
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

    name = free_column("protocol", "", attrgetter("name"), named, numeric=False)
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

    def seconds(result: ProtocolResult, column: Column[Any], factor: float) -> float | None:
        timing = timings.get((result.name, result.budget))
        mean = None if timing is None else timing.mean(column)
        return None if mean is None else factor * mean

    return [
        figure_column("device", "ms per user", lambda each: seconds(each, PER_DEVICE, 1000), 3),
        figure_column("server", "s", lambda each: seconds(each, _SERVER_SECONDS, 1), 2),
    ]


_SERVER_SECONDS = figure(lambda run: run.time.server_s)
_ROUNDS = figure(lambda run: run.traffic.rounds)
_BITS = figure(lambda run: run.traffic.payload_bits_per_rating)
_PAYLOADS = (
    figure(lambda run: run.traffic.uplink.payload_mean_per_user),
    figure(lambda run: run.traffic.downlink.payload_mean_per_user),
)


def published_section(files: ComparisonFiles) -> list[Section]:
    """Return published costs beside the measured ones, if the configuration lists any."""
    published = files.config.get("published")
    if not isinstance(published, list):
        return []
    results = {result.name: result for result in at_reference(files.results)}

    def stated(title: str, key: str, unit: str = "") -> Column[Any]:
        return text_column(title, lambda line: at(line, key), unit)

    def measured(way: str, unit: str, column: Column[Any], digits: int = 0) -> Column[Any]:
        def a_round(line: Any) -> float | None:
            result = results.get(str(at(line, "label")))
            spent, rounds = (result.mean(each) if result else None for each in (column, _ROUNDS))
            return spent / rounds if spent is not None and rounds else None

        return figure_column(f"measured, {way}", unit, a_round, digits)

    columns = [
        stated("protocol", "label"),
        stated("published, up", "up", "as printed"),
        measured("up", "payload bits per rating", _BITS, 2),
        measured("up", "payload bytes per user", _PAYLOADS[0]),
        measured("up", "message bytes per user", BYTES[0]),
        stated("published, down", "down", "as printed"),
        measured("down", "payload bytes per user", _PAYLOADS[1]),
        measured("down", "message bytes per user", BYTES[1]),
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


def _obstacle(each: Candidate, limits: Limits, hides: bool) -> str:
    """Say what keeps a protocol from being taken; empty if nothing does."""
    result = each.result
    units: Iterable[ComparableUnit] = ("rating", "user")
    if all(math.isinf(replace(limits, unit=unit).loss(result)) for unit in units):
        return "no ε is proved"
    if result.hides != hides:
        return "hides the item set, too" if result.hides else "reveals the item set"
    if not limits.allow(result):
        return "needs more trust"
    if not limits.keep(result):
        proved = math.isfinite(limits.loss(result))
        return _loss(result, limits) if proved else "no such ε is proved"
    if not limits.carry(each.run):
        return "more bytes"
    return "" if each.better else "not better than nothing sent"


def _verdict(
    part: EvaluationPart, best: Candidate | None, limits: Limits, asked: float | None
) -> tuple[str, str, str]:
    """Return what goes before a name, the name, and what goes after it.

    ``asked``: for how many users; None for those of the comparison.
    """
    if best is None:
        return "", "No protocol", " here is proved to keep these limits."
    course, against, measured = (
        course_of(part.courses, best.result),
        best.against,
        best.run is not best.result,
    )
    held = f"against {against.base}: {against.written}" if against else "nothing sent was not run"
    reached = f"{_reached(part.metric, best.accuracy)} ({held}) for {price(best.run)} a user"
    other = best.run.data[0] != best.result.data[0]
    users = best.run.mean(REPRESENTS) or best.run.mean(USERS) or 0.0
    counted = f"{users:,.0f} users{f' ({best.run.data[0]})' if other else ''}"
    needed = f" To beat {course.base} takes {course.users_needed} users." if course else ""
    apart = asked not in (None, users) or (measured and other)
    needs = (f" Measured with {counted}." if apart else "") + needed
    if best.better:
        return "Take ", best.result.name, f" at {_loss(best.result, limits)}: {reached}.{needs}"
    nearest = f": the nearest, {best.result.name}, reaches {reached}."
    if asked is not None and asked > users:
        return f"With {counted}, ", "send nothing", f"{nearest} It was not run with more.{needed}"
    return "", "Send nothing", f"{'' if measured else _base(part)}{nearest}{needs}"


def _loss(result: ProtocolResult, limits: Limits) -> str:
    """Say what a result is proved to lose at most, and with which delta that holds."""
    kept, without = limits.loss(result), result.epsilon(limits.unit)
    delta = "" if loss(without) == loss(kept) else f" with δ = {result.delta or 0:g}"
    return f"ε {loss(kept)}{delta}"


def _reached(metric: Metric, accuracy: float) -> str:
    return f"{metric.label} {number(accuracy, gain_digits(metric))}"


def _base(part: EvaluationPart) -> str:
    """Say what nothing sent reaches, and whether it knows the items."""
    base = nothing_sent(part.results)
    reached = None if base is None else base.mean(part.metric.column)
    if base is None or reached is None:
        return ""
    return f" ({_reached(part.metric, reached)}{', items known' if base.has(PUBLIC) else ''})"


def decision(part: EvaluationPart) -> Markup:
    """Return the questions that a reader can choose, and the answer to each of them."""
    competing = [each for each in candidates(part.results, part.metric) if each.result.baseline is None]
    proved = [each.result for each in competing if each.result.status == "proved"]
    if not proved or part.files.waiting:
        return Markup("")
    delta = OWN_DELTA if part.files.matched_delta is None else part.files.matched_delta
    losses = {
        (unit, hides): [Limits(math.inf, unit, delta=delta).loss(own) for own in proved if own.hides == hides]
        for unit, hides in _KEYS
    }
    keys = [key for key, own in losses.items() if any(map(math.isfinite, own))]
    trusts = [trust for trust in LEAST_TRUST_FIRST if any(own.trust == trust for own in proved)]
    epsilons, bounds = _epsilons(part, [loss for key in keys for loss in losses[key]]), _bounds(proved)
    every = _by_users(part, competing)
    answers: dict[str, int] = {}
    asked = product(trusts, keys, epsilons, every)
    limits = (
        (Limits(epsilon, unit, trust=trust, delta=delta), hides, users)
        for trust, (unit, hides), epsilon, users in asked
    )
    found = _answers(part, every, limits, list(bounds.values()))
    places = [answers.setdefault(answer, len(answers)) for answer in found]
    questions = {
        "trust": ("You trust", {trust: _TRUSTED[trust] for trust in trusts}),
        "protect": ("You protect", {_KEYS[key]: PROTECTED[key[0]][key[1]] for key in keys}),
        "epsilon": ("ε, at most", {f"{each:g}": f"{each:g}" for each in epsilons}),
        "users": ("Users", _users_in_words(part, [*every])),
        "bytes": ("A user's bytes", {words: words or "any number" for words in bounds}),
    }
    start = _start(part, [_KEYS[key] for key in keys])
    table_of_answers = {"answers": [*map(json.loads, answers)], "places": places}
    return render_template("decision.html", questions=questions, start=start, **table_of_answers)


def _answers(
    part: EvaluationPart,
    every: Mapping[float | None, Sequence[Candidate]],
    asked: Iterable[tuple[Limits, bool, float | None]],
    bounds: Sequence[tuple[float, float]],
) -> Iterator[str]:
    """Yield the answers to questions, each with every bound of bytes, as JSON.

    An answer is the verdict, the row of what is taken, and why the others of the headline are not.

    ``asked``: limits, whether the item set is to be hidden, and for how many users.
    """
    rows = {id(own): part.anchors[own.name, own.budget] for own in part.results}
    marked = {id(own) for own in headline_rows(part.results, part.metric)[0]}
    verdicts: dict[tuple[object, ...], tuple[str, str, str]] = {}
    for limits, hides, users in asked:
        able = decide([each for each in every[users] if each.result.hides == hides], limits)
        shown = [each for each in every[users] if id(each.result) in marked]
        for most, network in bounds:
            within = replace(limits, max_bytes=most, max_network_bytes=network)
            best = next(iter(decide(able, within)), None)
            if (key := (id(best), limits.unit, users)) not in verdicts:
                verdicts[key] = _verdict(part, best, limits, users)
            reasons = {rows[id(each.result)]: _obstacle(each, within, hides) for each in shown}
            row = rows[id(best.result)] if best and best.better else None
            out = {name: reason for name, reason in reasons.items() if reason}
            yield json.dumps({"verdict": verdicts[key], "row": row, "out": out})


def _by_users(part: EvaluationPart, every: Sequence[Candidate]) -> dict[float | None, list[Candidate]]:
    """Return candidates as they are here, and with each number of users that any was run with."""
    base, metric = to_beat(part.results), part.metric
    reached = metric.sort_key((base and base.mean(metric.column)) or 0.0)
    counts = sorted({point.users for course in part.courses for point in course.points})
    return {
        users: [with_users(each, course_of(part.courses, each.result), users, reached) for each in every]
        for users in (None, *counts)
    }


def _users_in_words(part: EvaluationPart, counts: Sequence[float | None]) -> dict[str, str]:
    here = part.results[0].mean(USERS)
    first = "here" if here is None else f"{here:,.0f} here"
    return {"" if own is None else f"{own:.17g}": first if own is None else f"{own:,.0f}" for own in counts}


def _epsilons(part: EvaluationPart, losses: Sequence[float]) -> list[float]:
    """Return the budgets of a comparison, and beyond them powers of ten up to what its protocols lose."""
    given = {each.budget for each in part.results if each.budget is not None} | {*part.files.epsilons}
    most, least = max(filter(math.isfinite, losses), default=0.0), max(given, default=0.1)
    return sorted(given | {10.0**power for power in range(7) if least < 10**power < 10 * most})


def _bounds(results: Sequence[ProtocolResult]) -> dict[str, tuple[float, float]]:
    """Return limits of bytes in messages and on the network that tell results apart; and first, none."""
    bounds = {"": (math.inf, math.inf)}
    for words, network, spent in (
        ("of messages", False, [each.bytes_per_user for each in results]),
        ("on the network", True, [each.network_bytes_per_user for each in results]),
    ):
        known = [each for each in spent if each]
        for most in (10.0**power for power in range(12)):
            if known and min(known) <= most < max(known):
                bounds[f"{size(most)} {words}"] = (math.inf, most) if network else (most, math.inf)
    return bounds


def _start(part: EvaluationPart, keys: Sequence[str]) -> dict[str, str]:
    """Return what is asked first: what the headline answers, if it takes anything."""
    if part.answer.choices:
        cell = part.answer.choices[0].cell
        chosen = {"trust": cell.trust, "protect": _KEYS[cell.unit, cell.hides]}
        return {**chosen, "epsilon": f"{cell.epsilon:g}"}
    unit = part.files.matched_unit
    asked = _KEYS[unit, unit == "user"]
    return {
        "protect": asked if asked in keys else keys[0],
        "epsilon": f"{reference_budget(part.results) or 1:g}",
    }


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

    def chosen(place: int, cell: GridCell) -> Column[list[GridCell]]:
        return Column(f"ε {cell.epsilon:g}", holds=str, text=lambda row: _cell(row[place], part))

    trust: Column[list[GridCell]] = free_column(
        "trust", "", lambda row: row[0].trust, _trusted, numeric=False
    )
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
