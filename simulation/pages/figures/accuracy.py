"""Accuracy of protocols against epsilon, bytes per user and the number of users."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import ComparableUnit
from simulation.analysis.gains import NOTHING_SENT
from simulation.analysis.populations import Course
from simulation.analysis.protocol_results import ProtocolResult, by_protocol
from simulation.analysis.vocabulary import Metric, loss, loss_per, size, with_spread
from simulation.pages.figures.axes import accuracy_axis, log_axis
from simulation.pages.figures.looks import (
    Looks,
    most_telling,
    nothing_sent_marks,
    told_apart,
    trust_legend,
)
from simulation.pages.figures.marks import Line, Mark, Spot, Text
from simulation.pages.figures.panels import (
    FAINT,
    INK,
    MUTED,
    SURFACE,
    Axis,
    Entry,
    Panel,
    printable,
    shortened,
)
from simulation.pages.figures.rendering import text_width

_HEIGHT = 240.0


@dataclass(frozen=True, eq=False)
class Series:
    """The accuracy of a protocol or of a baseline at some places."""

    name: str
    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    """Shape (places,), as x and the deviation."""
    words: Sequence[str]
    """What each place shows when it is pointed at."""
    deviation: NDArray[np.float64] | None = None
    """Half the length of the error bars."""
    flat: bool = False
    """Whether it is the same everywhere, a line across the panel."""

    def bars(self, colour: str) -> Line:
        """Return its error bars."""
        half = np.zeros(self.y.size) if self.deviation is None else self.deviation
        ends = np.stack([self.y - half, self.y + half, np.full(self.y.size, np.nan)])
        return Line(np.repeat(self.x, 3), ends.T.ravel(), colour, 1.1)


def _points(
    name: str, label: str, points: Iterable[tuple[float, ProtocolResult, str]], metric: Metric
) -> Series | None:
    """Return the results of a protocol as a series, from left to right; None if there is none."""
    known = sorted(
        (
            (x, average.mean, average.deviation, words)
            for x, result, words in points
            if (average := result.average(metric.column))
        ),
        key=lambda point: point[0],
    )
    if not known:
        return None
    x, mean, deviation = np.array([point[:3] for point in known]).T
    return Series(name, label, x, mean, [point[3] for point in known], deviation)


def _across(result: ProtocolResult, metric: Metric, x: Axis) -> Series | None:
    words = result_in_words(result, metric)
    ends = [(x.low, result, words), (x.high, result, words)]
    made = _points(result.name, shortened(result.name), ends, metric)
    return made and Series(made.name, made.label, made.x, made.y, made.words, flat=True)


def result_in_words(result: ProtocolResult, metric: Metric) -> str:
    """Return a protocol, its budget, its accuracy and its bytes in one line."""
    budget = "" if result.budget is None else f", ε {loss(result.budget)}"
    accuracy = with_spread(result.average(metric.column), metric.digits)
    spent = "" if result.bytes_per_user is None else f", {size(result.bytes_per_user)} per user"
    return f"{printable(result.name)}{budget}: {metric.label} {accuracy}{spent}"


def _marked(name: str, results: Sequence[ProtocolResult]) -> str:
    """Return a protocol's label, with a dagger where it is not proved that a budget is kept."""
    return shortened(name) + (" †" if any(result.falls_short for result in results) else "")


@dataclass(frozen=True, eq=False)
class _Backdrop:
    """What lies behind the protocols: nothing sent, and the other baselines."""

    base: Series | None
    others: Sequence[Series] = ()


def _backdrop(results: Sequence[ProtocolResult], metric: Metric, x: Axis) -> _Backdrop:
    lines = {
        result.baseline: line
        for result in results
        if result.baseline and (line := _across(result, metric, x))
    }
    return _Backdrop(lines.pop(NOTHING_SENT, None), list(lines.values()))


def _vertical(series: Sequence[Series], behind: _Backdrop, metric: Metric) -> tuple[Axis, tuple[str, ...]]:
    """Return the vertical axis of a panel, and its notes."""
    values = {each.label: each.y.tolist() for each in (*series, *behind.others)}
    if behind.base is not None:
        values[NOTHING_SENT] = behind.base.y.tolist()
    ends = [end for each in series for end in np.asarray(each.bars("").y).tolist() if math.isfinite(end)]
    return accuracy_axis(metric, values, ends)


def _named(series: Sequence[Series], metric: Metric) -> list[str]:
    return most_telling(
        {
            each.name: [
                (math.inf if each.flat else x, metric.sort_key(y))
                for x, y in zip(each.x.tolist(), each.y.tolist(), strict=True)
            ]
            for each in series
        }
    )


def _behind_marks(x: Axis, y: Axis, behind: _Backdrop, metric: Metric, looks: Looks) -> list[Mark]:
    marks: list[Mark] = []
    if behind.base is not None:
        marks += nothing_sent_marks(x, y, behind.base.x, behind.base.y, metric)
    marks += [Line(each.x, each.y, MUTED, 0.9, looks[each.name].dashes) for each in behind.others]
    return marks


def _spots(series: Iterable[Series]) -> Iterator[Spot]:
    for each in series:
        yield from map(Spot, each.x.tolist(), each.y.tolist(), each.words)


def _lines(
    title: str,
    x: Axis,
    series: Sequence[Series],
    behind: _Backdrop,
    metric: Metric,
    looks: Looks,
    extra: Sequence[Mark] = (),
    legend: Sequence[Entry] = (),
) -> Panel:
    """Return a panel with at most six named lines, the others thin and grey, and baselines behind them."""
    y, notes = _vertical(series, behind, metric)
    lines = {each.name: each for each in series}
    apart = told_apart(_named(series, metric), looks)
    marks = _behind_marks(x, y, behind, metric, looks)
    marks += [
        Line(each.x, each.y, FAINT, 1.1, "", "o" if each.x.size == 1 else "", 2.2)
        for each in series
        if each.name not in apart
    ]
    ends = [] if behind.base is None else [Entry("nothing sent", INK, at=float(behind.base.y[-1]))]
    for name, look in reversed(apart.items()):
        each, shape = lines[name], "" if lines[name].flat else look.marker
        marks += [] if each.deviation is None else [each.bars(look.colour)]
        marks.append(Line(each.x, each.y, look.colour, 1.8, look.dashes, shape))
        dashes = look.dashes if each.x.size > 1 else None
        ends.append(Entry(each.label, look.colour, shape, dashes, float(each.y[-1])))
    marks += [*extra, *_spots([*behind.others, *series, *([behind.base] if behind.base else [])])]
    below = [*trust_legend(apart.values()), *_rest(series, apart), *legend]
    return Panel(title, x, y, marks, ends, below, notes, height=_HEIGHT)


def _rest(series: Sequence[Series], named: Iterable[str]) -> list[Entry]:
    more = len({each.name for each in series} - set(named))
    return [Entry(f"{more} more, named when pointed at", FAINT)] if more else []


@dataclass(frozen=True)
class EpsilonAxis:
    """An axis of privacy losses: those that hold, or those that were requested."""

    unit: ComparableUnit
    delta: float | None = None
    """With which the losses per user hold, by composition; by default they are sums."""
    asked: bool = False
    """Whether it shows the requested budgets; the unit is then theirs."""

    def value(self, result: ProtocolResult) -> float | None:
        """Return a result's value on the axis; None if it has none."""
        if self.asked:
            return result.budget
        return result.epsilon(self.unit) if self.delta is None else result.composed

    @property
    def name(self) -> str:
        """What it counts."""
        return f"{'requested ' if self.asked else ''}{loss_per(self.unit)}"

    @property
    def label(self) -> str:
        """What is written below the axis."""
        most = ", largest of any user" if self.unit == "user" else ""
        at = "" if self.delta is None else f" at δ = {self.delta:g}"
        return f"{loss_per(self.unit)}{at}{', as requested' if self.asked else most}"


def draw_accuracy_against_epsilon(
    results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis, looks: Looks
) -> Panel:
    """Draw one line per protocol, with error bars; protocols without privacy and baselines lie across.

    Parameters
    ----------
    axis : EpsilonAxis
        Results without a value on it are left out.
    """
    protocols = by_protocol([result for result in results if result.baseline is None])
    curves = []
    for name, own in protocols.items():
        points = [
            (value, result, result_in_words(result, metric))
            for result in own
            if (value := axis.value(result))
        ]
        if curve := _points(name, _marked(name, own) if axis.asked else shortened(name), points, metric):
            curves.append(curve)
    x = log_axis(
        [value for curve in curves for value in curve.x.tolist()] or [0.5, 2.0], axis.label, at_values=True
    )
    across = [line for result in results if result.reference and (line := _across(result, metric, x))]
    title = f"{metric.heading}, by {axis.name}"
    return _lines(title, x, [*curves, *across], _backdrop(results, metric, x), metric, looks)


def draw_accuracy_by_round(
    traces: Sequence[Series], results: Sequence[ProtocolResult], metric: Metric, looks: Looks
) -> Panel:
    """Draw iterative protocols as lines over their rounds, one-shot protocols as points, baselines across.

    Parameters
    ----------
    traces : sequence of Series
        Against cumulative bytes per user.
    results : sequence of ProtocolResult
        The baselines among them are drawn.
    """
    spent = np.concatenate([trace.x for trace in traces]).tolist()
    x = log_axis(spent, "bytes of messages per user so far, both ways", in_bytes=True)
    return _lines(metric.heading, x, traces, _backdrop(results, metric, x), metric, looks)


def draw_accuracy_against_users(courses: Sequence[Course], metric: Metric, looks: Looks) -> Panel:
    """Draw one line per protocol, all at one budget, and a ring where it begins to beat nothing sent.

    Parameters
    ----------
    courses : sequence of Course
        At one budget, on ratings of one kind.
    """
    sign = 1 if metric.lower_is_better else -1
    every = [point for course in courses for point in course.points]
    base = sorted({point.users: point.accuracy + sign * point.against.mean for point in every}.items())
    users, reached = np.array(base).T
    x = log_axis(users.tolist(), "users", at_values=True)
    series = []
    for course in courses:
        points = [
            (point.users, point.result, f"{point.users:,.0f} users, {result_in_words(point.result, metric)}")
            for point in course.points
        ]
        if line := _points(course.name, shortened(course.name), points, metric):
            series.append(line)
    crossings = [course.crossing for course in courses if course.crossing]
    at = np.interp(np.log(crossings), np.log(users), reached) if crossings else []
    rings = Line(crossings, at, INK, 0, marker="o", radius=5.5, hollow="none")
    behind = _Backdrop(Series(NOTHING_SENT, NOTHING_SENT, users, reached, [NOTHING_SENT] * users.size))
    legend = [Entry("begins to beat nothing sent", INK, "o", None)] * bool(crossings)
    return _lines(metric.heading, x, series, behind, metric, looks, [rings], legend)


def draw_accuracy_against_bytes(
    results: Sequence[ProtocolResult], metric: Metric, looks: Looks
) -> list[Panel]:
    """Draw accuracy against the bytes of messages per user, and against what a network carries.

    Protocols that none beats in both accuracy and bytes are joined by steps. Baselines lie across, because
    nothing sent has no place on a logarithmic axis.

    Parameters
    ----------
    results : sequence of ProtocolResult
        One for each protocol, and the baselines.
    """
    competing = [result for result in results if result.baseline is None]
    known = (
        ("messages", [(spent, result) for result in competing if (spent := result.bytes_per_user)]),
        (
            "the network",
            [(spent, result) for result in competing if (spent := result.network_bytes_per_user)],
        ),
    )
    return [
        _scatter(f"{metric.heading}, by bytes of {what}", spent, results, metric, looks)
        for what, spent in known
        if spent
    ]


def _scatter(
    title: str,
    spent: Sequence[tuple[float, ProtocolResult]],
    results: Sequence[ProtocolResult],
    metric: Metric,
    looks: Looks,
) -> Panel:
    x = log_axis([each for each, _ in spent], "bytes per user, both ways", in_bytes=True)
    behind = _backdrop(results, metric, x)
    points = [
        point
        for bytes_, result in spent
        if (
            point := _points(
                result.name,
                _marked(result.name, [result]),
                [(bytes_, result, f"{result_in_words(result, metric)}, here {size(bytes_)}")],
                metric,
            )
        )
    ]
    y, notes = _vertical(points, behind, metric)
    apart = {name: looks[name] for name in _named(points, metric)}
    marks = [*_behind_marks(x, y, behind, metric, looks), _frontier(points, x, metric)]
    for each in points:
        if each.name not in apart:
            marks.append(Line(each.x, each.y, FAINT, 0, marker="o", radius=3, hollow=SURFACE))
    shown = [each for name in apart for each in points if each.name == name]
    for each in shown:
        look = looks[each.name]
        marks.append(Line(each.x, each.y, look.colour, 0, marker=look.marker or "o", radius=4))
    marks += [*_labels(shown, points, x, y), *_spots([*behind.others, *points])]
    ends = [] if behind.base is None else [Entry("nothing sent", INK, at=float(behind.base.y[-1]))]
    legend = [*trust_legend(apart.values()), Entry("nothing better for as few bytes", MUTED)]
    return Panel(title, x, y, marks, ends, legend, notes, height=_HEIGHT)


def _frontier(points: Sequence[Series], x: Axis, metric: Metric) -> Line:
    """Return the steps along the best accuracy for as many bytes or fewer."""
    ordered = sorted((float(each.x[0]), metric.sort_key(float(each.y[0]))) for each in points)
    spent, keys = np.array(ordered).T
    best = np.minimum.accumulate(keys) * (1 if metric.lower_is_better else -1)
    return Line(np.append(np.repeat(spent, 2)[1:], x.high), np.repeat(best, 2), MUTED, 1.1)


def _labels(named: Sequence[Series], points: Sequence[Series], x: Axis, y: Axis) -> list[Text]:
    """Write names beside points, the first ones first; what would cover something is left out."""
    width, height, letter = 330.0, _HEIGHT, 11.0
    at = {
        each.name: (float(x.places(each.x)[0]) * width, -float(y.places(each.y)[0]) * height)
        for each in points
    }
    taken = [(across - 4, down - 4, across + 4, down + 4) for across, down in at.values()]
    written = []
    for each in named:
        across, down = at[each.name]
        wide, high = text_width(each.label, letter), letter * 1.1
        for anchor, right, below in (
            ("start", 8.0, 0.0),
            ("end", -8.0, 0.0),
            ("start", -4.0, -12.0),
            ("start", -4.0, 12.0),
            ("end", 4.0, -12.0),
            ("end", 4.0, 12.0),
        ):
            left = across + right - (wide if anchor == "end" else 0)
            box = left, down + below - high / 2, left + wide, down + below + high / 2
            if box[0] >= 0 and box[2] <= width + 60 and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                place = float(each.x[0]), float(each.y[0])
                written.append(Text(*place, each.label, INK, anchor, (right, below), letter, halo=SURFACE))
                break
    return written


_Box = tuple[float, float, float, float]


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
