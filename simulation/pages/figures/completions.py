"""What a completion learned: a mixture of Gaussians, or an AlterEgo across domains."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from simulation.pages.figures.axes import plain_axis
from simulation.pages.figures.looks import DASHES
from simulation.pages.figures.marks import Axis, Line
from simulation.pages.figures.panels import INK, SERIES, Panel, chart, ramp, shortened
from simulation.pages.figures.rendering import Plot


def numbers(value: Any) -> list[float]:
    """Return a list of finite numbers; empty for anything else."""
    if not isinstance(value, list) or not all(
        isinstance(entry, int | float) and not isinstance(entry, bool) and math.isfinite(entry)
        for entry in value
    ):
        return []
    return [float(entry) for entry in value]


def draw_completion(trace: Sequence[float], pi: Sequence[float], sigma: Sequence[float]) -> list[Panel]:
    """Draw how a mixture was fitted: the log-likelihood by step, and the Gaussians around 0 it ended with."""
    steps = Panel(
        "Log-likelihood by step",
        plain_axis(1, len(trace), "step"),
        plain_axis(min(trace), max(trace), pad=0.06, grid=True),
        [Line(range(1, len(trace) + 1), trace, SERIES[0], marker="o", radius=2)],
    )
    reach = 3 * max(sigma)
    places = np.linspace(-reach, reach, 301)
    weights, deviations = np.array([pi, sigma])[:, :, None]
    parts = weights * np.exp(-0.5 * (places / deviations) ** 2) / (deviations * math.sqrt(2 * math.pi))
    lines = [Line(places, parts.sum(axis=0), INK, 1.8, label="sum")]
    for place, (part, share, deviation, colour) in enumerate(
        zip(parts, pi, sigma, ramp(len(pi)), strict=True)
    ):
        dashes = DASHES[1 + place % (len(DASHES) - 1)]
        lines.append(Line(places, part, colour, 1.4, dashes, label=f"π {share:.2f}, σ {deviation:.2f}"))
    y = plain_axis(0, 1.05 * float(parts.sum(axis=0).max()), "density", ticks=4, grid=True)
    x = plain_axis(-reach, reach, "residual, in rating units")
    return [steps, chart("Noise estimated by the mixture", x, y, lines)]


def alter_ego_plots(diagnostics: dict[str, Any]) -> list[Plot]:
    """Return the plot of one user's ratings before and after replacement, if there is one."""
    ego = diagnostics.get("alter_ego")
    if not ego:
        return []
    plot = Plot(
        "alter-ego",
        "One user's AlterEgo",
        f"What user {ego['user']} rated in the source domain, and what stands for it in the target domain.",
        f"User {ego['user']}: {ego['source_ratings']} source ratings become {ego['items']} items.",
        partial(_draw_alter_ego, diagnostics),
        full_width=True,
    )
    return [plot]


def _draw_alter_ego(diagnostics: dict[str, Any]) -> list[Panel]:
    """Draw the ratings of one user before and after replacement."""
    ego, domains = diagnostics["alter_ego"], diagnostics["domains"]
    return [
        _ratings(f"Before: {domains['source']}", ego["before"], ego["source_ratings"], ego["scale"]),
        _ratings(f"After: {domains['target']}", ego["after"], ego["items"], ego["scale"]),
    ]


def _ratings(title: str, rated: Sequence[Sequence[Any]], total: int, scale: Sequence[float]) -> Panel:
    label = "rating" if total <= len(rated) else f"rating; {total - len(rated)} more not shown"
    x = plain_axis(scale[0], scale[1], label, pad=0.05)
    values, rows = [float(value) for _, value in rated], [-row for row in range(len(rated))]
    lines = [
        Line([x.low, each], [row, row], SERIES[0], 1.2, opacity=0.5)
        for each, row in zip(values, rows, strict=True)
    ]
    names = [(row, shortened(str(name))) for row, (name, _) in zip(rows, rated, strict=True)]
    dots = Line(values, rows, SERIES[0], 0, marker="o")
    return chart(
        title, x, Axis(0.4 - len(rated), 0.6, names), [*lines, dots], height=max(60.0, 18.0 * len(rated))
    )
