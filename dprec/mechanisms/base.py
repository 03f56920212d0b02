"""What every mechanism is: a recipe for a channel, given a rating scale and a privacy budget."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from dprec.mechanisms.channel import Channel
from dprec.options import Options
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class Mechanism(Options):
    """Base of the local mechanisms.

    A subclass sets `private` to False when it takes no budget, `sends_values` to False when nothing that is
    sent depends on how an item was rated, `hides_rated_items` to True when it takes "not rated" as an input,
    so that its users report every item of the catalogue, and `compares_ratings` to True when what is sent
    about a rating depends on the user's others, so that only a promise per user is possible.
    """

    kind: str = ""
    private: ClassVar[bool] = True
    sends_values: ClassVar[bool] = True
    hides_rated_items: ClassVar[bool] = False
    compares_ratings: ClassVar[bool] = False

    @abstractmethod
    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel for one rating (or one cell) at a budget.

        Parameters
        ----------
        scale : RatingScale
            The levels that are the channel's inputs.
        epsilon : float
            Budget per rating, above 0; infinite for a mechanism that is not private.
        """
