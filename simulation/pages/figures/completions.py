"""What a completion learned: a mixture of Gaussians, and layers and an AlterEgo across domains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from simulation.pages.figures.axes import plain_axis
from simulation.pages.figures.panels import (
    INK,
    MUTED,
    RULE,
    SERIES,
    SURFACE,
    Style,
    axis_labels,
    note,
    panels,
    shortened,
    title,
)
from simulation.pages.figures.rendering import Plot


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
    _draw_mixture(mixture, style, pi, sigma)
    return figure


def _draw_mixture(ax: Axes, style: Style, pi: Sequence[float], sigma: Sequence[float]) -> None:
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


_LAYERS = ("NN", "NB", "BB")
_WORDS = {"NN": "away from bridges", "NB": "next to a bridge", "BB": "bridge"}
_BOX = (0.34, 0.22)


def cross_domain_plots(diagnostics: dict[str, Any]) -> list[Plot]:
    """Return the plots of a run's diagnostics; none for other protocols."""
    layers, ego = diagnostics.get("layers"), diagnostics.get("alter_ego")
    if not layers:
        return []
    counts = "; ".join(
        f"{diagnostics['domains'][domain]}: "
        + ", ".join(f"{layers[domain][name]:,} {name}" for name in _LAYERS)
        for domain in ("source", "target")
    )
    plots = [
        Plot(
            "layers",
            "The two domains as layers",
            "BB (bridge-bridge) items have an edge into the other domain, NB (non-bridge-bridge) items one "
            "to a BB item of their own domain, NN (non-bridge-non-bridge) items neither. A path of X-Sim, "
            "the similarity across domains, goes inwards on the left, across, and outwards on the right.",
            f"Items by layer. {counts}.",
            lambda style: _draw_layers(style, diagnostics),
            full_width=True,
        )
    ]
    if ego:
        plots.append(
            Plot(
                "alter-ego",
                "One user's AlterEgo",
                f"What user {ego['user']} rated in the source domain, and what stands for it in the target "
                "domain. Of the users without ratings there, this one has an AlterEgo of median size.",
                f"User {ego['user']}: {ego['source_ratings']} source ratings become {ego['items']} items.",
                lambda style: _draw_alter_ego(style, diagnostics),
                full_width=True,
            )
        )
    return plots


def _draw_layers(style: Style, diagnostics: dict[str, Any]) -> Figure:
    """Draw the layers of both domains with their counts, and the edges kept between them."""
    figure, (ax,) = panels(style, 1, aspect=0.78)
    ax.set_xlim(0, 2)
    ax.set_ylim(-0.02, 1.08)
    ax.axis("off")
    edges = diagnostics["edges"]
    between = (edges["NN to NB"], edges["NB to BB"])
    for side, domain in enumerate(("source", "target")):
        across = 0.42 + 1.16 * side
        name = diagnostics["domains"][domain]
        heading = name if name == domain else f"{name} ({domain})"
        ax.text(across, 1.05, heading, ha="center", va="center", color=INK,
                fontsize=style.points + 0.5, parse_math=False)  # fmt: skip
        for place, layer in enumerate(_LAYERS):
            height = 0.86 - 0.36 * place
            _box(ax, style, (across, height), layer, diagnostics["layers"][domain][layer], SERIES[side])
            if place < 2:
                _edge(ax, style, (across, height), (across, height - 0.36), between[place][side])
    _edge(ax, style, (0.42, 0.14), (1.58, 0.14), edges["between the domains"])
    return figure


def _box(ax: Axes, style: Style, at: tuple[float, float], layer: str, count: int, colour: str) -> None:
    width, height = _BOX
    ax.add_patch(
        FancyBboxPatch(
            (at[0] - width, at[1] - height / 2),
            2 * width,
            height,
            boxstyle="round,pad=0,rounding_size=0.03",
            facecolor=SURFACE,
            edgecolor=colour if count else RULE,
            linewidth=1.6,
            zorder=3,
        )
    )
    ax.text(at[0], at[1] + 0.035, f"{layer}  {count:,}", ha="center", va="center", zorder=4, color=INK,
            fontsize=style.points + 2, fontweight="bold")  # fmt: skip
    ax.text(at[0], at[1] - 0.055, _WORDS[layer], ha="center", va="center", zorder=4, color=MUTED,
            fontsize=style.points - 0.5)  # fmt: skip


def _edge(ax: Axes, style: Style, one: tuple[float, float], other: tuple[float, float], count: int) -> None:
    ax.plot([one[0], other[0]], [one[1], other[1]], color=MUTED if count else RULE, linewidth=1.2, zorder=1)
    flat = one[1] == other[1]
    ax.text(
        (one[0] + other[0]) / 2 + (0.0 if flat else 0.03),
        (one[1] + other[1]) / 2 + (0.03 if flat else 0.0),
        f"{count:,}\nedges" if flat else f"{count:,} edges",
        ha="center" if flat else "left",
        va="bottom" if flat else "center",
        color=MUTED,
        fontsize=style.points - 0.5,
    )


def _draw_alter_ego(style: Style, diagnostics: dict[str, Any]) -> Figure:
    """Draw the ratings of one user before and after replacement."""
    ego = diagnostics["alter_ego"]
    figure, (before, after) = panels(style, 2, aspect=0.9)
    domains = diagnostics["domains"]
    _ratings(before, style, ego["before"], ego["source_ratings"], ego["scale"], SERIES[0])
    title(before, f"Before: {domains['source']}", style)
    _ratings(after, style, ego["after"], ego["items"], ego["scale"], SERIES[1])
    title(after, f"After: {domains['target']}", style)
    return figure


def _ratings(
    ax: Axes, style: Style, rated: Sequence[Sequence[Any]], total: int, scale: Sequence[float], colour: str
) -> None:
    rows = range(len(rated))
    values = [float(value) for _, value in rated]
    ax.hlines(rows, scale[0], values, color=RULE, linewidth=1.2)
    ax.plot(values, rows, linestyle="none", marker="o", markersize=6, color=colour)
    ax.set_yticks(list(rows), [shortened(str(name)) for name, _ in rated])
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    margin = 0.05 * (scale[1] - scale[0])
    ax.set_xlim(scale[0] - margin, scale[1] + margin)
    plain_axis(ax)
    more = total - len(rated)
    axis_labels(ax, style, x="rating" + (f"; {more} more not shown" if more > 0 else ""))
