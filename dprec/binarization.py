"""Ratings turned into signs: +1 for those above a threshold, -1 for the others.

One-bit methods work on signs. The threshold is part of a run's configuration and is applied before
anything else, so devices hold signs, and accuracy is measured on signs.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dprec.components import Options, Registry, option
from dprec.errors import InputError, SettingError
from dprec.ratings import Ratings, RatingScale


def binary_scale(cut: float | None = None) -> RatingScale:
    """Return the scale of -1 and +1; a +1 stands for a rating above ``cut``."""
    return RatingScale(np.array([-1.0, 1.0]), cut=cut)


def is_binary(scale: RatingScale) -> bool:
    """Return whether a scale consists of -1 and +1."""
    return bool(np.array_equal(scale.values, [-1.0, 1.0]))


def check_binary(scale: RatingScale) -> None:
    """Raise InputError, which states what to configure, unless ratings are signs."""
    if not is_binary(scale):
        above = f"{{kind: threshold, above: {scale.values.mean():g}}}"
        accepted = f"-1 and +1, as by --set 'binarization={{kind: mean}}' or --set 'binarization={above}'"
        raise InputError("binarization", f"none, with ratings that are {scale.describe()}", accepted)


@dataclass(frozen=True, kw_only=True)
class Binarization(Options):
    """Base of the ways to choose the threshold."""

    kind: str = ""

    @abstractmethod
    def cut(self, train: Ratings) -> float:
        """Return the rating above which one is +1; raises SettingError if all have the same sign."""

    def apply(self, train: Ratings, test: Ratings) -> tuple[Ratings, Ratings]:
        """Return the signs of train and test ratings, for the same threshold."""
        cut = self.cut(train)
        return _signs(train, cut), _signs(test, cut)


@dataclass(frozen=True, kw_only=True)
class MeanThreshold(Binarization):
    """Above the mean of the train ratings (Li et al. [li2021], section 5.1)."""

    kind: Literal["mean"] = "mean"

    def cut(self, train: Ratings) -> float:
        """Return the mean train rating; SettingError when no rating is above it."""
        if not (train.values > train.mean).any():
            raise SettingError("", "mean, with train ratings that are all alike", "ratings that differ")
        return train.mean


@dataclass(frozen=True, kw_only=True)
class FixedThreshold(Binarization):
    """Above a fixed rating."""

    kind: Literal["threshold"] = "threshold"
    above: float = option("A rating above this counts as +1, any other as -1.")

    def cut(self, train: Ratings) -> float:
        """Return the threshold; SettingError when it does not divide the scale."""
        scale = train.scale
        if not scale.low <= self.above < scale.high:
            accepted = f"from {scale.low:g} to below {scale.high:g}"
            raise SettingError("above", f"{self.above:g}", accepted)
        return self.above


def _signs(ratings: Ratings, cut: float) -> Ratings:
    levels = (ratings.values > cut).astype(np.uint8) + np.uint8(1)
    return replace(ratings, levels=levels, scale=binary_scale(cut), exact=None)


BINARIZATIONS: Registry[Binarization] = Registry(
    "binarization", Binarization, [MeanThreshold, FixedThreshold]
)
