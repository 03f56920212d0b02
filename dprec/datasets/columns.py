"""Settings that say where ratings stand in a table, and on which scale they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError
from dprec.options import Options, option
from dprec.ratings import MAX_LEVELS, RatingScale

_CONTINUOUS_STEPS = 40
_LARGEST = 1e15
"""Greatest absolute rating: beyond it, floating point is too coarse to distinguish levels."""

_COLUMN = "column: its name in the header, or its position from 1; by default it is found by its name."


@dataclass(frozen=True, kw_only=True)
class RatingColumns(Options):
    """Where users, items and ratings stand in a table, and the scale of the ratings.

    The scale runs from `low` to `high` by `step`. What is not given is taken from the ratings: the
    least, the greatest, and the smallest distance between two different ones, which must then fit all.
    Give `low` and `high` if the ends of the scale may not occur in the data.
    """

    user_column: str | int | None = option(f"Users' {_COLUMN}", None)
    item_column: str | int | None = option(f"Items' {_COLUMN}", None)
    rating_column: str | int | None = option(f"Ratings' {_COLUMN}", None)
    low: float | None = option("Least rating of the scale; by default the least that occurs.", None)
    high: float | None = option("Greatest rating of the scale; by default the greatest that occurs.", None)
    step: float | None = option(
        "Distance between two levels of the scale; by default the smallest distance between two ratings, "
        "or a fortieth of the range if the scale is continuous.",
        None,
        gt=0,
    )
    continuous: bool = option("Whether ratings lie between the levels too, as on a slider.", False)

    def known_scale(self) -> RatingScale | None:
        """Return the scale if it is configured in full."""
        if self.low is None or self.high is None or self.step is None:
            return None
        return RatingScale.evenly(self.low, self.high, self.step, continuous=self.continuous)

    def scale(self, values: NDArray[np.float64], source: str) -> RatingScale:
        """Return the scale of some ratings; an InputError names their source."""
        low = float(values.min()) if self.low is None else float(self.low)
        high = float(values.max()) if self.high is None else float(self.high)
        if not low < high or max(-low, high) > _LARGEST:
            raise InputError(
                source, f"a scale from {low:g} to {high:g}", "low and high, with low < high, within 1e15"
            )
        step = self.step
        if step is None and self.continuous:
            step = (high - low) / _CONTINUOUS_STEPS
        elif step is None:
            # Rounding keeps two spellings of one rating from counting as different levels.
            step = float(np.diff(np.unique(np.round([low, high, *np.unique(values)], 9))).min())
            steps = (high - low) / step
            if not (abs(steps - round(steps)) < 1e-6 and steps < MAX_LEVELS):
                raise InputError(
                    source,
                    f"ratings from {low:g} to {high:g} that are as little as {step:g} apart",
                    "evenly spaced ratings, or a step, with continuous: true if it does not fit all",
                )
            step = (high - low) / round(steps)
        return RatingScale.evenly(low, high, step, continuous=self.continuous)
