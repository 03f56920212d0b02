"""The noise that a comparison sampled, beside theory, as in Fig. 2 of Neera et al. [neera2023]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.pages.figures.axes import plain_axis
from simulation.pages.figures.labels import legend_below
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.panels import Style, axis_labels, panels, title
from simulation.pages.figures.rendering import Plot


@dataclass(frozen=True, eq=False)
class SampledNoise:
    """The noise of one mechanism at one epsilon, in intervals."""

    protocol: str
    mechanism: str
    edges: NDArray[np.float64]
    """In rating units; shape (intervals + 1,)."""
    sampled: NDArray[np.float64]
    theory: NDArray[np.float64]
    """Shares of the samples, and probabilities; shape (intervals,)."""

    @property
    def difference(self) -> float:
        """Total variation: half the sum of the absolute differences between sampled shares and theory."""
        return float(np.abs(self.sampled - self.theory).sum()) / 2


def sampled_noise_plot(epsilon: float, noises: Sequence[SampledNoise], looks: Looks) -> Plot:
    """Return the plot of the noise that was sampled at one epsilon."""
    low, high = _window(noises)
    outside = [
        f"{noise.protocol} has {share:.0%} of its noise outside the panel"
        for noise in noises
        if (share := _outside(noise, low, high)) >= 0.005
    ]
    distances = [
        f"{noise.protocol} ({noise.mechanism}): {noise.difference:.2%} from theory in total variation"
        for noise in noises
    ]
    return Plot(
        f"noise-epsilon-{epsilon:g}",
        f"Noise at ε = {epsilon:g} per rating",
        f"Filled: samples. Line: theory. {'; '.join([*distances, *outside])}.",
        f"Density of the noise at epsilon {epsilon:g}, as a histogram of samples and in theory. "
        f"{'; '.join([*distances, *outside])}.",
        partial(draw_sampled_noise, noises=noises, looks=looks),
    )


def draw_sampled_noise(style: Style, noises: Sequence[SampledNoise], looks: Looks) -> Figure:
    """Draw the densities of noise, as histograms of the samples with the theory as outlines."""
    figure, (ax,) = panels(style)
    low, high = _window(noises)
    handles, most = [], 0.0
    for noise in noises:
        colour = looks[noise.protocol].colour
        widths = np.diff(noise.edges)
        theory = noise.theory / widths
        label = f"{noise.protocol}, {noise.mechanism}"
        ax.stairs(noise.sampled / widths, noise.edges, fill=True, color=colour, alpha=0.3, linewidth=0)
        handles.append(ax.stairs(theory, noise.edges, color=colour, linewidth=1.3, label=label))
        most = max(most, float(theory.max()), float((noise.sampled / widths).max()))
    ax.set_xlim(low, high)
    ax.set_ylim(0, 1.06 * most)
    plain_axis(ax)
    plain_axis(ax, which="y", ticks=4)
    axis_labels(ax, style, x="noise r* − r")
    title(ax, "Density of the noise: samples filled, theory as a line", style)
    legend_below(figure, style, handles, columns=1 if style.narrow else 2)
    return figure


_WINDOW = 3.0
"""How much wider a panel may be than the narrowest noise in it, which other tails would dwarf."""


def _window(noises: Sequence[SampledNoise]) -> tuple[float, float]:
    lows, highs = [noise.edges[0] for noise in noises], [noise.edges[-1] for noise in noises]
    return (
        float(max(min(lows), _WINDOW * max(lows))),
        float(min(max(highs), _WINDOW * min(highs))),
    )


def _outside(noise: SampledNoise, low: float, high: float) -> float:
    inside = (noise.edges[:-1] >= low) & (noise.edges[1:] <= high)
    return float(noise.theory[~inside].sum())
