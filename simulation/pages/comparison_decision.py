"""The decision on a comparison's page: the grid of trust and epsilon, and what a reader's limits allow."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit, Trust
from simulation.analysis.answer import Candidate, GridCell, candidates, decision_grid, kept_epsilon, preferred
from simulation.analysis.columns import TableColumn
from simulation.analysis.gains import gain_digits, nothing_sent
from simulation.analysis.populations import Point, course_of
from simulation.analysis.protocol_results import ProtocolResult, reference_budget
from simulation.analysis.sentences import PROTECTED, price
from simulation.analysis.vocabulary import DASH, TRUST_IN_WORDS, Metric, loss, number
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.page import render_template, table

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
    reached = None if base is None else base.mean(metric.column)
    offers = [_offer(each, part, reached) for each in preferred(competing, metric)]
    kept = [key for each in offers for key, loss in each["losses"].items() if loss]
    asked = _KEYS[files.matched_unit, files.matched_unit == "user"]
    return render_template(
        "decision.html",
        trusts=[(trust, _TRUSTED[trust]) for trust in LEAST_TRUST_FIRST],
        protects=[(key, PROTECTED[unit][hides]) for (unit, hides), key in _KEYS.items()],
        names=dict.fromkeys(each["name"] for each in offers),
        offers={
            "start": {
                "trust": "local",
                "protect": asked if asked in kept else next(iter(kept), asked),
                "epsilon": reference_budget(part.results) or 1,
            },
            "base": "" if reached is None else f" ({_reached(metric, reached)})",
            "users": None if users is None else round(users),
            "offers": offers,
        },
    )


def _offer(each: Candidate, part: EvaluationPart, reached: float | None) -> dict[str, Any]:
    """Return what the script knows of a result: what it protects, reaches and costs, with how many users.

    Errors on other ratings are no errors on these: for a number of users, offers are sorted by what each
    gains over nothing sent.
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
        **_figures(each, part.metric),
    }
    course = course_of(part.courses, result)
    if course is not None and reached is not None:
        points = [
            {
                "users": point.users,
                "of": "" if _data(point.result) == _data(result) else f" ({_data(point.result)})",
                **_figures(point, part.metric),
                "key": part.metric.sort_key(reached) - point.against.mean,
            }
            for point in course.points
        ]
        offer |= {"points": points, "crossing": course.crossing, "needed": course.users_needed}
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


def _figures(each: Candidate | Point, metric: Metric) -> dict[str, Any]:
    """Return what a result reaches and what it costs: to be sorted and limited by, and in words."""
    held = f"against nothing sent: {each.against.written}" if each.against else "nothing sent was not run"
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
