"""What every mechanism is: a recipe for a channel, given a rating scale and a privacy budget."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprec.errors import InputError
from dprec.mechanisms.channel import Channel
from dprec.options import Options
from dprec.ratings import RatingScale

_STARS = RatingScale.evenly(1, 5, 1)


@dataclass(frozen=True, kw_only=True)
class Mechanism(Options):
    """Base of the local mechanisms.

    A subclass sets `private` to False when it takes no budget, `sends_values` to False when nothing that is
    sent depends on how an item was rated, `hides_rated_items` to True when it takes "not rated" as an input,
    so that its users report every item of the catalogue, `compares_ratings` to True when what is sent
    about a rating depends on the user's others, so that only a promise per user is possible,
    `reports_profiles` to True as well when what is sent is about a whole profile and hides which items it
    holds, and `composes` to False when the draws about a user cannot share a budget by composition.
    """

    kind: str = ""
    private: ClassVar[bool] = True
    sends_values: ClassVar[bool] = True
    hides_rated_items: ClassVar[bool] = False
    compares_ratings: ClassVar[bool] = False
    reports_profiles: ClassVar[bool] = False
    composes: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Have every channel refuse what is no budget: its formula may divide by it, or ignore its sign."""
        super().__init_subclass__(**options)
        if "channel" in cls.__dict__:
            cls.channel = _with_checked_budget(cls.channel)  # type: ignore[method-assign]

    @abstractmethod
    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel for one rating (or one cell) at a budget.

        Parameters
        ----------
        scale : RatingScale
            The levels that are the channel's inputs.
        epsilon : float
            Budget per rating, above 0; infinite for a mechanism that is not private.

        Raises
        ------
        InputError
            When the budget is not above 0.
        """

    def perturb(
        self,
        ratings: ArrayLike,
        epsilon: float = math.inf,
        rng: np.random.Generator | int | None = None,
        *,
        scale: RatingScale = _STARS,
    ) -> NDArray[np.float64]:
        """Send ratings through the mechanism, as devices would, and read what arrives.

        Parameters
        ----------
        ratings : array_like
            True ratings, of any shape. NaN is "not rated": it stays NaN, unless the mechanism hides which
            items were rated, which perturbs it too.
        epsilon : float
            Budget per rating, or per cell if the mechanism hides which items were rated; above 0.
        rng : Generator or int, optional
            A generator or its seed; by default the noise is different each time.
        scale : RatingScale
            The public scale of the ratings, by default 1 to 5 in steps of 1. It is never taken from the
            ratings, which it would reveal. On a continuous scale, ratings are rounded to its levels first.

        Returns
        -------
        ndarray of float64, shape of `ratings`
            For each rating, the number that the published decoder reads from the symbol sent: it may lie
            outside the scale or be NaN ("not rated"), and its mean is the true rating plus
            ``channel(scale, epsilon).bias()``.

        Raises
        ------
        InputError
            When the budget is not above 0, a rating is not on the scale, or a report depends on a user's
            other ratings.
        """
        if self.compares_ratings:
            found = f"{self.kind}, whose reports depend on a user's other ratings"
            raise InputError("perturb", found, "a mechanism that reports each rating alone")
        channel, values = self.channel(scale, epsilon), np.asarray(ratings, dtype=np.float64)
        levels = _levels(values, scale)
        sent = (levels > 0) | channel.hides_rated_items
        words = np.random.default_rng(rng).integers(2**64, size=int(sent.sum()), dtype=np.uint64)
        read = np.full(values.shape, np.nan)
        read[sent] = channel.values[channel.sample(levels[sent], words)]
        return read


def _levels(ratings: NDArray[np.float64], scale: RatingScale) -> NDArray[np.uint8]:
    """Return the level of each rating; 0 for NaN."""
    rated = ~np.isnan(ratings)
    wrong = ratings[rated][~scale.accepts(ratings[rated])]
    if wrong.size:
        accepted = f"{scale.describe()}, or another scale, as scale=RatingScale.evenly(LOW, HIGH, STEP)"
        raise InputError("ratings", f"{wrong[0]:g}", accepted)
    levels = np.zeros(ratings.shape, dtype=np.uint8)
    levels[rated] = scale.level_of(ratings[rated])
    return levels


def _with_checked_budget(channel: Callable[..., Channel]) -> Callable[..., Channel]:
    @functools.wraps(channel)
    def checked(self: Mechanism, scale: RatingScale, epsilon: float) -> Channel:
        if not epsilon > 0:
            raise InputError("epsilon", f"{epsilon:g}", "a number above 0")
        try:
            return channel(self, scale, epsilon)
        except InputError:
            raise
        except ValueError as error:
            accepted = "rows that are distributions and together lose at most epsilon"
            raise InputError(self.kind, f"no channel at epsilon {epsilon:g}: {error}", accepted) from error

    return checked
