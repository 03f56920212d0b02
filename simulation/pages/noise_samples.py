"""The noise that a comparison drew, beside its theory: one panel per epsilon (Neera et al., Fig. 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simulation.analysis.settings import read_rows
from simulation.pages.comparison_figures import Looks
from simulation.pages.page import Section, figures, paragraph
from simulation.pages.plots import Plot, Rendered
from simulation.pages.style import Style, axis_labels, legend_below, panels, plain_axis
from simulation.storage.names import NOISE
from simulation.storage.tables import Row

_WINDOW = 3.0
"""How much wider a panel may be than the narrowest noise in it: the tails of others would dwarf it."""

_COLUMNS = ("protocol", "mechanism", "epsilon", "low", "high", "sampled_share", "theoretical_probability")


@dataclass(frozen=True, eq=False)
class SampledNoise:
    """The noise of one mechanism at one epsilon, in intervals.

    Parameters
    ----------
    protocol, mechanism : str
    edges : ndarray, shape (intervals + 1,)
        In rating units.
    sampled, theory : ndarray, shape (intervals,)
        Shares of the draws, and probabilities.
    """

    protocol: str
    mechanism: str
    edges: NDArray[np.float64]
    sampled: NDArray[np.float64]
    theory: NDArray[np.float64]

    @property
    def difference(self) -> float:
        """Half the sum of the differences: the share of draws that lie in other intervals than in theory."""
        return float(np.abs(self.sampled - self.theory).sum()) / 2


def read_noise(directory: Path) -> dict[float, list[SampledNoise]]:
    """Read noise.csv, by epsilon; nothing where there is none.

    Raises
    ------
    InputError
        When it is damaged.
    """
    path = directory / NOISE
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in read_rows(path, _COLUMNS) if path.is_file() else ():
        groups.setdefault((row["protocol"], row["mechanism"], row["epsilon"]), []).append(row)
    noises: dict[float, list[SampledNoise]] = {}
    for (protocol, mechanism, epsilon), rows in groups.items():
        low, high, sampled, theory = (
            np.array([row[column] for row in rows], dtype=np.float64) for column in _COLUMNS[3:]
        )
        edges = np.append(low, high[-1])
        noises.setdefault(epsilon, []).append(SampledNoise(protocol, mechanism, edges, sampled, theory))
    return noises


def sampled_noise_section(
    noises: Mapping[float, Sequence[SampledNoise]], looks: Looks, draw: Callable[[Plot], Rendered]
) -> list[Section]:
    """Return the section with one panel per epsilon; nothing where no noise was drawn."""
    if not noises:
        return []
    words = (
        "Noise is what is sent less the true rating, drawn through the mechanisms for true ratings as "
        "frequent as in the train set. Theory: of bounded Laplace its continuous density, of others the "
        "probabilities that the mechanism draws from. All intervals are in noise.csv."
    )
    plots = [_plot(epsilon, drawn, looks) for epsilon, drawn in noises.items()]
    return [
        Section(
            "sampled-noise",
            "Noise drawn, and in theory",
            (paragraph(words), figures([draw(plot) for plot in plots])),
        )
    ]


def _plot(epsilon: float, noises: Sequence[SampledNoise], looks: Looks) -> Plot:
    low, high = _window(noises)
    outside = [
        f"{noise.protocol} has {share:.0%} of its noise outside the panel"
        for noise in noises
        if (share := _outside(noise, low, high)) >= 0.005
    ]
    found = [
        f"{noise.protocol} ({noise.mechanism}): {noise.difference:.2%} of the draws in other intervals than "
        "in theory"
        for noise in noises
    ]
    return Plot(
        f"noise-epsilon-{epsilon:g}",
        f"Noise at ε = {epsilon:g} per rating",
        f"Filled: the draws. Line: theory. {'; '.join([*found, *outside])}.",
        f"Density of the noise at epsilon {epsilon:g}, as a histogram of draws and in theory. "
        f"{'; '.join([*found, *outside])}.",
        partial(draw_sampled_noise, noises=noises, looks=looks),
    )


def draw_sampled_noise(style: Style, noises: Sequence[SampledNoise], looks: Looks) -> Figure:
    """Draw the densities of noise, as histograms of the draws with the theory as outlines."""
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
    axis_labels(ax, style, x="noise r* − r", y="Density of the noise: draws filled, theory as a line")
    legend_below(figure, style, handles, columns=1 if style.narrow else 2)
    return figure


def _window(noises: Sequence[SampledNoise]) -> tuple[float, float]:
    lows, highs = [noise.edges[0] for noise in noises], [noise.edges[-1] for noise in noises]
    return (
        float(max(min(lows), _WINDOW * max(lows))),
        float(min(max(highs), _WINDOW * min(highs))),
    )


def _outside(noise: SampledNoise, low: float, high: float) -> float:
    inside = (noise.edges[:-1] >= low) & (noise.edges[1:] <= high)
    return float(noise.theory[~inside].sum())
