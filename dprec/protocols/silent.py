"""Protocols of which nothing is sent: every device predicts for its user by itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from dprec.accounting import Guarantee, MatchedBudget
from dprec.catalogue import Catalogue
from dprec.errors import SettingError
from dprec.predictions import Predict, PredictRows
from dprec.protocols.base import Protocol, Public
from dprec.ratings import Ratings


@dataclass(frozen=True, eq=False)
class Alone:
    """What devices predict by themselves."""

    predict: Predict
    """From arrays of users and items to ratings, or to what lists are ranked by."""
    predict_rows: PredictRows | None = None
    """The same of all items of users, where that is cheaper than cell by cell."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures must know."""
    diagnostics: dict[str, Any] = field(default_factory=dict)
    """JSON values about what is predicted."""


@dataclass(frozen=True, kw_only=True)
class SilentProtocol(Protocol):
    """Base of the protocols of which nothing is sent: devices predict alone, and refuse every request."""

    folds_in: ClassVar[bool] = True
    predicts_by: ClassVar[str] = "every device predicts by itself"
    """From what devices predict, in words that end the reason of the guarantee."""

    @abstractmethod
    def alone(self, ratings: Ratings, catalogue: Catalogue | None, public_seed: int) -> Alone:
        """Return what devices predict whose users hold these ratings.

        ``catalogue``: what is public about the items; ``public_seed``: of what is drawn by all alike.
        """

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol as it is: nothing is sent at any budget."""
        return self

    def check(self, train: Any) -> None:
        """Refuse a budget."""
        if self.privacy is not None:
            budget = f"epsilon {self.privacy.epsilon:g}"
            raise SettingError("privacy", budget, "null: nothing is sent, so nothing is spent")

    def influence_of_one(self, train: Ratings) -> float:
        """Return 0: nothing is sent."""
        return 0.0

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise that nothing is learned about anybody."""
        return Guarantee("proved", "local", True, f"nothing is sent; {self.predicts_by}.")

    def sent(self, public: Public, ratings: int) -> None:
        """Return None: nothing is sent."""
