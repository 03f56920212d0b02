"""The figures of one run, each a pure function of the run's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.measures import Measure, main_measure
from simulation.analysis.numbers import short, size
from simulation.pages.run_files import RunFiles, at
from simulation.pages.style import (
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Style,
    axis_labels,
    empty,
    histogram,
    log_axis,
    note,
    panels,
    plain_axis,
    title,
)

_MOST_GROUPS = 12
QUANTILES = (5, 25, 50, 75, 95)


def draw_summary(style: Style, run: RunFiles) -> Figure:
    """Draw the three answers of a run: how accurate, how private, how many bytes per person."""
    figure, (accurate, private, traffic) = panels(style, 3, aspect=0.95 if style.narrow else 0.9)
    measure = main_measure(run.summary["accuracy"])
    if measure is None:
        empty(accurate, DASHES["accuracy"], style)
    elif len(evaluated_rounds(run.rounds, measure)) > 1:
        draw_rounds(accurate, style, run, measure)
    else:
        draw_predictions(accurate, style, run.predictions["rating"], run.predictions["prediction"])
    shown = "" if measure is None else f": {measure.label} {run.summary['accuracy'][measure.column]:.4g}"
    title(accurate, f"How accurate{shown}", style)
    _draw_losses(private, style, run)
    spent = run.bytes_per_user
    histogram(traffic, spent, style, SERIES[2], "B", "bytes per user, both directions")
    title(traffic, f"How many bytes: {size(float(spent.mean()))} per user", style)
    return figure


DASHES = {"accuracy": "no accuracy was measured", "loss": "no loss is bounded"}


def _draw_losses(ax: Axes, style: Style, run: RunFiles) -> None:
    losses = run.traffic["epsilon_per_user"]
    known = losses[np.isfinite(losses)]
    if known.size < losses.size or not known.size:
        empty(ax, "no privacy: the server\nsees true ratings" if not known.size else DASHES["loss"], style)
        title(ax, "How private: not", style)
        return
    histogram(ax, known, style, SERIES[5], "ε ", "ε per user")
    title(ax, f"How private: ε {short(float(known.max()))} per user at most", style)


def draw_predictions(
    ax: Axes, style: Style, ratings: NDArray[np.float64], predictions: NDArray[np.float64]
) -> None:
    """Draw how predictions are distributed for every true rating, against the line of perfect ones."""
    groups = group_by_rating(ratings, predictions)
    places = [place for place, _ in groups]
    ends = [places[0], places[-1]]
    ax.plot(ends, ends, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    for place, quantiles in groups:
        least, lower, middle, upper, most = quantiles
        ax.vlines(place, least, most, color=SERIES[0], linewidth=1.2, alpha=0.75)
        ax.vlines(place, lower, upper, color=SERIES[0], linewidth=6, alpha=0.4)
        ax.plot([place], [middle], "o", color=SERIES[0], markersize=4.5, markeredgecolor=SURFACE)
    if len(places) <= 6:
        ax.set_xticks(places, [f"{place:g}" for place in places])
    else:
        plain_axis(ax)
    plain_axis(ax, which="y")
    axis_labels(ax, style, x="true rating")


def group_by_rating(
    ratings: NDArray[np.float64], predictions: NDArray[np.float64]
) -> list[tuple[float, NDArray[np.float64]]]:
    """Return the quantiles of the predictions of every true rating, or of tenths of the scale.

    Returns
    -------
    list of tuple
        The true rating (or the middle of its group) and the quantiles `QUANTILES` in per cent.
    """
    levels, of_rating = np.unique(ratings, return_inverse=True)
    if levels.size > _MOST_GROUPS:
        edges = np.linspace(levels[0], levels[-1], 11)
        of_rating = np.clip(np.searchsorted(edges, ratings, side="right") - 1, 0, 9)
        levels = (edges[1:] + edges[:-1]) / 2
    return [
        (float(level), np.percentile(predictions[of_rating == place], QUANTILES))
        for place, level in enumerate(levels)
        if (of_rating == place).any()
    ]


def draw_bytes(style: Style, run: RunFiles) -> Figure:
    """Draw the bytes per user of each direction."""
    figure, axes = panels(style, 2, aspect=0.8)
    for ax, direction, words, colour in zip(
        axes,
        ("uplink", "downlink"),
        ("From the device", "To the device"),
        (SERIES[0], SERIES[1]),
        strict=True,
    ):
        values = run.traffic[f"{direction}_message_bytes"]
        histogram(ax, values, style, colour, "B", "bytes of messages per user")
        title(ax, words, style)
    return figure


def evaluated_rounds(rounds: Sequence[Mapping[str, Any]], measure: Measure) -> list[tuple[int, float, float]]:
    """Return number, cumulative bytes and accuracy of the rounds that were evaluated."""
    spent, found = 0.0, []
    for line in rounds:
        spent += sum(float(at(line, way, "message_bytes") or 0) for way in ("uplink", "downlink"))
        value = at(line, "accuracy", measure.column)
        if value is not None and math.isfinite(value):
            found.append((int(line["round"]), spent, float(value)))
    return found


def draw_rounds(ax: Axes, style: Style, run: RunFiles, measure: Measure) -> None:
    """Draw accuracy against the cumulative bytes per user, a point for every evaluated round."""
    rounds = evaluated_rounds(run.rounds, measure)
    users = run.summary["traffic"]["users"]
    spent = [total / users for _, total, _ in rounds]
    values = [value for _, _, value in rounds]
    ax.plot(spent, values, color=SERIES[0], marker="o", markersize=4, linewidth=1.5)
    spread = (max(values) - min(values)) or 0.1 * abs(values[0]) or 1.0
    ax.set_ylim(min(values) - 0.18 * spread, max(values) + 0.18 * spread)
    if min(spent) > 0:
        log_axis(ax, spent, in_bytes=True)
    plain_axis(ax, which="y")
    # Labels lie on the outer side of the curve, where accuracy comes from and where it goes.
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
        )
    axis_labels(ax, style, x="bytes per user so far, both directions")


def draw_rounds_figure(style: Style, run: RunFiles, measure: Measure) -> Figure:
    """Draw `draw_rounds` as a figure of its own."""
    figure, (ax,) = panels(style)
    draw_rounds(ax, style, run, measure)
    title(ax, f"{measure.label} ({measure.direction})", style)
    return figure


def numbers(value: Any) -> list[float]:
    """Return a list of finite numbers; empty for anything else."""
    if not isinstance(value, list) or not all(
        isinstance(entry, int | float) and not isinstance(entry, bool) and math.isfinite(entry)
        for entry in value
    ):
        return []
    return [float(entry) for entry in value]


def draw_completion(
    style: Style, trace: Sequence[float], pi: Sequence[float], sigma: Sequence[float]
) -> Figure:
    """Draw how a mixture was fitted: the log-likelihood by step, and the Gaussians it ended with."""
    figure, (steps, mixture) = panels(style, 2, aspect=0.9)
    steps.plot(range(1, len(trace) + 1), trace, color=SERIES[0], linewidth=1.6, marker="o", markersize=2.5)
    plain_axis(steps)
    plain_axis(steps, which="y", ticks=5)
    title(steps, "Log-likelihood by step", style)
    axis_labels(steps, style, x="step")
    draw_mixture(mixture, style, pi, sigma)
    return figure


def draw_mixture(ax: Axes, style: Style, pi: Sequence[float], sigma: Sequence[float]) -> None:
    """Draw Gaussians around 0, weighted, and their sum."""
    reach = 3 * max(sigma)
    places = np.linspace(-reach, reach, 301)
    parts = [
        share * np.exp(-0.5 * (places / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
        for share, deviation in zip(pi, sigma, strict=True)
    ]
    ax.plot(places, np.sum(parts, axis=0), color=INK, linewidth=1.8)
    lines = ["sum of:"]
    for place, (part, share, deviation) in enumerate(zip(parts, pi, sigma, strict=True)):
        ax.plot(places, part, color=SERIES[place % len(SERIES)], linewidth=1.3, linestyle=(0, (4, 2)))
        lines.append(f"π {share:.2f}, σ {deviation:.2f}")
    ax.set_ylim(bottom=0)
    plain_axis(ax)
    plain_axis(ax, which="y", ticks=4)
    for place, words in enumerate(lines):
        colour = INK if place == 0 else SERIES[(place - 1) % len(SERIES)]
        note(
            ax,
            0.985,
            0.95 - (0.12 if style.narrow else 0.075) * place,
            words,
            style,
            ha="right",
            color=colour,
        )
    title(ax, "Noise that the mixture found", style)
    axis_labels(ax, style, x="residual, rating units")
