"""What the ratings themselves say about their scale, and where it would mislead."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import SettingError
from dprec.ratings import MAX_LEVELS

_FEW = 0.001
"""Share of the ratings below which they may not widen the scale."""

_LISTED = 5
_LEVELS_OF_A_SCALE = 4
"""Different ratings that make a scale; with fewer, any of them may be far from the others."""


def even_step(levels: NDArray[np.float64]) -> float | None:
    """Return the distance between the levels of a scale that has all of some values, or None.

    Parameters
    ----------
    levels : ndarray of float64, shape (values,)
        Ascending and different; the first and the last are the ends.
    """
    reach = levels[-1] - levels[0]
    # Rounding keeps two spellings of one rating from counting as different levels.
    apart = np.diff(np.unique(np.round(levels, 9)))
    if not apart.size:
        return None
    steps = reach / apart.min()
    if not (abs(steps - round(steps)) < 1e-6 and steps < MAX_LEVELS):
        return None
    return float(reach / round(steps))


def ends_around(low: float, high: float, step: float | None = None) -> tuple[float, float]:
    """Return round numbers around the ratings, at a distance that the step divides."""
    unit = 1.0 if step is None or not math.isfinite(max(-low, high) / step) else step
    return math.floor(low / unit) * unit, math.ceil(high / unit) * unit


def check_bulk(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    low: float | None,
    high: float | None,
    source: str,
    written: Callable[[Mapping[str, Any]], str],
) -> None:
    """Refuse ratings of which very few, or one value that may mean "not rated", widen the scale.

    Parameters
    ----------
    values : ndarray of float64, shape (values,)
        Different ratings, ascending.
    counts : ndarray of int64, shape (values,)
        How often each occurs.
    low, high : float or None
        Ends of the scale that are configured; a rating is then not what decides.
    source : str
        Where the ratings come from, for the error.
    written : callable
        From settings to what somebody types.

    Raises
    ------
    SettingError
        Under "missing": when less than 0.1 % of the ratings make the scale more than twice as wide; when a
        single value does, with four others or more; when the only negative value is below a gap.
    """
    for kept in (_without_few(values, counts, low, high), _without_sentinel(values, low, high)):
        inside = values[kept]
        if inside.size < values.size:
            odd = np.ones(values.size, dtype=np.bool_)
            odd[kept] = False
            found = _widened(values, counts, odd, (float(inside[0]), float(inside[-1])))
            accepted = _remedies(values, odd, (float(inside[0]), float(inside[-1])), written)
            raise SettingError("missing", f"{source}: {found}", accepted)


def _without_few(
    values: NDArray[np.float64], counts: NDArray[np.int64], low: float | None, high: float | None
) -> slice:
    """Return the narrowest stretch that holds all but a few of the ratings, if it is narrow enough."""
    budget = math.ceil(_FEW * counts.sum()) - 1
    below = np.concatenate([[0], np.cumsum(counts)])
    above = np.concatenate([[0], np.cumsum(counts[::-1])])
    starts = np.arange(1 if low is not None else np.searchsorted(below, budget, "right"))
    left = budget - below[starts]
    ends = values.size - (
        np.searchsorted(above, left, "right") - 1 if high is None else np.zeros_like(starts)
    )
    reaches = values[np.maximum(ends - 1, 0)] - values[np.minimum(starts, values.size - 1)]
    best = int(np.argmin(reaches)) if starts.size else 0
    whole = slice(0, values.size)
    if not starts.size or not 0 < 2 * reaches[best] < values[-1] - values[0]:
        return whole
    return slice(int(starts[best]), int(ends[best]))


def _without_sentinel(values: NDArray[np.float64], low: float | None, high: float | None) -> slice:
    """Return all values but one at an end that stands alone."""
    reach, enough = values[-1] - values[0], values.size > _LEVELS_OF_A_SCALE
    if low is None and values.size > 2:
        negative = values[0] < 0 <= values[1] and values[1] - values[0] > np.diff(values[1:]).min() + 1e-9
        if negative or (enough and 2 * (values[-1] - values[1]) < reach):
            return slice(1, values.size)
    if high is None and enough and 2 * (values[-2] - values[0]) < reach:
        return slice(0, values.size - 1)
    return slice(0, values.size)


def _widened(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    odd: NDArray[np.bool_],
    inside: tuple[float, float],
) -> str:
    """Return what odd ratings do to the scale, in words."""
    listed = ", ".join(f"{value:g}" for value in values[odd][:_LISTED])
    more = " ..." if odd.sum() > _LISTED else ""
    return (
        f"{counts[odd].sum():,} of {counts.sum():,} ratings ({listed}{more}) widen the scale from "
        f"{inside[0]:g} to {inside[1]:g} to {values[0]:g} to {values[-1]:g}"
    )


def _remedies(
    values: NDArray[np.float64],
    odd: NDArray[np.bool_],
    inside: tuple[float, float],
    written: Callable[[Mapping[str, Any]], str],
) -> str:
    """Return what to type where odd ratings are none, or where they are ratings."""
    low, high = float(values[0]), float(values[-1])
    unrated = written({"missing": values[odd][:_LISTED].tolist()})
    several = ", and so on," if odd.sum() > _LISTED else ""
    ends = {"low": low} if inside[0] > low else {}
    ends |= {"high": high} if inside[1] < high else {}
    return f"{unrated}{several} if that means not rated, or {written(ends)} if it is a rating"
