"""Accuracy of protocols against epsilon, bytes and the number of users, and how users differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dprec.accounting import ComparableUnit
from dprec.arrays import Floats
from simulation.analysis.gains import NOTHING_SENT, POPULARITY, baseline_in_words, nothing_sent
from simulation.analysis.populations import PopulationCourse, Traffic
from simulation.analysis.protocol_results import (
    REPRESENTS,
    ProtocolResult,
    at_reference,
    by_accuracy,
    by_protocol,
    reference_budget,
)
from simulation.analysis.vocabulary import (
    Metric,
    grouped_by,
    listed,
    loss,
    short,
    size,
    unit_in_words,
    with_spread,
)
from simulation.pages.drawing import Panel, Plot, arrange, entry, legend, log_axis, point, shade, titled
from simulation.pages.looks import (
    FAINT,
    INK,
    LOOKS_IN_WORDS,
    MUTED,
    SURFACE,
    Look,
    Looks,
    most_telling,
    printable,
    shortened,
    told_apart,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Series:
    """The accuracy of a protocol or of a baseline at some places."""

    name: str
    label: str
    x: Floats
    y: Floats
    words: Sequence[str] = ()
    """What each place shows when it is pointed at; nothing of what lies across the panel."""
    deviation: Floats | None = None
    """Half the length of the error bars."""
    baseline: bool = False
    beaten: bool = False
    """Whether it is what is to be beaten, so that what is worse is shaded."""


def _series(
    label: str,
    points: Iterable[tuple[float | None, ProtocolResult]],
    metric: Metric,
    spent: str | None = None,
) -> list[Series]:
    """Return the results of one protocol at some places, from left to right; nothing without a place."""
    placed = [
        (x, accuracy, result) for x, result in points if x and (accuracy := result.average(metric.column))
    ]
    placed.sort(key=lambda point: point[0])
    words = []
    for _, average, result in placed:
        budget = "" if result.budget is None else f", ε {loss(result.budget)}"
        if result.population is not None:
            by_tau = " by τ" if result.mean(REPRESENTS) else ""
            budget += f", {result.users or 0:,.0f} users{by_tau}"
        price = "" if result.bytes_per_user is None else f"{size(result.bytes_per_user)} per user"
        reached = f"{metric.label} {with_spread(average, metric.digits)}"
        parts = [f"{printable(result.name)}{budget}: {reached}", spent or price]
        words.append(", ".join(filter(None, parts)))
    if not placed:
        return []
    figures = [(x, average.mean, average.deviation) for x, average, _ in placed]
    x, mean, deviation = np.array(figures, dtype=np.float64).T
    return [Series(placed[0][2].name, label, x, mean, words, deviation)]


def _across(results: Sequence[ProtocolResult], metric: Metric, ax: Axes) -> list[Series]:
    """Return lines across a panel: of baselines and protocols without privacy, first of nothing sent."""
    beaten = nothing_sent(results)
    lines = []
    for result in sorted(results, key=lambda result: result is not beaten):
        label = baseline_in_words(result) if result is beaten else shortened(result.name)
        if (reached := result.mean(metric.column)) is not None:
            baseline = result.baseline is not None
            ends = np.array(ax.get_xlim()), np.full(2, reached)
            lines.append(Series(result.name, label, *ends, baseline=baseline, beaten=result is beaten))
    return lines


def _marked(name: str, results: Sequence[ProtocolResult]) -> str:
    """Return a protocol's label, with a dagger where it is not proved that a budget is kept."""
    return shortened(name) + (" †" if any(result.falls_short for result in results) else "")


_FEW = 0.25
"""Largest share of what is drawn that may be off the scale."""

_WIDE_RANGE = 20
"""Ratio of the largest to the smallest accuracy above which their axis is logarithmic."""


def scale_accuracy(
    ax: Axes, metric: Metric, values: Mapping[str, Sequence[float]], ends: Sequence[float] = ()
) -> list[str]:
    """Scale the vertical axis of a panel, logarithmic if the accuracies lie far apart, and return its notes.

    The worst are left off the scale if they are few and farther from all others than these from each other.
    ``ends``: of error bars.
    """
    key = metric.sort_key
    turned = {name: [key(value) for value in series] for name, series in values.items() if len(series)}
    limit = _worst_shown(turned)
    on_scale = [value for series in turned.values() for value in series if value <= limit]
    on_scale = on_scale or [key(0.0), key(1.0)]
    off = {name: [value for value in values[name] if key(value) > limit] for name in turned}
    beyond = {name: series for name, series in off.items() if series}
    last_end = limit + _FEW * (limit - min(on_scale)) if beyond else math.inf
    on_scale += [key(end) for end in ends if key(end) <= last_end]
    low, high = sorted((key(min(on_scale)), key(max(on_scale))))
    if metric.lower_is_better and 0 < _WIDE_RANGE * low < high:
        log_axis(ax.yaxis, [low, high])
    else:
        margin = 0.1 * (high - low) or 0.05 * abs(low) or 0.5
        ax.set_ylim(low - margin, high + margin)
    # A name stays beside its values.
    spans = [
        f"{name} {' to '.join(dict.fromkeys([short(min(series)), short(max(series))]))}".replace(" ", "\xa0")
        for name, series in beyond.items()
    ]
    return [f"{'↑' if metric.lower_is_better else '↓'} off the scale: {', '.join(spans)}"] if spans else []


def _worst_shown(values: Mapping[str, Sequence[float]]) -> float:
    """Return the highest value to show; a few beyond a gap wider than the range of all others are not."""
    ordered = sorted(value for series in values.values() for value in series)
    for low, high in pairwise(ordered):
        beyond = sum(max(series) > low for series in values.values())
        if high - low > low - ordered[0] and beyond <= _FEW * len(values):
            return low
    return ordered[-1] if ordered else 1.0


def _draw(
    ax: Axes, title: str, x: str, series: Sequence[Series], metric: Metric, looks: Looks,
    handles: Sequence[Artist] = (), first: Sequence[str] = (),
) -> None:  # fmt: skip
    """Draw at most six named lines, some ``first``, the others thin and grey, and baselines behind them."""
    errors = [(line.y, line.deviation) for line in series if line.deviation is not None]
    ends = np.concatenate([[], *(y + sign * deviation for y, deviation in errors for sign in (-1, 1))])
    values: dict[str, list[float]] = {}
    for line in series:
        values.setdefault(line.label, []).extend(line.y.tolist())
    titled(ax, title, *scale_accuracy(ax, metric, values, ends[np.isfinite(ends)].tolist()), x=x)
    protocols = {line.name: line for line in series if not line.baseline}
    # What lies across has no price.
    prices = {
        name: [
            (x if line.words else math.inf, metric.sort_key(y)) for x, y in zip(line.x, line.y, strict=True)
        ]
        for name, line in protocols.items()
    }
    apart = told_apart(most_telling(prices, first), looks)
    behind = [line for line in series if line.name not in apart]
    entries = _draw_behind(ax, behind, metric, looks)
    for name in reversed(apart):
        line, look = protocols[name], apart[name]
        if line.deviation is not None:
            ax.errorbar(line.x, line.y, line.deviation, fmt="none", ecolor=look.colour, elinewidth=1.1)
        ax.plot(line.x, line.y, color=look.colour, linestyle=look.dashes)
        if line.words:
            point(ax, line.x, line.y, look.colour, line.words, marker=look.marker)
        if line.x.size > 1:
            entries.insert(0, entry(line.label, look if line.words else Look(look.colour, "", look.dashes)))
    if more := [line for name, line in protocols.items() if name not in apart]:
        entries.append(_entry_of_more(more))
    colours = {look.colour for look in apart.values()}
    trusts = [
        entry(words, look, line=False)
        for colour, (words, look) in LOOKS_IN_WORDS.items()
        if colour in colours
    ]
    legend(ax, [*entries, *trusts, *handles])
    lone = [protocols[name] for name in apart if protocols[name].x.size == 1]
    name_points(ax, lone, list(protocols.values()))


_HOLLOW: dict[str, Any] = {"markersize": 5.5, "markerfacecolor": SURFACE}
"""A single place of a protocol that is not named."""


def _entry_of_more(lines: Sequence[Series]) -> Artist:
    """Return what a legend says of protocols that are not named, as they are drawn."""
    lone = any(line.words and line.x.size == 1 for line in lines)
    across = any(line.x.size > 1 for line in lines)
    return entry(f"{len(lines)} more", Look(FAINT, "o" if lone else ""), line=across, **_HOLLOW)


def _draw_behind(ax: Axes, series: Sequence[Series], metric: Metric, looks: Looks) -> list[Artist]:
    """Draw what is to be beaten, the other baselines and protocols that are not named; name the first."""
    entries = []
    for line in series:
        if line.beaten:
            shade(ax, line.x, line.y, metric)
            entries.append(entry(line.label, Look(INK), linewidth=1.2))
        elif line.baseline:
            dashes = looks[line.name].dashes
            ax.plot(line.x, line.y, color=MUTED, linewidth=0.9, linestyle=dashes)
            if line.name == POPULARITY:
                entries.append(entry(line.label, Look(MUTED, "", dashes), linewidth=0.9))
        else:
            ax.plot(line.x, line.y, color=FAINT, linewidth=1.1)
            if line.words:
                style = _HOLLOW if line.x.size == 1 else {**_HOLLOW, "markersize": 2.5}
                point(ax, line.x, line.y, FAINT, line.words, **style)
    return entries


_BESIDE = (
    *((8, 0, "left"), (-8, 0, "right"), (-4, 12, "left")),
    *((-4, -12, "left"), (4, 12, "right"), (4, -12, "right")),
)
"""Where a name may stand beside its point: how far to the right and above, and which end of it is there."""

_SAME_PLACE = 7.0
"""How near to each other points have one label."""


def name_points(ax: Axes, lone: Sequence[Series], lines: Sequence[Series]) -> None:
    """Write names beside single points, the first ones first; what would cover something is left out."""
    if not lone:
        return
    from matplotlib.transforms import Bbox

    arrange(ax.get_figure(root=True))  # type: ignore[arg-type]
    at = {line.name: ax.transData.transform(np.array([line.x, line.y]).T) for line in lines}
    taken = [Bbox([place - 4, place + 4]) for places in at.values() for place in places]
    labelled: list[Floats] = []
    for line in lone:
        here = at[line.name][0]
        if any(math.dist(here, other) < _SAME_PLACE for other in labelled):
            continue
        labelled.append(here)
        alike = sum(math.dist(here, at[other.name][0]) < _SAME_PLACE for other in lone) - 1
        label = line.label + (f" + {alike}" if alike else "")
        for right, up, end in _BESIDE:
            style: dict[str, Any] = {"ha": end, "va": "center", "textcoords": "offset points"}
            ground = {"facecolor": SURFACE, "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
            name = ax.annotate(label, (line.x[0], line.y[0]), (right, up), bbox=ground, **style)
            name.set_in_layout(False)
            box = name.get_window_extent()
            if ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 and not box.count_overlaps(taken):
                taken.append(box)
                break
            name.remove()


@dataclass(frozen=True)
class EpsilonAxis:
    """An axis of privacy losses: those that hold, or those that were requested."""

    unit: ComparableUnit
    delta: float | None = None
    """With which the losses per user hold, by composition; by default they are sums."""
    requested: bool = False
    """Whether it shows the requested budgets; the unit is then theirs."""
    lists: bool = False
    """Whether they are of lists."""
    mixed: bool = False
    """Whether some of the requested budgets are for whole users."""

    def value(self, result: ProtocolResult) -> float | None:
        """Return a result's value on the axis; None if it has none."""
        if self.requested:
            return result.budget
        return result.epsilon(self.unit) if self.delta is None else result.composed

    @property
    def name(self) -> str:
        """What it counts."""
        unit = unit_in_words(self.unit, lists=self.lists)
        return f"requested ε per {unit}{' or user' * self.mixed}" if self.requested else f"ε per {unit}"

    @property
    def label(self) -> str:
        """What is written below the axis."""
        qualifier = ", largest of any user" if self.unit == "user" and not self.requested else ""
        at = "" if self.delta is None else f" at δ = {self.delta:g}"
        return f"{self.name}{at}{qualifier}"


def draw_accuracy_against_epsilon(
    ax: Axes, results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis, looks: Looks,
    first: Sequence[str] = (),
) -> None:  # fmt: skip
    """Draw one line per protocol, with error bars; protocols without privacy and baselines lie across.

    ``first``: names of those that are named before others.
    """
    protocols = [result for result in results if result.baseline is None]
    curves = [
        curve
        for name, group in by_protocol(protocols).items()
        for curve in _series(
            _marked(name, group) if axis.requested else shortened(name),
            [(axis.value(result), result) for result in group],
            metric,
        )
    ]
    log_axis(ax.xaxis, np.concatenate([curve.x for curve in curves]), at_values=True)
    across = _across([result for result in results if result.baseline or result.reference], metric, ax)
    _draw(ax, f"{metric.heading}, by {axis.name}", axis.label, [*across, *curves], metric, looks, first=first)


SPENT = {"messages": "bytes_per_user", "the network": "network_bytes_per_user"}
"""What bytes are counted of, and the attribute of a result that has their number."""


def draw_accuracy_against_bytes(
    ax: Axes, results: Sequence[ProtocolResult], metric: Metric, what: str, looks: Looks,
    first: Sequence[str] = (),
) -> None:  # fmt: skip
    """Draw accuracy against the bytes per user of messages, or of what a network carries.

    Steps join the protocols that none beats in both accuracy and bytes; some are named ``first``. Baselines
    lie across, because nothing sent has no place on a logarithmic axis.
    """
    points = [
        point
        for result in results
        if result.baseline is None and (spent := getattr(result, SPENT[what]))
        for point in _series(
            _marked(result.name, [result]), [(spent, result)], metric, f"{size(spent)} of {what}"
        )
    ]
    _, right = log_axis(ax.xaxis, [point.x[0] for point in points], size)
    ordered = sorted((point.x[0], metric.sort_key(point.y[0])) for point in points)
    spent, keys = np.array(ordered).T
    best = np.minimum.accumulate(keys) * (1 if metric.lower_is_better else -1)
    ax.step([*spent, right], [*best, best[-1]], where="post", color=MUTED, linewidth=1.1)
    across = _across([result for result in results if result.baseline], metric, ax)
    steps = entry("the best for as few bytes", Look(MUTED), linewidth=1.1)
    title = f"{metric.heading}, by bytes of {what}"
    _draw(ax, title, "bytes per user, both ways", [*across, *points], metric, looks, [steps], first)


def draw_accuracy_against_users(
    ax: Axes, courses: Sequence[PopulationCourse], metric: Metric, looks: Looks, title: str
) -> None:
    """Draw one line per protocol, all at one budget, and a ring where it begins to beat the base."""
    sign = 1 if metric.lower_is_better else -1
    course_points = [point for course in courses for point in course.points]
    base_points = sorted(
        {point.users: point.accuracy + sign * point.against.mean for point in course_points}.items()
    )
    users, reached = np.array(base_points).T
    base = courses[0].base
    lines = [Series(base, base, users, reached, baseline=True, beaten=True)]
    for course in courses:
        points = [(point.users, point.result) for point in course.points]
        lines += _series(shortened(course.name), points, metric)
    log_axis(ax.xaxis, users, at_values=True)
    ring: dict[str, Any] = {"markersize": 11, "markerfacecolor": "none"}
    crossings = [course.crossing for course in courses if course.crossing]
    handles = [entry(f"begins to beat {base}", Look(INK, "o"), line=False, **ring)] if crossings else []
    _draw(ax, title, "users", lines, metric, looks, handles)
    at = np.interp(np.log(crossings), np.log(users), reached) if crossings else []
    ax.plot(crossings, at, color=INK, linestyle="none", marker="o", **ring)


def accuracy_plot(
    results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis, looks: Looks, suffix: str,
    first: Sequence[str] = (),
) -> Plot | None:  # fmt: skip
    """Return the plot of accuracy against epsilon, and against the bytes per user; None without any of them.

    The bytes are those that a network carries, where they are known, and else those of messages. What a page
    recommends is named ``first``.
    """
    measured = [
        result for result in results if not result.baseline and result.mean(metric.column) is not None
    ]
    draw: dict[str, Any] = {"metric": metric, "looks": looks, "first": first}
    panels, against = list[Panel](), []
    words = ["Error bars: one standard deviation over runs. Point at a place to see its name and figures."]
    if any(axis.value(result) for result in measured):
        panels.append(partial(draw_accuracy_against_epsilon, results=results, axis=axis, **draw))
        against.append(axis.name)
        unknown = [
            name
            for name, points in by_protocol(measured).items()
            if all(result.budget and axis.value(result) is None for result in points)
        ]
        words += [f"Not drawn, because no {axis.name} is proved: {listed(unknown)}."] if unknown else []
    at_budget, budget = at_reference(results), reference_budget(results)
    counted = [
        what for what, key in SPENT.items() if any(getattr(result, key) for result in at_reference(measured))
    ]
    if counted:
        panels.append(partial(draw_accuracy_against_bytes, results=at_budget, what=counted[-1], **draw))
        against.append("bytes per user")
        words += [] if budget is None else [f"By bytes, ε = {budget:g}, or next to it."]
    baselines = {result.baseline for result in results} - {None}
    words += _shaded(results, metric)
    words += ["Thin lines across: the other baselines."] * bool(baselines - {NOTHING_SENT})
    words += ["†: not proved to keep its budget."] * any(result.falls_short for result in results)
    if not panels:
        return None
    best = by_accuracy(measured, metric)[0]
    return Plot(
        f"accuracy{suffix}",
        f"{metric.label} against {listed(against)}",
        " ".join(words),
        f"{metric.label} against {listed(against)}; the most accurate of {len(by_protocol(measured))} is "
        f"{printable(best.name)}, {best.mean(metric.column):.3f}.",
        panels,
        full_width=True,
    )


def _shaded(results: Sequence[ProtocolResult], metric: Metric) -> list[str]:
    """Say what is shaded, if anything is to be beaten, and that it may lie off the scale."""
    beaten = nothing_sent(results)
    reached = None if beaten is None else beaten.mean(metric.column)
    if beaten is None or reached is None:
        return []
    values = {
        result.name: [metric.sort_key(value)]
        for result in results
        if (value := result.mean(metric.column)) is not None
    }
    off = ", where that is on the scale" if metric.sort_key(reached) > _worst_shown(values) else ""
    return [f"Shaded: worse than {baseline_in_words(beaten)}{off}."]


def population_plot(
    courses: Sequence[PopulationCourse], metric: Metric, looks: Looks, suffix: str
) -> Plot | None:
    """Return the plot of accuracy against the number of users, a panel for each budget; None without any.

    Ratings that are drawn and those of data sets share no panel.
    """
    together = grouped_by(((course.ratings, course.budget or 0.0), course) for course in courses)
    if not together:
        return None
    draw = partial(draw_accuracy_against_users, metric=metric, looks=looks)
    return Plot(
        f"accuracy-users{suffix}",
        f"{metric.label} against the number of users",
        f"Solid line: {courses[0].base}; shaded: worse. A ring is where a protocol begins to beat it.",
        f"{metric.label} against users, to beat {courses[0].base}: "
        + "; ".join(f"{course.name} at ε = {course.budget:g} {course.users_needed}" for course in courses),
        [
            partial(draw, courses=group, title=f"{metric.heading}, ε = {budget:g}")
            for (_, budget), group in sorted(together.items())
        ],
        full_width=len(together) > 1,
    )


_QUANTILES = (0, 5, 25, 50, 75, 95, 100)


def spreads_plot(traffic: Traffic, looks: Looks, at: str) -> Plot | None:
    """Return the plot of how losses are distributed over the users of every protocol; None without a loss.

    ``at``: what the caption says of the budget.
    """
    strips = []
    for result, label, columns in traffic:
        losses = columns["epsilon_per_user"]
        # A logarithmic axis has no place for what loses nothing.
        if np.isfinite(losses).all() and losses.max() > 0:
            strips.append((result.name, label, np.percentile(losses, _QUANTILES)))
    if not strips:
        return None
    strips.sort(key=lambda strip: -float(strip[2][3]))
    return Plot(
        "epsilon-per-user",
        "How users differ: ε per user",
        f"Line: all users. Bars: the middle 90 % and 50 %. Dot: the median.{at}",
        f"Medians: {'; '.join(f'{label} {quantiles[3]:,.4g}' for _, label, quantiles in strips)}.",
        [partial(_draw_spreads, strips=strips, looks=looks)],
        height=50.0 + 15 * len(strips),
    )


def _draw_spreads(ax: Axes, strips: Sequence[tuple[str, str, Floats]], looks: Looks) -> None:
    """Draw one strip per protocol: all users, 90 %, 50 % and the median, which is also beside the name."""
    losses = np.concatenate([quantiles for *_, quantiles in strips])
    least, _ = log_axis(ax.xaxis, losses[losses > 0])
    ax.set_ylim(-0.7, len(strips) - 0.3)
    for row, (name, label, quantiles) in enumerate(strips):
        colour = looks[name].colour
        low, p5, p25, median, p75, p95, high = np.maximum(quantiles, least).tolist()
        for start, end, width, opacity in ((low, high, 1, 0.7), (p5, p95, 4, 0.4), (p25, p75, 8, 0.55)):
            ax.hlines(row, start, end, color=colour, linewidth=width, alpha=opacity)
        words = f"median ε {short(median)}, 95th percentile {short(p95)}, largest {short(high)}"
        point(ax, [median], [row], colour, [f"{printable(label)}: {words}"], markersize=5)
    names = [f"{shortened(label)}  ε {short(float(quantiles[3]))}" for _, label, quantiles in strips]
    ax.set_yticks(range(len(names)), names)
    ax.grid(visible=True, axis="x")
    ax.set_xlabel("ε per user")
