"""Axes with few and plain numbers; that of accuracy leaves out what would squash the rest, and names it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from simulation.analysis.vocabulary import SIZES, THOUSANDS, Metric, short, size
from simulation.pages.figures.marks import Axis

_STEPS = (
    *((1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 1.5, 2, 3, 4, 5, 7)),
    *((1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)),
)
"""First digits of the ticks of a logarithmic axis, from many to few."""


def log_axis(
    values: Sequence[float], label: str = "", *,
    at_values: bool = False, in_bytes: bool = False, labels: int = 6, grid: bool = False,
) -> Axis:  # fmt: skip
    """Return a logarithmic axis with room for so many labels, at the values themselves if these are few."""
    written = size if in_bytes else short
    high = max(values)
    # Whatever a damaged table holds, the axis has ends.
    low = max(min(values), high * _SMALLEST)
    margin = max(1.15, (high / low) ** 0.06)
    low, high = low / margin, high * margin
    apart = math.log(high / low) / labels
    distinct = sorted({float(f"{value:.3g}") for value in values})
    ticks = distinct if at_values and _fit(distinct, apart) else _log_ticks(low, high, apart)
    if len(ticks) > 1 or ticks == distinct:
        return Axis(low, high, [(tick, written(tick)) for tick in ticks], label, log=True, grid=grid)
    return Axis(low, high, _plain_ticks(low, high, 4, in_bytes=in_bytes), label, log=True, grid=grid)


_SMALLEST = 1e-40
"""The lower end of a logarithmic axis relative to its upper one, at least."""


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
    low: float, high: float, label: str = "", *,
    pad: float = 0.0, ticks: int = 5, percent: bool = False, in_bytes: bool = False, grid: bool = False,
) -> Axis:  # fmt: skip
    """Return a linear axis with few ticks, and space beyond both ends relative to the range."""
    beyond = pad * (high - low) if low < high else 0.05 * abs(low) or 0.5
    low, high = low - beyond, high + beyond
    shown = _plain_ticks(low, high, ticks, percent=percent, in_bytes=in_bytes)
    return Axis(low, high, shown, label, grid=grid)


def level_axis(levels: Sequence[float], label: str = "", *, grid: bool = False) -> Axis:
    """Return a linear axis for ratings, with a tick at each if they are few."""
    low, high = float(levels[0]), float(levels[-1])
    axis = plain_axis(low, high, label, pad=0.06, grid=grid)
    return axis if len(levels) > 6 else replace(axis, ticks=[(at, f"{at:g}") for at in levels])


def _plain_ticks(
    low: float, high: float, most: int, *, percent: bool = False, in_bytes: bool = False
) -> list[tuple[float, str]]:
    """Return round numbers, in one unit and with the decimals that none of them can do without."""
    coarse = (high - low) / most
    power = 10.0 ** math.floor(math.log10(coarse))
    step = next(power * digit for digit in (1, 2, 2.5, 5, 10) if power * digit >= coarse * 0.999)
    places = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    largest = max((abs(place) for place in places), default=0.0)
    if percent:
        unit, suffix = 0.01, " %"
    elif in_bytes:
        limit, name = next((each for each in SIZES if largest >= each[0]), (1.0, "B"))
        unit, suffix = limit, f" {name}"
    else:
        limit, suffix = next((each for each in THOUSANDS if largest >= each[0]), (1.0, ""))
        unit = 1e3 if suffix == "k" else limit
    scaled = step / unit
    decimals = next((d for d in range(9) if abs(round(scaled, d) - scaled) < 1e-6 * scaled), 9)
    always = percent or in_bytes
    return [
        (place, f"{place / unit + 0.0:,.{decimals}f}{suffix if always or abs(place) > step / 2 else ''}")
        for place in places
    ]


_FEW = 0.25
"""Largest share of what is drawn that may be off the scale."""

_WIDE_RANGE = 20
"""Ratio of the largest to the smallest accuracy above which their axis is logarithmic."""

_MARGIN = 0.07
"""Space beyond the values, relative to their range."""


def accuracy_axis(
    metric: Metric, values: Mapping[str, Sequence[float]], ends: Sequence[float] = ()
) -> tuple[Axis, tuple[str, ...]]:
    """Return the vertical axis of a panel, logarithmic if the accuracies lie far apart, and its notes.

    The worst are left off the scale if they are few and farther from all others than these from each other.
    """
    key = metric.sort_key
    turned = {name: [key(value) for value in each] for name, each in values.items() if len(each)}
    limit = _worst_shown(turned)
    shown = [value for each in turned.values() for value in each if value <= limit]
    off = {name: [value for value in values[name] if key(value) > limit] for name in turned}
    beyond = {name: each for name, each in off.items() if each}
    most = limit + _FEW * (limit - min(shown)) if beyond else float("inf")
    shown += [key(end) for end in ends if key(end) <= most]
    low, high = sorted((key(min(shown, default=0.0)), key(max(shown, default=1.0))))
    if 0 < _WIDE_RANGE * low < high:
        axis = log_axis([low, high], labels=8, grid=True)
    else:
        axis = plain_axis(low, high, pad=_MARGIN, grid=True)
    if not beyond:
        return axis, ()
    arrow = "↑" if metric.lower_is_better else "↓"
    words = []
    for name, each in beyond.items():
        least, worst = short(min(each)), short(max(each))
        # A name stays beside its values.
        span = f"{name} {least}" if least == worst else f"{name} {least} to {worst}"
        words.append(span.replace(" ", "\N{NO-BREAK SPACE}"))
    return axis, (f"{arrow} off the scale: {', '.join(words)}",)


def _worst_shown(values: Mapping[str, Sequence[float]]) -> float:
    """Return the highest value to show; a few beyond a gap wider than the range of all others are not."""
    ordered = sorted(value for each in values.values() for value in each)
    for low, high in pairwise(ordered):
        beyond = sum(max(each) > low for each in values.values())
        if high - low > low - ordered[0] and beyond <= _FEW * len(values):
            return low
    return ordered[-1] if ordered else 1.0
