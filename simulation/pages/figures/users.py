"""How users differ, in a run and between protocols, and the three answers of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.vocabulary import Metric, loss, main_metric, profiles_compared, short, size
from simulation.pages.figures.axes import log_axis, plain_axis
from simulation.pages.figures.labels import show_on_hover
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.panels import (
    BACKING,
    INK,
    MUTED,
    RULE,
    SERIES,
    SURFACE,
    Style,
    axis_labels,
    empty,
    note,
    panels,
    printable,
    shortened,
    title,
)
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import PrivacySummary
from strategies.participation import RoundRecord


def _histogram(
    ax: Axes, values: NDArray[np.float64], style: Style, colour: str, unit: str, label: str
) -> None:
    """Draw how a figure is distributed over the users, with median and 95th percentile marked."""
    low, high = float(values.min()), float(values.max())
    if high - low <= 0.01 * abs(high):
        empty(ax, "", style)
        around = "every user" if high - low <= 1e-9 * abs(high) else "every user, within 1 %"
        middle = _measured(float(np.median(values)), unit)
        note(ax, 0.5, 0.54, middle, style, ha="center", color=colour, fontsize=2.2 * style.points)
        note(ax, 0.5, 0.4, around, style, ha="center")
        return
    axis_labels(ax, style, x=label, side="share of users")
    logarithmic = low > 0 and high / low > 60
    edges = bins(values, logarithmic=logarithmic)
    shares = np.histogram(values, edges)[0] / values.size
    ax.stairs(shares, edges, fill=True, color=colour, alpha=0.28, linewidth=0)
    ax.stairs(shares, edges, color=colour, linewidth=1.2)
    if logarithmic:
        log_axis(ax, [low, high], in_bytes=unit == "B")
    else:
        plain_axis(ax, ticks=4 if style.narrow else 5, in_bytes=unit == "B")
    plain_axis(ax, which="y", ticks=4, percent=True)
    # Room for two lines of text above the columns, so that the marks never overlap the drawing.
    ax.set_ylim(0, shares.max() * 1.42)
    marks = [
        ("median", float(np.median(values)), 0.97),
        ("95th percentile", float(np.percentile(values, 95)), 0.86),
    ]
    for name, value, place in marks:
        ax.axvline(value, 0, place - 0.03, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
        words = f"{name}: {_measured(value, unit)}"
        at = float(ax.transAxes.inverted().transform(ax.transData.transform((value, 0)))[0])
        # To the right of its line if there is room.
        inches = ax.figure.get_size_inches()[0] * ax.get_position().width  # type: ignore[union-attr]
        start = max(0.0, min(at + 0.02, 1 - len(words) * _LETTER * (style.points - 1) / 72 / inches))
        note(ax, start, place, words, style, fontsize=style.points - 1, color=INK, bbox=BACKING)


_LETTER = 0.56
"""Width of a letter relative to the font size."""

_BINS = 30


def bins(values: NDArray[np.float64], *, logarithmic: bool) -> NDArray[np.float64]:
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


def _draw_rounds(ax: Axes, style: Style, run: RunFiles, metric: Metric) -> None:
    """Draw accuracy against the cumulative bytes per user, a point for every evaluated round."""
    rounds = evaluated_rounds(run.rounds, metric)
    users = run.summary.traffic.users
    spent = [total / users for _, total, _ in rounds]
    values = [value for _, _, value in rounds]
    ax.plot(spent, values, color=SERIES[0], marker="o", markersize=4, linewidth=1.5)
    spread = (max(values) - min(values)) or 0.1 * abs(values[0]) or 1.0
    ax.set_ylim(min(values) - 0.18 * spread, max(values) + 0.18 * spread)
    if min(spent) > 0:
        log_axis(ax, spent, in_bytes=True)
    plain_axis(ax, which="y")
    # Labels lie on the outer side of the curve, at its start and its end.
    outward = 1 if values[0] > values[-1] else -1
    for place, side, sign in ((0, "left", outward), (-1, "right", -outward)):
        ax.annotate(
            f"round {rounds[place][0]}",
            xy=(spent[place], values[place]),
            xytext=(0, 9 * sign),
            textcoords="offset points",
            ha=side,
            va="center",
            color=INK,
            fontsize=style.points - 1,
            bbox=BACKING,
        )
    axis_labels(ax, style, x="bytes per user so far, both directions", side=metric.label)
    shown = [
        (at, value, f"round {number}: {metric.label} {value:.{metric.digits}f}, {size(at)} per user so far")
        for at, (number, _, value) in zip(spent, rounds, strict=True)
    ]
    show_on_hover(ax, shown)


def draw_rounds_figure(style: Style, run: RunFiles, metric: Metric) -> Figure:
    """Draw `_draw_rounds` as a separate figure."""
    figure, (ax,) = panels(style)
    _draw_rounds(ax, style, run, metric)
    title(ax, metric.heading, style)
    return figure


def draw_summary(style: Style, run: RunFiles) -> Figure:
    """Draw the three answers of a run: how accurate, how private, how many bytes per person."""
    figure, (accurate, private, traffic) = panels(style, 3, aspect=0.95 if style.narrow else 0.9)
    accuracy = run.summary.accuracy.metrics()
    metric = main_metric(accuracy)
    if metric is None:
        deployed = run.summary.devices == "deployed"
        empty(accurate, "known to the devices only" if deployed else "no accuracy was measured", style)
    elif len(evaluated_rounds(run.rounds, metric)) > 1:
        _draw_rounds(accurate, style, run, metric)
    else:
        _draw_predictions(accurate, style, run.predictions["rating"], run.predictions["prediction"])
    shown = "" if metric is None else f": {metric.label} {accuracy[metric.column]:.4g}"
    title(accurate, f"How accurate{shown}", style)
    _draw_losses(private, style, run)
    spent = run.bytes_per_user
    _histogram(traffic, spent, style, SERIES[2], "B", "bytes per user, both directions")
    title(traffic, f"How many bytes: {size(float(spent.mean()))} per user", style)
    return figure


def _draw_losses(ax: Axes, style: Style, run: RunFiles) -> None:
    losses = run.traffic["epsilon_per_user"]
    known = losses[np.isfinite(losses)]
    if known.size < losses.size or not known.size:
        empty(ax, _unbounded_in_words(run.summary.privacy), style)
        title(ax, "How private: no bound", style)
        return
    largest = float(known.max())
    compared = profiles_compared(largest, hides_rated_items=run.summary.privacy.hides_rated_items)
    _histogram(ax, known, style, SERIES[5], "ε ", f"ε per user{compared}")
    title(ax, f"How private: ε {short(largest)} per user at most", style)


def _unbounded_in_words(privacy: PrivacySummary) -> str:
    if privacy.status in ("claimed", "declared"):
        return f"ε {loss(privacy.epsilon_claimed.per_user)} per user is {privacy.status},\nnothing is proved"
    return "no privacy: the server\nsees true ratings" if privacy.trusts_server else "the loss has no bound"


_MOST_GROUPS = 12

PREDICTION_QUANTILES = (5, 25, 50, 75, 95)


def _draw_predictions(
    ax: Axes, style: Style, ratings: NDArray[np.float64], predictions: NDArray[np.float64]
) -> None:
    """Draw the distribution of predictions for every true rating, with the line of perfect predictions."""
    groups = group_by_rating(ratings, predictions)
    places = [place for place, _ in groups]
    ends = [places[0], places[-1]]
    ax.plot(ends, ends, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    shown = []
    for place, quantiles in groups:
        least, lower, middle, upper, most = quantiles
        ax.vlines(place, least, most, color=SERIES[0], linewidth=1.2, alpha=0.75)
        ax.vlines(place, lower, upper, color=SERIES[0], linewidth=6, alpha=0.4)
        ax.plot([place], [middle], "o", color=SERIES[0], markersize=4.5, markeredgecolor=SURFACE)
        words = f"true rating {place:g}: median {middle:.2f}, middle 50 % {lower:.2f} to {upper:.2f}, "
        shown.append((place, float(middle), f"{words}middle 90 % {least:.2f} to {most:.2f}"))
    show_on_hover(ax, shown)
    if len(places) <= 6:
        ax.set_xticks(places, [f"{place:g}" for place in places])
    else:
        plain_axis(ax)
    plain_axis(ax, which="y")
    axis_labels(ax, style, x="true rating", side="prediction")


def group_by_rating(
    ratings: NDArray[np.float64], predictions: NDArray[np.float64]
) -> list[tuple[float, NDArray[np.float64]]]:
    """Return the quantiles of the predictions of every true rating, or of tenths of the scale.

    Returns
    -------
    list of tuple
        The true rating (or the middle of its group) and the quantiles `PREDICTION_QUANTILES` in per cent.
    """
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


def draw_bytes(style: Style, run: RunFiles) -> Figure:
    """Draw the bytes per user of each direction."""
    figure, axes = panels(style, 2, aspect=0.8)
    directions = ("uplink", "From the device", SERIES[0]), ("downlink", "To the device", SERIES[1])
    for ax, (direction, words, colour) in zip(axes, directions, strict=True):
        values = run.traffic[f"{direction}_message_bytes"]
        _histogram(ax, values, style, colour, "B", "bytes of messages per user")
        title(ax, words, style)
    return figure


SPREAD_QUANTILES = (0, 5, 25, 50, 75, 95, 100)


@dataclass(frozen=True, eq=False)
class Spread:
    """How a figure is distributed over the users of a protocol."""

    name: str
    label: str
    quantiles: NDArray[np.float64]
    """At `SPREAD_QUANTILES` per cent; shape (7,)."""


def draw_spreads(
    style: Style, spreads: Sequence[Spread], axis: str, looks: Looks, *, in_bytes: bool
) -> Figure:
    """Draw one strip per protocol: all users, 90 %, 50 % and the median, which is also beside the name."""
    figure, (ax,) = panels(style, aspect=(_FRAME + _ROWS[style.narrow] * len(spreads)) / style.height)
    ordered = sorted(spreads, key=lambda spread: -float(spread.quantiles[3]))
    measured: Callable[[float], str] = size if in_bytes else lambda value: f"ε {short(value)}"
    places = []
    for row, spread in enumerate(ordered):
        colour = looks[spread.name].colour
        least, p5, p25, median, p75, p95, most = spread.quantiles.tolist()
        ax.hlines(row, least, most, color=colour, linewidth=0.9, alpha=0.6)
        ax.hlines(row, p5, p95, color=colour, linewidth=3.5, alpha=0.4)
        ax.hlines(row, p25, p75, color=colour, linewidth=7, alpha=0.55)
        ax.plot([median], [row], "o", color=colour, markersize=5, markeredgecolor=SURFACE)
        words = f"median {measured(median)}, 95th percentile {measured(p95)}, largest {measured(most)}"
        places.append((median, row, f"{printable(spread.label)}: {words}"))
    everything = np.concatenate([spread.quantiles for spread in spreads])
    log_axis(ax, everything[everything > 0].tolist() or [1.0], in_bytes=in_bytes)
    ax.set_ylim(-0.7, len(ordered) - 0.3)
    names = [f"{shortened(spread.label)}  {measured(float(spread.quantiles[3]))}" for spread in ordered]
    if style.narrow:
        ax.set_yticks([])
        ax.set_ylim(-0.5, len(ordered) - 0.2)
        for row, name in enumerate(names):
            note(ax, 0, row + 0.42, name, style, transform=ax.get_yaxis_transform(), color=INK)
    else:
        ax.set_yticks(range(len(ordered)), names, color=INK, parse_math=False)
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color=RULE, linewidth=0.8)
    show_on_hover(ax, places)
    axis_labels(ax, style, x=axis)
    return figure


_FRAME, _ROWS = 0.9, {True: 0.33, False: 0.2}
"""Inches above and below the strips; and of a strip, whose name is above it in a narrow figure."""
