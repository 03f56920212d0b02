"""How a completion fitted its mixture of Gaussians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simulation.pages.figures.axes import plain_axis
from simulation.pages.figures.panels import INK, SERIES, Style, axis_labels, note, panels, title


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
    axis_labels(steps, style, x="step", side="log-likelihood")
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
    title(ax, "Noise estimated by the mixture", style)
    axis_labels(ax, style, x="residual, in rating units", side="density")
