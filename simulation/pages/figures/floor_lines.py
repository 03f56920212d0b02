"""Baselines in figures of accuracy: lines across, with what is worse than nothing sent shaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from simulation.analysis.gains import nothing_sent
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import Metric, listed
from simulation.pages.figures.labels import PointLabel
from simulation.pages.figures.looks import BASELINE_LINES, Look, Looks, legend_handle
from simulation.pages.figures.panels import INK, RULE


@dataclass(frozen=True)
class BaselineLine:
    """A baseline as a line across."""

    name: str
    """Of the baseline."""
    value: float
    """Its accuracy."""
    look: Look


def baseline_lines(results: Sequence[ProtocolResult], metric: Metric, looks: Looks) -> list[BaselineLine]:
    """Return the lines of the baselines among settings."""
    return [
        BaselineLine(result.baseline, mean, looks[result.name])
        for result in results
        if result.baseline and (mean := result.mean(metric.column)) is not None
    ]


def draw_baselines(
    ax: Axes, results: Sequence[ProtocolResult], metric: Metric, baselines: Sequence[BaselineLine]
) -> list[PointLabel]:
    """Draw baselines across a panel, shade what is worse than nothing sent, and return their ends.

    Parameters
    ----------
    ax : Axes
        Its limits are final.
    """
    right = ax.get_xlim()[1]
    base = nothing_sent(results)
    reached = base.mean(metric.column) if base else None
    if reached is not None:
        worst = ax.get_ylim()[1 if metric.lower_is_better else 0]
        ax.axhspan(*sorted((reached, worst)), facecolor=RULE, alpha=0.4, linewidth=0, zorder=0)
    for baseline in baselines:
        ax.axhline(baseline.value, color=baseline.look.colour, linestyle=baseline.look.dashes, linewidth=1.1)
    return [PointLabel(right, baseline.value, baseline.name, INK) for baseline in baselines]


def baseline_handles(baselines: Sequence[BaselineLine]) -> list[Line2D]:
    """Return what stands for baselines in a legend."""
    return [legend_handle(baseline.name, baseline.look) for baseline in baselines]


def baselines_in_words(results: Sequence[ProtocolResult]) -> Iterator[str]:
    """Say how baselines are drawn, for a caption."""
    drawn = [
        f"{result.baseline} {BASELINE_LINES[result.baseline][0]}" for result in results if result.baseline
    ]
    if drawn:
        yield f"Lines across without markers are baselines: {listed(drawn)}."
    if nothing_sent(results):
        yield "Shaded: worse than with nothing sent."


def baselines_described(results: Sequence[ProtocolResult], metric: Metric) -> Iterator[str]:
    """Yield what is seen of each baseline, for readers who cannot see the figure."""
    for result in results:
        mean = result.mean(metric.column)
        if result.baseline and mean is not None:
            yield f"{result.baseline} {mean:.3f}, a baseline, as a horizontal line"
