"""The floors of a comparison: the accuracy reached with nothing sent, and how far other settings beat it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from simulation.analysis.measures import Measure
from simulation.analysis.numbers import number
from simulation.analysis.settings import Setting
from simulation.analysis.vocabulary import plural
from simulation.storage.tables import Row

NOTHING_SENT = "nothing-sent"
"""The floor that everything else is compared with: no bytes, no privacy loss."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Gain:
    """How much better a setting is than a floor, on the same folds and seeds.

    Parameters
    ----------
    mean : float
        In the measure's own unit; above 0 is better, whichever way the measure goes.
    half_width : float or None
        Half the width of the paired difference's 95 % interval (Student's t); None for a single pair.
    pairs : int
        Number of differences that the interval is based on.
    over : {"fold", "seed"}
        What they differ in.
    """

    mean: float
    half_width: float | None
    pairs: int
    over: str

    @property
    def beyond_doubt(self) -> bool:
        """Whether it is better by more than its uncertainty, or simply better if there is a single pair."""
        return self.mean > (self.half_width or 0.0)

    @property
    def interval(self) -> str:
        """What the ± stands for, in words; empty for a single pair."""
        return "" if self.half_width is None else f"95 % interval over {plural(self.pairs, self.over)}"

    def written(self, digits: int) -> str:
        """Write it with its direction in words: 0.061 ± 0.004 better."""
        word = " better" if self.mean > 0 else " worse" if self.mean < 0 else ""
        width = "" if self.half_width is None else f" ± {number(self.half_width, digits)}"
        return number(abs(self.mean), digits) + width + word


def nothing_sent(settings: Sequence[Setting]) -> Setting | None:
    """Return the floor with nothing sent among settings that predict the same; None if there is none."""
    return next((setting for setting in settings if setting.floor == NOTHING_SENT), None)


def gain(setting: Setting, floor: Setting, measure: Measure) -> Gain | None:
    """Return how much better a setting is than a floor.

    Folds share most of their train ratings but no test ratings; the seeds of one fold share both. With
    several folds, the seeds of each are averaged first and the interval is over folds; with a single
    fold, it is over seeds.

    Parameters
    ----------
    setting, floor : Setting
        Settings that predict the same ratings.
    measure : Measure

    Returns
    -------
    Gain or None
        None if they share no fold and seed, or the measure does not apply.
    """
    base = {_ratings(row): row.get(measure.column) for row in floor.rows}
    sign = 1.0 if measure.lower_is_better else -1.0
    by_fold: dict[object, list[float]] = {}
    for row in setting.rows:
        reached, own = base.get(_ratings(row)), row.get(measure.column)
        if isinstance(reached, float | int) and isinstance(own, float | int):
            by_fold.setdefault(row.get("fold"), []).append(sign * (reached - own))
    if not by_fold:
        return None
    several = len(by_fold) > 1
    pairs = [statistics.fmean(own) for own in by_fold.values()] if several else next(iter(by_fold.values()))
    return Gain(statistics.fmean(pairs), _half_width(pairs), len(pairs), "fold" if several else "seed")


def _ratings(row: Row) -> tuple[object, ...]:
    """Return what tells apart the train and test ratings of the runs of one evaluation."""
    return tuple(row.get(column) for column in ("fold", "seed", "train_ratings", "test_ratings"))


def _half_width(differences: Sequence[float]) -> float | None:
    count = len(differences)
    if count < 2:
        return None
    quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return quantile * statistics.stdev(differences) / math.sqrt(count)


def gain_digits(measure: Measure) -> int:
    """Return how many decimals of a difference are worth showing."""
    return measure.digits - 1
