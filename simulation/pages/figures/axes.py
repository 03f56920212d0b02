"""Axes with few and plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from simulation.analysis.numbers import short, size


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
    ax : Axes
    values : sequence of float
        Everything that is drawn, above 0.
    which : {"x", "y"}
    ticks_at_values : bool
        Label the values themselves, if they are few enough.
    in_bytes : bool
        Write the numbers as sizes.
    """
    written = size if in_bytes else short
    low, high = min(values), max(values)
    margin = max(1.15, (high / low) ** 0.06)
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low / margin, high * margin)})
    axis = ax.xaxis if which == "x" else ax.yaxis
    distinct = sorted(set(values))
    whole = math.log(high / low) or 1.0
    apart = all(math.log(after / before) > 0.09 * whole for before, after in pairwise(distinct))
    if ticks_at_values and len(distinct) <= 8 and apart:
        axis.set_major_locator(FixedLocator(distinct))
        axis.set_minor_locator(NullLocator())
    else:
        subs = (1.0,) if high / low > 100 else (1.0, 2.0, 5.0) if high / low > 3 else tuple(range(1, 10))
        axis.set_major_locator(LogLocator(subs=subs, numticks=7))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    axis.set_minor_formatter(NullFormatter())


def plain_axis(
    ax: Axes, *, which: str = "x", ticks: int = 6, percent: bool = False, in_bytes: bool = False
) -> None:
    """Give a linear axis few ticks with plain numbers on them."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))

    def written(value: float, _: int | None) -> str:
        if percent:
            return percentage(value)
        # One suffix for the whole axis: 8k, 10k, 12k rather than 8,000, 10k, 12k.
        in_thousands = 1e4 <= max(abs(end) for end in axis.get_view_interval()) < 1e6
        return size(value) if in_bytes else f"{value / 1e3:.4g}k" if in_thousands and value else short(value)

    axis.set_major_formatter(FuncFormatter(written))


def percentage(share: float) -> str:
    """Write a share in per cent."""
    return f"{100 * share:.3g} %"


_WIDE_RANGE = 20
"""Ratio of the largest to the smallest accuracy above which their axis is logarithmic."""


_FEW = 0.25
"""Largest share of the values that may be left off the scale."""


def _readable(values: Sequence[float]) -> float:
    """Return the largest value to show; a few beyond a gap wider than the range of all others are not."""
    ordered = np.sort(values)
    gaps, spreads = np.diff(ordered), ordered[:-1] - ordered[0]
    above = ordered.size - 1 - np.arange(gaps.size)
    apart = np.flatnonzero((gaps > spreads) & (above <= _FEW * ordered.size))
    return float(ordered[apart[0]] if apart.size else ordered[-1])


def accuracy_axis(ax: Axes, values: Sequence[float]) -> None:
    """Fit the vertical axis to accuracies; logarithmic if they lie far apart.

    A few that would squash the others are left off the scale; see `note_off_scale`.
    """
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if 0 < _WIDE_RANGE * low < high:
        log_axis(ax, values, which="y")
        return
    shown = _readable(values) if values else high
    spread = (shown - low) or 0.1 * abs(shown) or 1.0
    # Room for the note on what is off the scale.
    above = 0.07 if shown == high else 0.16
    ax.set_ylim(low - 0.07 * spread, shown + above * spread)
    plain_axis(ax, which="y")
