"""Floors in figures of accuracy: lines across, with what is worse than nothing sent shaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from simulation.analysis.floors import nothing_sent
from simulation.analysis.measures import Measure
from simulation.analysis.settings import Setting
from simulation.analysis.vocabulary import listed
from simulation.pages.figures.colours import INK, RULE
from simulation.pages.figures.labels import PointLabel
from simulation.pages.figures.looks import FLOOR_LINES, Look, Looks, legend_handle


@dataclass(frozen=True)
class FloorLine:
    """A floor as a line across.

    Parameters
    ----------
    name : str
        Of the floor.
    value : float
        Its accuracy.
    look : Look
    """

    name: str
    value: float
    look: Look


def floor_lines(settings: Sequence[Setting], measure: Measure, looks: Looks) -> list[FloorLine]:
    """Return the lines of the floors among settings."""
    return [
        FloorLine(setting.floor, mean, looks[setting.name])
        for setting in settings
        if setting.floor and (mean := setting.mean(measure.column)) is not None
    ]


def draw_floors(
    ax: Axes, settings: Sequence[Setting], measure: Measure, floors: Sequence[FloorLine]
) -> list[PointLabel]:
    """Draw floors across a panel, shade what is worse than nothing sent, and return their ends.

    Parameters
    ----------
    ax : Axes
        Its limits are final.
    settings : sequence of Setting
    measure : Measure
    floors : sequence of FloorLine
    """
    right = ax.get_xlim()[1]
    base = nothing_sent(settings)
    reached = base.mean(measure.column) if base else None
    if reached is not None:
        worst = ax.get_ylim()[1 if measure.lower_is_better else 0]
        ax.axhspan(*sorted((reached, worst)), facecolor=RULE, alpha=0.4, linewidth=0, zorder=0)
    for floor in floors:
        ax.axhline(floor.value, color=floor.look.colour, linestyle=floor.look.dashes, linewidth=1.1)
    return [PointLabel(right, floor.value, floor.name, INK) for floor in floors]


def floor_handles(floors: Sequence[FloorLine]) -> list[Line2D]:
    """Return what stands for floors in a legend."""
    return [legend_handle(floor.name, floor.look) for floor in floors]


def floors_in_words(settings: Sequence[Setting]) -> Iterator[str]:
    """Say how floors are drawn, for a caption."""
    drawn = [f"{setting.floor} {FLOOR_LINES[setting.floor][0]}" for setting in settings if setting.floor]
    if drawn:
        yield f"Lines across without markers are floors: {listed(drawn)}."
    if nothing_sent(settings):
        yield "Shaded: worse than with nothing sent."


def floors_described(settings: Sequence[Setting], measure: Measure) -> Iterator[str]:
    """Yield what is seen of each floor, for readers who cannot see the figure."""
    for setting in settings:
        mean = setting.mean(measure.column)
        if setting.floor and mean is not None:
            yield f"{setting.floor} {mean:.3f}, a floor, as a horizontal line"
