"""Axes with few and plain numbers; that of accuracy names what is off its scale at its edge."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    Formatter,
    FuncFormatter,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import SIZES, THOUSANDS, Metric, short, size
from simulation.pages.figures.panels import MUTED, Style, shortened, title

_STEPS = (
    (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    (1, 1.5, 2, 3, 4, 5, 7),
    (1, 2, 3, 5),
    (1, 2, 5),
    (1, 3),
    (1,),
)
"""First digits of the ticks of a logarithmic axis, from many to few."""

_LABEL = {"x": 0.5, "y": 0.3}
"""Inches from one label of an axis to the next, at least."""


def log_axis(
    ax: Axes,
    values: Sequence[float],
    *,
    which: str = "x",
    ticks_at_values: bool = False,
    in_bytes: bool = False,
) -> None:
    """Make an axis logarithmic, with plain numbers on it.

    Parameters
    ----------
    values : sequence of float
        Everything that is drawn, above 0.
    ticks_at_values : bool
        Label the values themselves, if they are few enough.
    in_bytes : bool
        Write the numbers as sizes.
    """
    written = size if in_bytes else short
    low, high = min(values), max(values)
    margin = max(1.15, (high / low) ** 0.06)
    low, high = low / margin, high * margin
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = ax.xaxis if which == "x" else ax.yaxis
    figure, place = ax.figure, ax.get_position()
    assert isinstance(figure, Figure)
    inches = figure.get_figwidth() * place.width if which == "x" else figure.get_figheight() * place.height
    apart = math.log(high / low) * _LABEL[which] / inches
    distinct = sorted({float(f"{value:.3g}") for value in values})
    ticks = distinct if ticks_at_values and _fit(distinct, apart) else _log_ticks(low, high, apart)
    if len(ticks) > 1 or ticks == distinct:
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    else:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(_Alike(in_bytes=in_bytes))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _log_ticks(low: float, high: float, apart: float) -> list[float]:
    """Return as many round numbers as have room, whose logarithms are so far apart at least."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = [[digit * 10.0**power for power in powers for digit in digits] for digits in _STEPS]
    candidates += [[10.0**power for power in powers if power % every == 0] for every in (2, 3, 4, 6)]
    inside = ([tick for tick in ticks if low <= tick <= high] for ticks in candidates)
    return next((ticks for ticks in inside if _fit(ticks, apart)), [])


def _fit(ticks: Sequence[float], apart: float) -> bool:
    return all(math.log(after / before) >= apart for before, after in pairwise(ticks))


def plain_axis(
    ax: Axes, *, which: str = "x", ticks: int = 6, percent: bool = False, in_bytes: bool = False
) -> None:
    """Give a linear axis few ticks with plain numbers on them."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(_Alike(percent=percent, in_bytes=in_bytes))


class _Alike(Formatter):
    """Writes the ticks of an axis in one unit, with the decimals that none of them can do without."""

    def __init__(self, *, percent: bool = False, in_bytes: bool = False) -> None:
        self._percent, self._in_bytes = percent, in_bytes
        self._ticks: list[float] = []

    def set_locs(self, locs: Sequence[float]) -> None:
        self._ticks = list(locs)

    def __call__(self, value: float, pos: int | None = None) -> str:
        unit, suffix = self._unit()
        scaled = [tick / unit for tick in self._ticks]
        step = min((after - before for before, after in pairwise(scaled)), default=1.0)
        decimals = next(
            (d for d in range(7) if all(abs(round(tick, d) - tick) < 0.01 * step for tick in scaled)), 7
        )
        return f"{value / unit:,.{decimals}f}{suffix if value or self._percent or self._in_bytes else ''}"

    def _unit(self) -> tuple[float, str]:
        if self._percent:
            return 0.01, " %"
        largest = max((abs(tick) for tick in self._ticks), default=0.0)
        if self._in_bytes:
            limit, unit = next((size for size in SIZES if largest >= size[0]), (1.0, "B"))
            return limit, f" {unit}"
        limit, suffix = next((each for each in THOUSANDS if largest >= each[0]), (1.0, ""))
        return 1e3 if suffix == "k" else limit, suffix


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
