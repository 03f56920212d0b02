"""Accuracy of protocols against epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dprec.privacy.units import ComparableUnit
from simulation.analysis.protocol_results import ProtocolResult, by_protocol
from simulation.analysis.vocabulary import Metric, loss_per
from simulation.pages.figures.axes import accuracy_axis, log_axis
from simulation.pages.figures.labels import (
    PointLabel,
    direct_labels,
    legend_below,
    result_in_words,
    show_on_hover,
    tall_enough,
)
from simulation.pages.figures.looks import (
    Look,
    Looks,
    baseline_handles,
    baseline_lines,
    draw_baselines,
    legend_handle,
    marked,
    trust_handles,
)
from simulation.pages.figures.panels import SURFACE, Style, axis_labels, panels, shortened


@dataclass(frozen=True)
class EpsilonAxis:
    """An axis of privacy losses: those that hold, or those that were requested."""

    unit: ComparableUnit
    delta: float | None = None
    """With which the losses per user hold, by composition; by default they are sums."""
    asked: bool = False
    """Whether it shows the requested budgets; the unit is then theirs."""

    def value(self, result: ProtocolResult) -> float | None:
        """Return a setting's place on the axis; None if it has none."""
        if self.asked:
            return result.budget
        return result.epsilon(self.unit) if self.delta is None else result.composed

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
    style: Style, results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis, looks: Looks
) -> Figure:
    """Draw one line per protocol, with error bars; protocols without privacy and baselines are horizontal.

    Parameters
    ----------
    axis : EpsilonAxis
        Settings without a place on it are left out.
    looks : mapping
        Of every protocol, by its name.
    """
    curves, references = _curves(results, metric, axis), _references(results, metric)
    baselines = baseline_lines(results, metric, looks)
    style = tall_enough(style, len(curves) + len(references) + len(baselines))
    figure, (ax,) = panels(style)
    ends = [_draw_curve(ax, curve, looks[curve.name]) for curve in curves]
    log_axis(
        ax, [loss for curve in curves for loss in curve.losses.tolist()] or [0.5, 2.0], ticks_at_values=True
    )
    right = ax.get_xlim()[1]
    for result, mean in references:
        look = looks[result.name]
        ax.axhline(mean, color=look.colour, linestyle=look.dashes, linewidth=1.3)
        ends.append(PointLabel(right, mean, shortened(result.name), look.colour))
    ranges = [end for curve in curves for end in (*curve.low.tolist(), *curve.high.tolist())]
    flat = {shortened(result.name): [mean] for result, mean in references}
    flat |= {baseline.name: [baseline.value] for baseline in baselines}
    reached = {curve.label: curve.mean.tolist() for curve in curves}
    accuracy_axis(ax, style, metric, reached | flat, ranges)
    ends += draw_baselines(ax, results, metric, baselines)
    axis_labels(ax, style, x=axis.label)
    show_on_hover(ax, _shown(results, metric, axis))
    if style.narrow:
        named = {curve.name: curve.label for curve in curves}
        named |= {result.name: shortened(result.name) for result, _ in references}
        handles = [legend_handle(label, looks[name]) for name, label in named.items()]
        legend_below(figure, style, [*trust_handles(looks), *handles, *baseline_handles(baselines)])
    else:
        direct_labels(ax, style, ends)
        legend_below(figure, style, trust_handles(looks))
    return figure


def _shown(
    results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis
) -> Iterator[tuple[float, float, str]]:
    """Yield place and words of every point."""
    for result in results:
        place, mean = axis.value(result), result.mean(metric.column)
        if not result.baseline and place and mean is not None:
            yield place, mean, result_in_words(result, metric)


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


def _curves(results: Sequence[ProtocolResult], metric: Metric, axis: EpsilonAxis) -> list[_Curve]:
    curves = []
    for name, points in by_protocol([result for result in results if result.baseline is None]).items():
        known = [
            (loss, accuracy.mean, accuracy.deviation)
            for result in points
            if (loss := axis.value(result)) and (accuracy := result.average(metric.column))
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


def _references(results: Sequence[ProtocolResult], metric: Metric) -> list[tuple[ProtocolResult, float]]:
    return [
        (result, mean)
        for result in results
        if result.reference and (mean := result.mean(metric.column)) is not None
    ]
