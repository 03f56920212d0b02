"""Budgets of one's own: who chooses which epsilon, and who refuses.

A user's choice is public: a report begins with it, and silence is a refusal. Choices that go with tastes say
something about tastes, which no epsilon covers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, core_schema
from scipy.special import ndtri

from dprec.accounting.accountant import LARGEST_CELL_EPSILON, PrivacyBudget
from dprec.arrays import Floats, Ints, Uint8s
from dprec.components import Options, as_tuple, as_values, option, parse_json
from dprec.errors import SettingError, shown
from dprec.randomness import generator

_MOST = 10
"""Different epsilons; each has a digit."""

_ROUNDING = 1e-6
"""By how much shares may miss 1 together."""

ACCEPTED_SHARES = "shares of the users by epsilon, such as {0: .2, 1: .8}: 0 is a refusal"


@dataclass(frozen=True, kw_only=True)
class BudgetChoice(Options):
    """What users' choices go with."""

    by: Literal["activity", "taste"] = option("Their number of ratings, or their mean rating.")
    strength: float = option(
        "Correlation with it: at 1, those who rate most, or highest, choose the largest epsilons; at -1, "
        "those who rate least, or lowest.",
        1.0,
        ge=-1,
        le=1,
    )


@dataclass(frozen=True, kw_only=True)
class OwnBudgets(PrivacyBudget):
    """Budgets that users choose for themselves; `epsilon` is the largest, which nobody's loss exceeds.

    In a file, ``epsilon`` has the share of the users who choose each; 0 is a refusal.
    """

    own: ClassVar[bool] = True
    shares: Annotated[tuple[tuple[float, float], ...], BeforeValidator(as_tuple)] = option(
        "Each epsilon, ascending, with the share of the users who choose it."
    )
    choice: BudgetChoice | None = option("What the choices go with; by default, nothing.", None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per != "rating":
            raise SettingError("per", f"{self.per!r}, with budgets of one's own", "'rating'")
        epsilons, shares = self.epsilons, [share for _, share in self.shares]
        if not 1 <= len(epsilons) <= _MOST or list(epsilons) != sorted(set(epsilons)):
            raise SettingError("epsilon", f"{len(epsilons)} epsilons", f"1 to {_MOST} different ones")
        if epsilons[0] < 0 or not 0 < epsilons[-1] <= LARGEST_CELL_EPSILON:
            found = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
            accepted = f"0 for a refusal, and others up to {LARGEST_CELL_EPSILON:g}"
            raise SettingError("epsilon", found, accepted)
        if min(shares) <= 0:
            raise SettingError("epsilon", f"a share of {min(shares):g}", "shares above 0, of 1")
        if abs(sum(shares) - 1) > _ROUNDING:
            raise SettingError("epsilon", f"shares that add up to {sum(shares):g}", "shares above 0, of 1")
        if self.epsilon != epsilons[-1]:
            raise SettingError("epsilon", f"{self.epsilon:g}", f"{epsilons[-1]:g}, the largest")

    @classmethod
    def of(cls, shares: Mapping[Any, float], **settings: Any) -> OwnBudgets:
        """Return the budgets of a mapping from epsilons to shares; raises SettingError for another."""
        try:
            pairs = sorted((float(epsilon), float(share)) for epsilon, share in shares.items())
        except (TypeError, ValueError):
            pairs = [(np.nan, np.nan)]
        if not np.isfinite(pairs).all():
            raise SettingError("epsilon", shown(repr(dict(shares))), ACCEPTED_SHARES)
        if not pairs:
            raise SettingError("epsilon", "no shares", ACCEPTED_SHARES)
        return cls(epsilon=pairs[-1][0], shares=tuple(pairs), **settings)

    def entries(self) -> dict[str, Any]:
        """Return the settings as a file has them."""
        shares = {f"{epsilon:.15g}": share for epsilon, share in self.shares}
        return {"epsilon": shares, "per": self.per, "choice": self.choice}

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilon of each number that a report can begin with; a refusal has one, and sends none."""
        return tuple(epsilon for epsilon, _ in self.shares)

    def scaled(self, factor: float) -> OwnBudgets:
        """Return budgets that are so many times as large."""
        shares = {factor * epsilon: share for epsilon, share in self.shares}
        return OwnBudgets.of(shares, per=self.per, choice=self.choice)

    def alone(self) -> tuple[OwnBudgets, ...]:
        """Return, for each epsilon but a refusal, budgets of people who all choose it."""
        return tuple(OwnBudgets.of({epsilon: 1.0}) for epsilon in self.epsilons if epsilon)

    def chosen(self, counts: Ints, means: Floats, seed: int) -> Uint8s:
        """Return the number of every user's epsilon: exact shares, in an order that is drawn.

        Parameters
        ----------
        counts, means : ndarray, shape (users,)
            Ratings of each user, and their mean; NaN without any. Read if choices go with them.
        seed : int

        Returns
        -------
        ndarray of uint8, shape (users,)
        """
        drawn = generator(seed, "budgets").standard_normal(counts.size)
        if self.choice is not None:
            of = counts.astype(np.float64) if self.choice.by == "activity" else means
            own, strength = _normal_scores(of), self.choice.strength
            drawn = strength * own + np.sqrt(1 - strength**2) * drawn
        ends = np.rint(np.cumsum([share for _, share in self.shares]) * counts.size)
        numbers = np.empty(counts.size, dtype=np.uint8)
        numbers[np.argsort(drawn, kind="stable")] = np.searchsorted(
            ends[:-1], np.arange(counts.size), side="right"
        )
        return numbers


def _normal_scores(values: Floats) -> Floats:
    """Return the normal quantile of every value's rank; 0 for NaN."""
    scores, known = np.zeros(values.size), np.flatnonzero(~np.isnan(values))
    ranks = np.argsort(np.argsort(values[known], kind="stable"), kind="stable")
    scores[known] = ndtri((ranks + 0.5) / max(1, known.size))
    return scores


@dataclass(frozen=True, kw_only=True)
class _Written(Options):
    """Budgets of one's own as a file has them."""

    epsilon: dict[str, float] = option(f"{ACCEPTED_SHARES}.")
    per: Literal["rating"] = option("What the losses are guaranteed for.", "rating")
    choice: BudgetChoice | None = option("What the choices go with; by default, nothing.", None)


class _SharesOrOne:
    """How pydantic reads a budget whose epsilon may be a mapping, and writes it."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(as_values, when_used="json")
        return core_schema.no_info_wrap_validator_function(_read, handler(source), serialization=written)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), handler(TypeAdapter(_Written).core_schema)]}


def _read(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    if not (isinstance(value, Mapping) and isinstance(value.get("epsilon"), Mapping)):
        return validate(value)
    written = parse_json(_Written, json.dumps(dict(value)))
    return OwnBudgets.of(written.epsilon, choice=written.choice)


if TYPE_CHECKING:
    AnyBudget = PrivacyBudget
else:
    AnyBudget = Annotated[PrivacyBudget, _SharesOrOne()]
