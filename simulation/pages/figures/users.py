"""How users differ, in a run and between protocols, and the three answers of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dprec.arrays import Floats
from dprec.metrics import LONGEST_LIST
from simulation.analysis.vocabulary import Metric, loss, main_metric, number, profiles_compared, short, size
from simulation.pages.figures.marks import Axis, Line, level_axis, log_axis, plain_axis, stairs, strokes
from simulation.pages.figures.panels import (
    INK,
    MUTED,
    TRUST_LOOKS,
    Looks,
    Panel,
    chart,
    empty,
    nothing_sent_marks,
    printable,
    shortened,
)
from simulation.pages.figures.periods import draw_accuracy, has_periods
from simulation.storage.run_files import RANK, RunFiles
from simulation.storage.summary import PrivacySummary
from strategies.participation import RoundRecord

_THIRD = 340.0
"""Width of one of three panels beside each other."""


def _colour(run: RunFiles) -> str:
    return TRUST_LOOKS[run.summary.privacy.trust][0]


def _histogram(title: str, values: Floats, colour: str, unit: str, label: str) -> Panel:
    """Draw how a figure is distributed over the users, with median and 95th percentile marked."""
    low, high = float(values.min()), float(values.max())
    median, p95 = np.percentile(values, (50, 95)).tolist()
    if high - low <= 0.01 * abs(high):
        within = "" if high - low <= 1e-9 * abs(high) else ", within 1 %"
        return empty(title, f"{label}: {_measured(median, unit)} for every user{within}", width=_THIRD)
    logarithmic, in_bytes = low > 0 and high / low > 60, unit == "B"
    edges = bins(values, logarithmic=logarithmic)
    shares = np.histogram(values, edges)[0] / values.size
    x = (
        log_axis([low, high], label, in_bytes=in_bytes, labels=5)
        if logarithmic
        else plain_axis(float(edges[0]), float(edges[-1]), label, ticks=4, in_bytes=in_bytes)
    )
    y = plain_axis(0, float(shares.max()) * 1.05, "share of users", ticks=4, percent=True, grid=True)
    lines = [
        Line(*stairs(edges, shares), colour, 1.2, fill=0.28),
        Line([median, median], [0, y.high], INK, 1.1, label=f"median {_measured(median, unit)}"),
        Line([p95, p95], [0, y.high], INK, 1.1, "3 2", label=f"95th percentile {_measured(p95, unit)}"),
    ]
    return chart(title, x, y, lines, width=_THIRD, height=180)


_BINS = 30


def bins(values: Floats, *, logarithmic: bool) -> Floats:
    """Return edges of bins; between the possible values if these are evenly spaced, as integers are.

    Each bin then holds as many possible values as every other, or at least one on a logarithmic axis.
    """
    low, high = float(values.min()), float(values.max())
    edges = np.geomspace(low, high, _BINS + 1) if logarithmic else np.linspace(low, high, _BINS + 1)
    step = float(np.diff(np.unique(values)).min())
    places = (values - low) / step
    if not np.allclose(places, np.round(places), atol=1e-6):
        edges[-1] = np.nextafter(high, np.inf)
        return edges
    if logarithmic:
        last = (high - low) / step + 1
        between = np.unique(np.append(np.round((edges[:-1] - low) / step), last))
        return np.maximum(low + step * (between - 0.5), low / 2)
    together = np.ceil(((high - low) / step + 1) / _BINS)
    return np.arange(low, high + step * (together + 0.5), step * together) - step / 2


def _measured(value: float, unit: str) -> str:
    return size(value) if unit == "B" else f"{unit}{short(value)}"


def evaluated_rounds(rounds: Sequence[RoundRecord], metric: Metric) -> list[tuple[int, float, float]]:
    """Return number, cumulative bytes and accuracy of the rounds that were evaluated."""
    spent, evaluated = 0.0, []
    for record in rounds:
        spent += record.uplink_message_bytes + record.downlink_message_bytes
        value = (record.accuracy or {}).get(metric.column)
        if value is not None:
            evaluated.append((record.round, spent, value))
    return evaluated


def draw_rounds(run: RunFiles, metric: Metric, baseline: float | None) -> Panel:
    """Draw accuracy against the cumulative bytes per user, and what is reached with nothing sent across."""
    baseline = baseline if metric.column in HELD_AGAINST else None
    rounds = evaluated_rounds(run.rounds, metric)
    spent = [total / run.summary.traffic.users for _, total, _ in rounds]
    values = [value for _, _, value in rounds]
    known = values if baseline is None else [*values, baseline]
    label = "bytes of messages per user so far, both ways"
    if min(spent) > 0:
        x = log_axis(spent, label, in_bytes=True, labels=5)
    else:
        x = plain_axis(0, max(spent) * 1.05, label, ticks=4, in_bytes=True)
    y = plain_axis(min(known), max(known), metric.heading, pad=0.08, grid=True)
    lines: list[Line] = []
    if baseline is not None:
        shade, across = nothing_sent_marks(x, y, [x.high], [baseline], metric)
        lines = [shade, replace(across, label=f"nothing sent: {number(baseline, metric.digits - 1)}")]
    words = [
        f"round {place}: {metric.label} {value:.{metric.digits}f}, {size(at)} per user so far"
        for at, (place, _, value) in zip(spent, rounds, strict=True)
    ]
    named = f"rounds {rounds[0][0]} to {rounds[-1][0]}"
    lines.append(Line(spent, values, _colour(run), 1.7, "", "o", 2.6, label=named, words=words))
    notes = _worse(metric, values[-1], baseline)
    return chart(f"{metric.label} by round", x, y, lines, notes=notes, width=_THIRD, height=180)


HELD_AGAINST = ("rmse", "sign_accuracy")
"""The metrics of `Summary.nothing_sent`."""


def _worse(metric: Metric, reached: float, baseline: float | None) -> list[str]:
    """Say that a run is worse than nothing sent, if it is."""
    if baseline is None or metric.column not in HELD_AGAINST or not metric.better(baseline, reached):
        return []
    return [f"Worse than nothing sent, by {number(abs(reached - baseline), metric.digits - 1)}."]


def draw_summary(run: RunFiles) -> list[Panel]:
    """Draw the three answers of a run: how accurate, how private, how many bytes per person."""
    spent = run.bytes_per_user
    title = f"How many bytes: {size(float(spent.mean()))} per user"
    traffic = _histogram(title, spent, _colour(run), "B", "bytes per user, both ways")
    return [_accuracy(run), _losses(run), traffic]


def _accuracy(run: RunFiles) -> Panel:
    accuracy = run.summary.accuracy.metrics()
    metric = main_metric(accuracy)
    if metric is None:
        deployed = run.summary.devices == "deployed"
        words = "known to the devices only" if deployed else "no accuracy was measured"
        return empty("How accurate", words, width=_THIRD)
    reached, baseline = accuracy[metric.column], run.summary.nothing_sent
    assert reached is not None, "a main metric without a value"
    title = f"How accurate: {metric.label} {reached:.4g}"
    if has_periods(run):
        return draw_accuracy(run, metric, title, _THIRD)
    if len(evaluated_rounds(run.rounds, metric)) > 1:
        return replace(draw_rounds(run, metric, baseline), title=title)
    if RANK in run.predictions:
        return _ranks(title, run.predictions[RANK], _colour(run))
    panel = _predictions(run.predictions["rating"], run.predictions["prediction"], _colour(run))
    return replace(panel, title=title, notes=_worse(metric, reached, baseline))


def _ranks(title: str, ranks: Floats, colour: str) -> Panel:
    """Draw which share of the test items is among the first of the lists."""
    lengths = np.arange(1, LONGEST_LIST + 1)
    shares = np.array([np.mean(ranks <= length) for length in lengths])
    x = plain_axis(1, LONGEST_LIST, "length of the lists", ticks=4)
    y = plain_axis(
        0, max(float(shares[-1]), 0.01) * 1.05, "share of test items", ticks=4, percent=True, grid=True
    )
    words = [f"{share:.1%} among the first {length}" for length, share in zip(lengths, shares, strict=True)]
    lines = [Line(lengths.astype(np.float64), shares, colour, 1.7, "", "o", 2.6, words=words)]
    return chart(title, x, y, lines, width=_THIRD, height=180)


def _losses(run: RunFiles) -> Panel:
    losses, how = run.traffic["epsilon_per_user"], ""
    if not np.isfinite(losses).all():
        # Where noise is added to sums, a loss is bounded by composition alone.
        losses, how = run.traffic["epsilon_composed"], f", δ = {run.summary.privacy.delta:g}"
    known = losses[np.isfinite(losses)]
    if known.size < losses.size or not known.size:
        return empty("How private: no bound", _unbounded_in_words(run.summary.privacy), width=_THIRD)
    largest = float(known.max())
    compared = profiles_compared(largest, hides_rated_items=run.summary.privacy.hides_rated_items)
    title = f"How private: ε {short(largest)} per user at most"
    return _histogram(title, known, _colour(run), "ε ", f"ε per user{compared}{how}")


def _unbounded_in_words(privacy: PrivacySummary) -> str:
    if privacy.status in ("claimed", "declared"):
        return f"ε {loss(privacy.epsilon_claimed.per_user)} per user is {privacy.status},\nnothing is proved"
    return "no privacy: the server\nsees true ratings" if privacy.trusts_server else "the loss has no bound"


_MOST_GROUPS, PREDICTION_QUANTILES = 12, (5, 25, 50, 75, 95)


def _predictions(ratings: Floats, predictions: Floats, colour: str) -> Panel:
    """Draw the distribution of predictions for every true rating, with the line of perfect predictions."""
    groups = group_by_rating(ratings, predictions)
    places = [place for place, _ in groups]
    ends = [places[0], places[-1]]
    least, lower, middle, upper, most = np.array([quantiles for _, quantiles in groups]).T
    words = [
        f"true rating {place:g}: median {each[2]:.2f}, middle 50 % {each[1]:.2f} to {each[3]:.2f}, "
        f"middle 90 % {each[0]:.2f} to {each[4]:.2f}"
        for place, each in groups
    ]
    lines = [
        Line(ends, ends, MUTED, 1.1, "4 3"),
        Line(*strokes(places, least, most), colour, 1.4, opacity=0.5),
        Line(*strokes(places, lower, upper), colour, 6, opacity=0.5),
        Line(places, middle, colour, 0, marker="o", words=words),
    ]
    y = plain_axis(min(least.min(), ends[0]), max(most.max(), ends[1]), "prediction", pad=0.06, grid=True)
    return chart("", level_axis(places, "true rating"), y, lines, width=_THIRD, height=180)


def group_by_rating(ratings: Floats, predictions: Floats) -> list[tuple[float, Floats]]:
    """Return every true rating, or middle of a tenth of the scale, and the quantiles of its predictions."""
    levels, of_rating = np.unique(ratings, return_inverse=True)
    if levels.size > _MOST_GROUPS:
        edges = np.linspace(levels[0], levels[-1], 11)
        of_rating = np.clip(np.searchsorted(edges, ratings, side="right") - 1, 0, 9)
        levels = (edges[1:] + edges[:-1]) / 2
    return [
        (float(level), np.percentile(predictions[of_rating == place], PREDICTION_QUANTILES))
        for place, level in enumerate(levels)
        if (of_rating == place).any()
    ]


SPREAD_QUANTILES = (0, 5, 25, 50, 75, 95, 100)


@dataclass(frozen=True, eq=False)
class Spread:
    """How a figure is distributed over the users of a protocol."""

    name: str
    label: str
    quantiles: Floats
    """At `SPREAD_QUANTILES` per cent; shape (7,)."""


def draw_spreads(spreads: Sequence[Spread], axis: str, looks: Looks, *, in_bytes: bool) -> Panel:
    """Draw one strip per protocol: all users, 90 %, 50 % and the median, which is also beside the name."""
    ordered = sorted(spreads, key=lambda spread: -float(spread.quantiles[3]))
    measured: Callable[[float], str] = size if in_bytes else lambda value: f"ε {short(value)}"
    everything = np.concatenate([spread.quantiles for spread in spreads])
    x = log_axis(everything[everything > 0].tolist() or [1.0], axis, in_bytes=in_bytes, labels=4, grid=True)
    names = [f"{shortened(spread.label)}  {measured(float(spread.quantiles[3]))}" for spread in ordered]
    y = Axis(-0.7, len(ordered) - 0.3, list(enumerate(names)))
    lines: list[Line] = []
    for row, spread in enumerate(ordered):
        colour = looks[spread.name].colour
        least, p5, p25, median, p75, p95, most = np.maximum(spread.quantiles, x.low).tolist()
        for ends, width, opacity in (((least, most), 1, 0.7), ((p5, p95), 4, 0.4), ((p25, p75), 8, 0.55)):
            lines.append(Line(ends, [row, row], colour, width, opacity=opacity))
        words = f"median {measured(median)}, 95th percentile {measured(p95)}, largest {measured(most)}"
        said = [f"{printable(spread.label)}: {words}"]
        lines.append(Line([median], [row], colour, 0, marker="o", radius=3, words=said))
    return chart("", x, y, lines, width=480.0, height=16.0 * (len(ordered) + 0.4))
