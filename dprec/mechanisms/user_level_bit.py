"""Answers about a whole profile, which hide how items were rated and which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.profile_code import ProfileCode
from dprec.options import option
from dprec.ragged import places_of, rows_of
from dprec.ratings import RatingScale

_BUDGET_OF_AN_ANSWER, _MOST_ANSWERS = 4.0, 64
"""Of the budget per user, an answer gets at most so much; chosen by benchmarks/choose_user_level_bit.py."""

_MANY_ITEMS = 1 << 14
"""A catalogue for which a channel stands that is asked for without one."""


@dataclass(frozen=True, kw_only=True)
class UserLevelBit(Mechanism):
    """One item, and whether it is above the user's mean: more probably of the profile than not."""

    kind: Literal["user-level-bit"] = "user-level-bit"
    papers: ClassVar[tuple[str, ...]] = ("ye2018",)
    compares_ratings: ClassVar[bool] = True
    reports_profiles: ClassVar[bool] = True
    profile: int = option(
        "Ratings of a user that count at most: those farthest from its mean.", 64, ge=1, le=4096
    )
    answers: int | None = option(
        "Answers of a user, among which its budget is divided; by default as many as get 4 or less each.",
        None,
        ge=1,
        le=_MOST_ANSWERS,
    )

    def asked(self, epsilon: float) -> int:
        """Return how many answers a user with a budget gives, epsilon per user."""
        if self.answers is not None:
            return self.answers
        return min(max(1, math.ceil(epsilon / _BUDGET_OF_AN_ANSWER)), _MOST_ANSWERS)

    def code(self, n_items: int, epsilon: float) -> ProfileCode:
        """Return how a device answers at the budget of one answer; see `ProfileCode.at`."""
        return ProfileCode.at(epsilon, n_items, self.profile)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel between two profiles of a large catalogue with nothing in common."""
        return self.code(_MANY_ITEMS, epsilon).channel(scale)


def profile_elements(
    counts: NDArray[np.int64],
    items: NDArray[np.integer],
    levels: NDArray[np.uint8],
    scale: RatingScale,
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the elements of every profile: 2 i, or 2 i + 1 if item i is rated above the user's mean.

    Parameters
    ----------
    counts : ndarray of int64, shape (users,)
        Ratings of each user.
    items : ndarray of int, shape (ratings,)
        By user.
    levels : ndarray of uint8, shape (ratings,)
    scale : RatingScale
    most : int
        Elements of a user at most: of its ratings farthest from the mean, the first ones if equally far.

    Returns
    -------
    counts : ndarray of int64, shape (users,)
    elements : ndarray of int64, shape (sum of counts,)
    """
    ratings, users = scale.values[levels - 1], rows_of(counts)
    residuals = ratings * counts[users] - np.bincount(users, weights=ratings, minlength=counts.size)[users]
    elements = 2 * items.astype(np.int64) + (residuals > 0)
    if counts.max(initial=0) > most:
        order = np.lexsort((-np.abs(residuals), users))
        elements = elements[np.sort(order[places_of(counts) < most])]
    return np.minimum(counts, most), elements
