"""The axis of accuracy: what would squash everything else is off its scale, and named at its edge."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes

from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import Metric, short
from simulation.pages.figures.axes import log_axis, plain_axis
from simulation.pages.figures.panels import MUTED, Style, shortened, title

_FEW = 0.25
"""Largest share of what is drawn that may be off the scale."""

_WIDE_RANGE = 20
"""Ratio of the largest to the smallest accuracy above which their axis is logarithmic."""

_MARGIN, _LETTER, _LINE = 0.07, 0.56, 1.3
"""Space beyond the values, relative to their range; width and height of text, relative to the font size."""


def accuracy_axis(
    ax: Axes,
    style: Style,
    metric: Metric,
    values: Mapping[str, Sequence[float]],
    ends: Sequence[float] = (),
) -> None:
    """Head and fit the vertical axis of a panel; logarithmic if the accuracies lie far apart.

    The worst are left off the scale if they are few and farther from all others than these from each other.

    Parameters
    ----------
    values : mapping
        Accuracies of everything that the panel shows, by name.
    ends : sequence of float
        Ends of error bars.
    """
    key = metric.sort_key
    turned = {name: [key(value) for value in each] for name, each in values.items() if each}
    limit = _worst_shown(turned)
    shown = [value for each in turned.values() for value in each if value <= limit]
    beyond = {name: [value for value in values[name] if key(value) > limit] for name in turned}
    beyond = {name: each for name, each in beyond.items() if each}
    most = limit + _FEW * (limit - min(shown)) if beyond else float("inf")
    shown += [key(end) for end in ends if key(end) <= most]
    low, high = sorted((key(min(shown, default=0.0)), key(max(shown, default=1.0))))
    if 0 < _WIDE_RANGE * low < high:
        log_axis(ax, [low, high], which="y")
    else:
        spread = (high - low) or 0.1 * abs(high) or 1.0
        ax.set_ylim(low - _MARGIN * spread, high + _MARGIN * spread)
        plain_axis(ax, which="y")
    _head(ax, style, metric, beyond)


def means(protocols: Mapping[str, Sequence[ProtocolResult]], metric: Metric) -> dict[str, list[float]]:
    """Return the accuracies of every protocol, by its name as a figure shows it."""
    return {
        shortened(name): [mean for result in each if (mean := result.mean(metric.column)) is not None]
        for name, each in protocols.items()
    }


def _worst_shown(values: Mapping[str, Sequence[float]]) -> float:
    """Return the highest value to show; a few beyond a gap wider than the range of all others are not."""
    ordered = sorted(value for each in values.values() for value in each)
    for low, high in pairwise(ordered):
        beyond = sum(max(each) > low for each in values.values())
        if high - low > low - ordered[0] and beyond <= _FEW * len(values):
            return low
    return ordered[-1] if ordered else 1.0


def _head(ax: Axes, style: Style, metric: Metric, beyond: Mapping[str, Sequence[float]]) -> None:
    """Write above the panel what its axis shows, and what lies beyond its edge."""
    if not beyond:
        title(ax, metric.heading, style)
        return
    # A name stays beside its values.
    words = [_range_in_words(name, each).replace(" ", "\N{NO-BREAK SPACE}") for name, each in beyond.items()]
    small = style.points - 0.5
    width = int(72 * 0.85 * style.width / (_LETTER * small))
    arrow = "↑" if metric.lower_is_better else "↓"
    lines = textwrap.wrap(f"{arrow} off the scale: {', '.join(words)}", width, break_on_hyphens=False)
    ax.annotate(
        "\n".join(lines),
        (0, 1),
        (0, 5),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=small,
        color=MUTED,
        va="bottom",
        parse_math=False,
    )
    title(ax, metric.heading, style, above=8 + _LINE * small * len(lines))


def _range_in_words(name: str, values: Sequence[float]) -> str:
    least, most = short(min(values)), short(max(values))
    return f"{name} {least}" if least == most else f"{name} {least} to {most}"
