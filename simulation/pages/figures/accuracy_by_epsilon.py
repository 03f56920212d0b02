"""Accuracy of protocols against epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dprec.accounting import ComparableUnit
from simulation.analysis.measures import Measure
from simulation.analysis.settings import Setting, by_protocol
from simulation.analysis.vocabulary import loss_per
from simulation.pages.figures.accuracy_axis import accuracy_axis
from simulation.pages.figures.axes import log_axis
from simulation.pages.figures.colours import SURFACE
from simulation.pages.figures.floor_lines import draw_floors, floor_handles, floor_lines
from simulation.pages.figures.hovering import show_on_hover
from simulation.pages.figures.labels import PointLabel, direct_labels, legend_below, tall_enough
from simulation.pages.figures.looks import Look, Looks, legend_handle, marked, trust_handles
from simulation.pages.figures.panels import Style, axis_labels, panels, shortened
from simulation.pages.figures.point_words import setting_in_words


@dataclass(frozen=True)
class EpsilonAxis:
    """An axis of privacy losses: those that hold, or those that were requested.

    Parameters
    ----------
    unit : {"rating", "user"}
    delta : float, optional
        With which the losses per user hold, by composition; by default they are sums.
    asked : bool
        Whether it shows the requested budgets; the unit is then theirs.
    """

    unit: ComparableUnit
    delta: float | None = None
    asked: bool = False

    def value(self, setting: Setting) -> float | None:
        """Return a setting's place on the axis; None if it has none."""
        if self.asked:
            return setting.budget
        return setting.epsilon(self.unit) if self.delta is None else setting.composed

    @property
    def name(self) -> str:
        """What it counts."""
        return f"{'requested ' if self.asked else ''}{loss_per(self.unit)}"

    @property
    def label(self) -> str:
        """What is written below the axis."""
        most = ", largest of any user" if self.unit == "user" else ""
        at = "" if self.delta is None else f" at δ = {self.delta:g}"
        return f"{loss_per(self.unit)}{at}{', as requested' if self.asked else most}"


def draw_accuracy_against_epsilon(
    style: Style, settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis, looks: Looks
) -> Figure:
    """Draw one line per protocol, with error bars; protocols without privacy and floors are horizontal.

    Parameters
    ----------
    style : Style
    settings : sequence of Setting
    measure : Measure
    axis : EpsilonAxis
        Settings without a place on it are left out.
    looks : mapping
        Of every protocol, by its name.
    """
    curves, references = _curves(settings, measure, axis), _references(settings, measure)
    floors = floor_lines(settings, measure, looks)
    style = tall_enough(style, len(curves) + len(references) + len(floors))
    figure, (ax,) = panels(style)
    ends = [_draw_curve(ax, curve, looks[curve.name]) for curve in curves]
    log_axis(
        ax, [loss for curve in curves for loss in curve.losses.tolist()] or [0.5, 2.0], ticks_at_values=True
    )
    right = ax.get_xlim()[1]
    for setting, mean in references:
        look = looks[setting.name]
        ax.axhline(mean, color=look.colour, linestyle=look.dashes, linewidth=1.3)
        ends.append(PointLabel(right, mean, shortened(setting.name), look.colour))
    ranges = [end for curve in curves for end in (*curve.low.tolist(), *curve.high.tolist())]
    flat = {shortened(setting.name): [mean] for setting, mean in references}
    flat |= {floor.name: [floor.value] for floor in floors}
    reached = {curve.label: curve.mean.tolist() for curve in curves}
    accuracy_axis(ax, style, measure, reached | flat, ranges)
    ends += draw_floors(ax, settings, measure, floors)
    axis_labels(ax, style, x=axis.label)
    show_on_hover(ax, _shown(settings, measure, axis))
    if style.narrow:
        named = {curve.name: curve.label for curve in curves}
        named |= {setting.name: shortened(setting.name) for setting, _ in references}
        handles = [legend_handle(label, looks[name]) for name, label in named.items()]
        legend_below(figure, style, [*trust_handles(looks), *handles, *floor_handles(floors)])
    else:
        direct_labels(ax, style, ends)
        legend_below(figure, style, trust_handles(looks))
    return figure


def _shown(
    settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis
) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every point."""
    for setting in settings:
        place, mean = axis.value(setting), setting.mean(measure.column)
        if not setting.floor and place and mean is not None:
            yield place, mean, setting_in_words(setting, measure)


@dataclass(frozen=True, eq=False)
class _Curve:
    """The accuracy of one protocol against epsilon: arrays of one entry per budget, by ascending epsilon."""

    name: str
    label: str
    losses: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @property
    def low(self) -> NDArray[np.float64]:
        return self.mean - self.deviation

    @property
    def high(self) -> NDArray[np.float64]:
        return self.mean + self.deviation


def _curves(settings: Sequence[Setting], measure: Measure, axis: EpsilonAxis) -> list[_Curve]:
    curves = []
    for name, points in by_protocol([setting for setting in settings if setting.floor is None]).items():
        known = [
            (loss, accuracy.mean, accuracy.deviation)
            for setting in points
            if (loss := axis.value(setting)) and (accuracy := setting.average(measure.column))
        ]
        if not known:
            continue
        label = marked(name, points) if axis.asked else shortened(name)
        losses, mean, deviation = np.array(sorted(known)).T
        curves.append(_Curve(name, label, losses, mean, deviation))
    return curves


def _draw_curve(ax: Axes, curve: _Curve, look: Look) -> PointLabel:
    """Draw a curve with error bars, and return its end."""
    ax.errorbar(
        curve.losses,
        curve.mean,
        yerr=curve.deviation,
        color=look.colour,
        marker=look.marker,
        linestyle=look.dashes,
        markersize=6,
        markeredgecolor=SURFACE,
        markeredgewidth=0.6,
        linewidth=1.6,
        elinewidth=1.1,
    )
    return PointLabel(float(curve.losses[-1]), float(curve.mean[-1]), curve.label, look.colour)


def _references(settings: Sequence[Setting], measure: Measure) -> list[tuple[Setting, float]]:
    return [
        (setting, mean)
        for setting in settings
        if setting.reference and (mean := setting.mean(measure.column)) is not None
    ]
