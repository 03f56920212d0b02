"""Accuracy of protocols against epsilon, bytes per user and the number of users."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dprec.accounting import ComparableUnit
from dprec.arrays import Floats
from simulation.analysis.gains import NOTHING_SENT, POPULARITY, baseline_in_words, nothing_sent, to_beat
from simulation.analysis.populations import Course
from simulation.analysis.protocol_results import ProtocolResult, by_protocol
from simulation.analysis.vocabulary import Metric, loss, loss_per, size, with_spread
from simulation.pages.figures.marks import Axis, Line, Mark, Spot, Text, accuracy_axis, log_axis, strokes
from simulation.pages.figures.panels import (
    FAINT,
    INK,
    MUTED,
    SURFACE,
    Entry,
    Looks,
    Panel,
    most_telling,
    nothing_sent_marks,
    printable,
    shortened,
    told_apart,
    trust_legend,
)
from simulation.pages.figures.rendering import text_width

_HEIGHT = 240.0


@dataclass(frozen=True, eq=False)
class Series:
    """The accuracy of a protocol or of a baseline at some places."""

    name: str
    label: str
    x: Floats
    y: Floats
    words: Sequence[str]
    """What each place shows when it is pointed at."""
    deviation: Floats | None = None
    """Half the length of the error bars."""
    flat: bool = False
    """Whether it is the same everywhere, a line across the panel."""
    baseline: bool = False
    solid: bool = False
    """Whether it is what is to be beaten, so that what is worse is shaded."""

    def bars(self, colour: str) -> Line:
        """Return its error bars."""
        half = np.zeros(self.y.size) if self.deviation is None else self.deviation
        return Line(*strokes(self.x, self.y - half, self.y + half), colour, 1.1)


def _series(
    label: str,
    points: Iterable[tuple[float | None, ProtocolResult]],
    metric: Metric,
    spent: str | None = None,
) -> list[Series]:
    """Return the results of one protocol at some places, from left to right; nothing without a place."""
    known = [
        (x, average.mean, average.deviation, result)
        for x, result in points
        if x and (average := result.average(metric.column))
    ]
    known.sort(key=lambda point: point[0])
    if not known:
        return []
    x, mean, deviation = np.array([point[:3] for point in known]).T
    words = [_in_words(point[3], metric, spent) for point in known]
    return [Series(known[0][3].name, label, x, mean, words, deviation)]


def _across(
    results: Sequence[ProtocolResult], metric: Metric, x: Axis, beaten: ProtocolResult | None = None
) -> list[Series]:
    """Return lines across a panel: of baselines and protocols without privacy, first the one to beat.

    That is ``beaten``; by default, nothing sent.
    """
    beaten, lines = beaten or nothing_sent(results), []
    for result in sorted(results, key=lambda result: result is not beaten):
        baseline, solid = result.baseline is not None, result is beaten
        label = baseline_in_words(result) if solid else shortened(result.name)
        for line in _series(label, [(x.low, result), (x.high, result)], metric):
            lines.append(replace(line, deviation=None, flat=True, baseline=baseline, solid=solid))
    return lines


def _in_words(result: ProtocolResult, metric: Metric, spent: str | None) -> str:
    """Return a protocol, its budget, its accuracy and its bytes in one line."""
    budget = "" if result.budget is None else f", ε {loss(result.budget)}"
    if result.population is not None:
        represented = result.mean("represents")
        users = represented or result.mean("users") or 0
        budget += f", {users:,.0f} users" + (" by τ" if represented else "")
    accuracy = with_spread(result.average(metric.column), metric.digits)
    known = "" if result.bytes_per_user is None else f"{size(result.bytes_per_user)} per user"
    return f"{printable(result.name)}{budget}: {metric.label} {accuracy}, {spent or known}".removesuffix(", ")


def _marked(name: str, results: Sequence[ProtocolResult]) -> str:
    """Return a protocol's label, with a dagger where it is not proved that a budget is kept."""
    return shortened(name) + (" †" if any(result.falls_short for result in results) else "")


def _panel(
    title: str, x: Axis, series: Sequence[Series], metric: Metric, looks: Looks,
    extra: Sequence[Mark] = (), legend: Sequence[Entry] = (), *, faint: bool = True,
) -> Panel:  # fmt: skip
    """Return a panel with at most six named lines, the others thin and grey, and baselines behind them.

    ``faint``: the others are in their own colours if not.
    """
    bars = np.concatenate([[], *(each.bars("").y for each in series if each.deviation is not None)])
    values: dict[str, list[float]] = {}
    for each in series:
        values.setdefault(each.label, []).extend(each.y.tolist())
    y, notes = accuracy_axis(metric, values, bars[np.isfinite(bars)].tolist())
    protocols = {each.name: each for each in series if not each.baseline}
    apart = told_apart(most_telling({name: _prices(each, metric) for name, each in protocols.items()}), looks)
    marks: list[Mark] = []
    ends = []
    for each in series:
        if each.solid:
            marks += nothing_sent_marks(x, y, each.x, each.y, metric)
            ends.append(Entry(each.label, INK, at=float(each.y[-1])))
        elif each.baseline:
            marks.append(Line(each.x, each.y, MUTED, 0.9, looks[each.name].dashes))
            if each.name == POPULARITY:
                ends.append(Entry(each.label, MUTED, dashes=looks[each.name].dashes, at=float(each.y[-1])))
        elif each.name not in apart:
            colour = FAINT if faint else looks[each.name].colour
            shape = "o" * (each.x.size == 1 if faint else not each.flat)
            marks.append(Line(each.x, each.y, colour, 1.1, "", shape, 3.0, SURFACE))
    named = [protocols[name] for name in apart]
    for each in reversed(named):
        look = apart[each.name]
        shape = "" if each.flat else look.marker
        marks += [] if each.deviation is None else [each.bars(look.colour)]
        marks.append(Line(each.x, each.y, look.colour, 1.8, look.dashes, shape))
        if each.x.size > 1:
            ends.append(Entry(each.label, look.colour, shape, look.dashes, float(each.y[-1])))
    marks += [*extra, *_labels([each for each in named if each.x.size == 1], list(protocols.values()), x, y)]
    marks += [spot for each in series for spot in map(Spot, each.x.tolist(), each.y.tolist(), each.words)]
    rest = len(protocols) - len(apart)
    more = [Entry(f"{rest} more", FAINT, "o")] if rest and faint else []
    below = [*trust_legend(apart.values()), *more, *legend]
    return Panel(title, x, y, marks, ends, below, notes, height=_HEIGHT)


def _prices(series: Series, metric: Metric) -> list[tuple[float, float]]:
    prices = np.full(series.x.size, math.inf) if series.flat else series.x
    return [(x, metric.sort_key(y)) for x, y in zip(prices.tolist(), series.y.tolist(), strict=True)]


def _labels(named: Sequence[Series], points: Sequence[Series], x: Axis, y: Axis) -> list[Text]:
    """Write names beside single points, the first ones first; what would cover something is left out."""
    width, letter = 275.0, 11.0
    at = {
        each.name: (float(x.places(each.x)[0]) * width, -float(y.places(each.y)[0]) * _HEIGHT)
        for each in points
    }
    taken = [(across - 4, down - 4, across + 4, down + 4) for across, down in at.values()]
    written: list[Text] = []
    told: list[tuple[float, float]] = []
    for each in named:
        here = at[each.name]
        if any(math.dist(here, other) < _SAME_PLACE for other in told):
            continue
        told.append(here)
        alike = sum(math.dist(here, at[other.name]) < _SAME_PLACE for other in named) - 1
        label = each.label + (f" + {alike}" if alike else "")
        for anchor, right, below in _BESIDE:
            left, down = here[0] + right - text_width(label, letter) * (anchor == "end"), here[1] + below
            box = left, down - letter / 2, left + text_width(label, letter), down + letter / 2
            if left >= 0 and box[2] <= width and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                place = float(each.x[0]), float(each.y[0])
                written.append(Text(*place, label, INK, anchor, (right, below), letter, halo=SURFACE))
                break
    return written


_SAME_PLACE = 7.0
"""How near to each other points have one label."""

_BESIDE = (
    *(("start", 8.0, 0.0), ("end", -8.0, 0.0), ("start", -4.0, -12.0)),
    *(("start", -4.0, 12.0), ("end", 4.0, -12.0), ("end", 4.0, 12.0)),
)
"""Where a name may stand beside its point: which end of it, and how far to the right and below."""


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@dataclass(frozen=True)
class EpsilonAxis:
    """An axis of privacy losses: those that hold, or those that were requested."""

    unit: ComparableUnit
    delta: float | None = None
    """With which the losses per user hold, by composition; by default they are sums."""
    asked: bool = False
    """Whether it shows the requested budgets; the unit is then theirs."""
    any_two: bool = False
    """Whether it shows losses that hold for any two profiles."""

    def value(self, result: ProtocolResult) -> float | None:
        """Return a result's value on the axis; None if it has none."""
        if self.asked:
            return result.budget
        if self.any_two:
            return result.any_two
        return result.epsilon(self.unit) if self.delta is None else result.composed

    @property
    def name(self) -> str:
        """What it counts."""
        asked = f"{'requested ' if self.asked else ''}{loss_per(self.unit)}"
        return "ε for any two profiles" if self.any_two else asked

    @property
    def label(self) -> str:
        """What is written below the axis."""
        most = ", largest of any user" if self.unit == "user" else ""
        at = "" if self.delta is None else f" at δ = {self.delta:g}"
        return f"{self.name}{at}{'' if self.asked or self.any_two else most}"


def draw_accuracy_against_epsilon(
    results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis, looks: Looks
) -> Panel:
    """Draw one line per protocol, with error bars; protocols without privacy and baselines lie across."""
    curves = [
        curve
        for name, own in by_protocol([result for result in results if result.baseline is None]).items()
        for curve in _series(
            _marked(name, own) if axis.asked else shortened(name),
            [(axis.value(result), result) for result in own],
            metric,
        )
    ]
    values = [value for curve in curves for value in curve.x.tolist()]
    x = log_axis(values or [0.5, 2.0], axis.label, at_values=True)
    across = _across([result for result in results if result.baseline or result.reference], metric, x)
    return _panel(f"{metric.heading}, by {axis.name}", x, [*across, *curves], metric, looks)


def draw_accuracy_by_round(
    traces: Sequence[Series], results: Sequence[ProtocolResult], metric: Metric, looks: Looks
) -> Panel:
    """Draw iterative protocols as lines over their rounds, one-shot protocols as points, baselines across."""
    spent = np.concatenate([trace.x for trace in traces]).tolist()
    x = log_axis(spent, "bytes of messages per user so far, both ways", in_bytes=True)
    across = _across([result for result in results if result.baseline], metric, x)
    return _panel(metric.heading, x, [*across, *traces], metric, looks)


def draw_accuracy_against_bytes(
    results: Sequence[ProtocolResult], metric: Metric, looks: Looks
) -> list[Panel]:
    """Draw accuracy against the bytes of messages per user, and against what a network carries.

    Steps join the protocols that none beats in both accuracy and bytes. Baselines lie across, because nothing
    sent has no place on a logarithmic axis.
    """
    competing = [result for result in results if result.baseline is None]
    panels = []
    for what, of in (("messages", "bytes_per_user"), ("the network", "network_bytes_per_user")):
        points = [
            point
            for result in competing
            if (spent := getattr(result, of))
            for label, said in [(_marked(result.name, [result]), f"{size(spent)} of {what}")]
            for point in _series(label, [(spent, result)], metric, said)
        ]
        if points:
            x = log_axis([float(each.x[0]) for each in points], "bytes per user, both ways", in_bytes=True)
            across = _across([result for result in results if result.baseline], metric, x)
            steps, legend = _frontier(points, x, metric), [Entry("none here better for as few bytes", MUTED)]
            title = f"{metric.heading}, by bytes of {what}"
            panels.append(_panel(title, x, [*across, *points], metric, looks, [steps], legend))
    return panels


def _frontier(points: Sequence[Series], x: Axis, metric: Metric) -> Line:
    """Return the steps along the best accuracy for as many bytes or fewer."""
    ordered = sorted((float(each.x[0]), metric.sort_key(float(each.y[0]))) for each in points)
    spent, keys = np.array(ordered).T
    best = np.minimum.accumulate(keys) * (1 if metric.lower_is_better else -1)
    return Line(np.append(np.repeat(spent, 2)[1:], x.high), np.repeat(best, 2), MUTED, 1.1)


def draw_accuracy_against_tau(
    results: Sequence[ProtocolResult], across: Sequence[ProtocolResult], metric: Metric, looks: Looks
) -> Panel:
    """Draw protocols of sums at all budgets and numbers of users, by how little noise there is per user.

    ``across``: baselines and protocols without privacy.
    """
    beaten = to_beat(across)
    held = [each for each in across if each.baseline != NOTHING_SENT or each is beaten]
    curves = []
    for name, own in by_protocol(results).items():
        points = [(1 / tau, each) for each in own if (tau := each.mean("tau"))]
        curves += _series(shortened(name), points, metric)
    values = [value for curve in curves for value in curve.x.tolist()]
    x = log_axis(values, "1 / τ: users over the noise of a sum")
    lines = [*_across(held, metric, x, beaten), *curves]
    return _panel(metric.heading, x, lines, metric, looks, faint=False)


def draw_accuracy_against_users(courses: Sequence[Course], metric: Metric, looks: Looks) -> Panel:
    """Draw one line per protocol, all at one budget, and a ring where it begins to beat the base."""
    sign = 1 if metric.lower_is_better else -1
    every = [point for course in courses for point in course.points]
    held = sorted({point.users: point.accuracy + sign * point.against.mean for point in every}.items())
    users, reached = np.array(held).T
    base = courses[0].base
    lines = [Series(base, base, users, reached, [base] * users.size, baseline=True, solid=True)]
    for course in courses:
        points = [(point.users, point.result) for point in course.points]
        lines += _series(shortened(course.name), points, metric)
    x = log_axis(users.tolist(), "users", at_values=True)
    crossings = [course.crossing for course in courses if course.crossing]
    at = np.interp(np.log(crossings), np.log(users), reached) if crossings else []
    rings = Line(crossings, at, INK, 0, marker="o", radius=5.5, hollow="none")
    legend = [Entry(f"begins to beat {base}", INK, "o", None, hollow=True)] * bool(crossings)
    return _panel(metric.heading, x, lines, metric, looks, [rings], legend)
