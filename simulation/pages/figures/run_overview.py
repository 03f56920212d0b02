"""The three answers of a run: how accurate, how private, how many bytes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.vocabulary import loss, main_metric, profiles_compared, short, size
from simulation.pages.figures.axes import plain_axis
from simulation.pages.figures.labels import show_on_hover
from simulation.pages.figures.panels import MUTED, SERIES, SURFACE, Style, axis_labels, empty, panels, title
from simulation.pages.figures.users import draw_rounds, evaluated_rounds, histogram
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import PrivacySummary


def draw_summary(style: Style, run: RunFiles) -> Figure:
    """Draw the three answers of a run: how accurate, how private, how many bytes per person."""
    figure, (accurate, private, traffic) = panels(style, 3, aspect=0.95 if style.narrow else 0.9)
    accuracy = run.summary.accuracy.metrics()
    metric = main_metric(accuracy)
    if metric is None:
        deployed = run.summary.devices == "deployed"
        empty(accurate, "known to the devices only" if deployed else "no accuracy was measured", style)
    elif len(evaluated_rounds(run.rounds, metric)) > 1:
        draw_rounds(accurate, style, run, metric)
    else:
        draw_predictions(accurate, style, run.predictions["rating"], run.predictions["prediction"])
    shown = "" if metric is None else f": {metric.label} {accuracy[metric.column]:.4g}"
    title(accurate, f"How accurate{shown}", style)
    _draw_losses(private, style, run)
    spent = run.bytes_per_user
    histogram(traffic, spent, style, SERIES[2], "B", "bytes per user, both directions")
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
    histogram(ax, known, style, SERIES[5], "ε ", f"ε per user{compared}")
    title(ax, f"How private: ε {short(largest)} per user at most", style)


def _unbounded_in_words(privacy: PrivacySummary) -> str:
    if privacy.status in ("claimed", "declared"):
        return f"ε {loss(privacy.epsilon_claimed.per_user)} per user is {privacy.status},\nnothing is proved"
    return "no privacy: the server\nsees true ratings" if privacy.trusts_server else "the loss has no bound"


_MOST_GROUPS = 12

PREDICTION_QUANTILES = (5, 25, 50, 75, 95)


def draw_predictions(
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
