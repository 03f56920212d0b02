"""Budgets of one's own: who chooses which epsilon, and who refuses, by shares or by a column about users.

A user's choice is public: a report begins with it, and silence is a refusal. Choices that go with tastes say
something about tastes, which no epsilon covers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, PlainSerializer, PlainValidator, StringConstraints

from dprec.accounting.accountant import LARGEST_CELL_EPSILON, PrivacyBudget
from dprec.arrays import Floats, Ints, Uint8s
from dprec.components import Options, as_tuple, as_values, option, read
from dprec.errors import SettingError, shown
from dprec.randomness import generator

if TYPE_CHECKING:
    from dprec.catalogue import UsersTable

_MOST = 10
"""Different epsilons; each has a digit."""

_NUMBER = re.compile(r"\s*|[-+]?(\d[\d_.]*|\.\d+)(e[-+]?\d+)?|[-+]?\.?(nan|inf(inity)?)", re.IGNORECASE)
"""A text that names no column: it was meant as a number."""

_SAMPLED_AT = (
    "Epsilon at which all reports are made, on ratings that take part by their users' own; by default, all "
    "ratings are reported, at the user's own."
)

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

    In a file, ``epsilon`` has the share of the users who choose each, 0 being a refusal; or it names a column
    of the users' table. Until the table has been read (`of_users`), nobody has an epsilon, and `shares` stand
    for none.
    """

    own: ClassVar[bool] = True
    shares: Annotated[tuple[tuple[float, float], ...], BeforeValidator(as_tuple)] = option(
        "Each epsilon, ascending, with the share of the users who choose it."
    )
    choice: BudgetChoice | None = option("What the choices go with; by default, nothing.", None)
    sampled_at: float | None = option(_SAMPLED_AT, None)  # type: ignore[misc]
    column: str | None = option("Name of a column that has the epsilons.", None)  # type: ignore[misc]
    assigned: Annotated[str, StringConstraints(pattern="^[0-9]*$")] = option(
        "The number of each user's epsilon in a column, a digit each; empty until it has been read.", ""
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampled_at is not None and not self.epsilon <= self.sampled_at <= LARGEST_CELL_EPSILON:
            accepted = f"from {self.epsilon:g}, the largest epsilon, to {LARGEST_CELL_EPSILON:g}"
            raise SettingError("sampled_at", f"{self.sampled_at:g}", accepted)
        if self.per != "rating":
            raise SettingError("per", f"{self.per!r}, with budgets of one's own", "'rating'")
        epsilons, shares = self.epsilons, [share for _, share in self.shares]
        if not 1 <= len(epsilons) <= _MOST or list(epsilons) != sorted(set(epsilons)):
            raise SettingError("epsilon", f"{len(epsilons)} epsilons", f"1 to {_MOST} different ones")
        if epsilons[0] < 0 or not 0 < epsilons[-1] <= LARGEST_CELL_EPSILON:
            found = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
            accepted = f"0 for a refusal, and others up to {LARGEST_CELL_EPSILON:g}"
            raise SettingError("epsilon", found, accepted)
        if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
            smallest, total = min(shares), sum(shares)
            found = f"a share of {smallest:g}" if smallest <= 0 else f"shares that add up to {total:g}"
            raise SettingError("epsilon", found, "shares above 0, of 1")
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

    @classmethod
    def named(cls, column: str) -> OwnBudgets:
        """Return the budgets of a column that has not been read."""
        return cls(column=column, epsilon=1.0, shares=((1.0, 1.0),))

    def entries(self) -> dict[str, Any]:
        """Return the settings as a file has them."""
        if self.column is not None:
            return {"epsilon": self.column, "per": self.per}
        shares = {np.format_float_positional(epsilon, trim="-"): share for epsilon, share in self.shares}
        sampled = {} if self.sampled_at is None else {"sampled_at": self.sampled_at}
        return {"epsilon": shares, "per": self.per, "choice": self.choice, **sampled}

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilon of each number that a report can begin with; a refusal has one, and sends none."""
        return tuple(epsilon for epsilon, _ in self.shares)

    @property
    def in_words(self) -> tuple[str, ...]:
        """Where the epsilons are, if in a column, and who has which, if that is known."""
        choices = ", ".join(
            f"{100 * share:.3g} % {f'have epsilon {epsilon:g}' if epsilon else 'refuse'}"
            for epsilon, share in self.shares
        )
        if self.column is None:
            return (f"Of the users, {choices}.",)
        where = f"Epsilons are those of column {self.column!r} of the users' table"
        if not self.assigned:
            return (f"{where}, which has not been read: what a device sends is told at epsilon 1.",)
        return (f"{where}.", f"Of the users, {choices}.")

    @property
    def installed(self) -> OwnBudgets:
        """The epsilons with their shares alone, once they are known."""
        return OwnBudgets.of(dict(self.shares)) if self.assigned else self

    @property
    def unsampled(self) -> OwnBudgets:
        """The same budgets where every rating takes part."""
        return replace(self, sampled_at=None)

    def scaled(self, factor: float) -> OwnBudgets:
        """Return budgets that are so many times as large."""
        shares = tuple((factor * epsilon, share) for epsilon, share in self.shares)
        sampled_at = None if self.sampled_at is None else factor * self.sampled_at
        return replace(self, epsilon=factor * self.epsilon, shares=shares, sampled_at=sampled_at)

    def alone(self) -> tuple[OwnBudgets, ...]:
        """Return, for each epsilon but a refusal, budgets of people who all choose it."""
        unrefused = filter(None, self.epsilons)
        return tuple(OwnBudgets.of({epsilon: 1.0}, sampled_at=self.sampled_at) for epsilon in unrefused)

    def of_users(self, users: UsersTable | None) -> OwnBudgets:
        """Return the budgets of the users of a table, in its order; raises SettingError for what is none."""
        if self.column is None:
            return self
        if users is None:
            accepted = "a number, shares, or a column of a file that dataset.users names"
            found = f"{self.column!r}, and no data about users with such a column"
            raise SettingError("epsilon", found, accepted)
        try:
            values = users.column(self.column)
        except SettingError as error:
            raise SettingError("epsilon", error.found, f"a number, shares, or {error.accepted}") from None
        if values.dtype.kind == "f":
            missing, wrong = np.isnan(values), values[(values < 0) | np.isinf(values)]
        else:
            missing = values == ""
            wrong = np.array([text for text in values.tolist() if text and not _is_epsilon(text)])
        if missing.any() or wrong.size:
            found = f"none for {np.count_nonzero(missing):,} of {values.size:,} users"
            if wrong.size:
                found = shown(repr(wrong[0].item()))
            accepted = "a number for every user, 0 or above: 0 is a refusal"
            raise SettingError("epsilon", f"{found} in column {self.column!r}", accepted)
        levels, numbers = np.unique(np.abs(values), return_inverse=True)  # -0 is 0
        if levels.size > _MOST:
            found = f"{levels.size:,} different epsilons in column {self.column!r}"
            raise SettingError("epsilon", found, f"1 to {_MOST} different ones")
        shares = (np.bincount(numbers) / numbers.size).tolist()
        pairs = tuple(zip(levels.tolist(), shares, strict=True))
        assigned = "".join(map(str, numbers.tolist()))
        return replace(self, epsilon=pairs[-1][0], shares=pairs, assigned=assigned)

    def chosen(self, counts: Ints, means: Floats, seed: int) -> Uint8s:
        """Return the number of every user's epsilon: as the column has it, or exact shares in a drawn order.

        Parameters
        ----------
        counts, means : ndarray, shape (users,)
            Ratings of each user, and their mean; NaN without any. Read if choices go with them.
        seed : int

        Returns
        -------
        ndarray of uint8, shape (users,)
        """
        if self.column is not None:
            if len(self.assigned) != counts.size:
                raise ValueError(f"epsilons of {len(self.assigned)} users, for {counts.size}")
            return np.frombuffer(self.assigned.encode(), dtype=np.uint8) - ord("0")
        scores = generator(seed, "budgets").standard_normal(counts.size)
        if self.choice is not None:
            from scipy.special import ndtri

            trait = counts.astype(np.float64) if self.choice.by == "activity" else means
            # The normal quantile of every value's rank; 0 for NaN.
            quantiles, present = np.zeros(trait.size), np.flatnonzero(~np.isnan(trait))
            ranks = np.argsort(np.argsort(trait[present], kind="stable"), kind="stable")
            quantiles[present] = ndtri((ranks + 0.5) / max(1, present.size))
            strength = self.choice.strength
            scores = strength * quantiles + np.sqrt(1 - strength**2) * scores
        ends = np.rint(np.cumsum([share for _, share in self.shares]) * counts.size)
        numbers = np.empty(counts.size, dtype=np.uint8)
        order, places = np.argsort(scores, kind="stable"), np.arange(counts.size)
        numbers[order] = np.searchsorted(ends[:-1], places, side="right")
        return numbers


def _is_epsilon(text: str) -> bool:
    try:
        return 0 <= float(text) < np.inf
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class _Written(Options):
    """Budgets of one's own as a file has them."""

    epsilon: dict[str, float] | str = option(f"{ACCEPTED_SHARES}; or a column of the users' table.")
    per: Literal["rating"] = option("What the losses are guaranteed for.", "rating")
    choice: BudgetChoice | None = option("What the choices go with; by default, nothing.", None)
    sampled_at: float | None = option(_SAMPLED_AT, None)


def _read(value: Any) -> PrivacyBudget:
    """Return a budget as a file has it, whose epsilon may be a mapping or name a column."""
    if isinstance(value, PrivacyBudget):
        return value
    epsilon = value.get("epsilon") if isinstance(value, Mapping) else None
    named = isinstance(epsilon, str) and _NUMBER.fullmatch(epsilon) is None
    if not named and not isinstance(epsilon, Mapping):
        return read(PrivacyBudget, value)
    written = read(_Written, value)
    if not isinstance(written.epsilon, str):
        return OwnBudgets.of(written.epsilon, choice=written.choice, sampled_at=written.sampled_at)
    for key in ("choice", "sampled_at"):
        if getattr(written, key) is not None:
            raise SettingError(key, shown(repr(as_values(getattr(written, key)))), "null, with a column")
    return OwnBudgets.named(written.epsilon)


if TYPE_CHECKING:
    AnyBudget = PrivacyBudget
else:
    AnyBudget = Annotated[
        PrivacyBudget,
        PlainValidator(_read, json_schema_input_type=PrivacyBudget | _Written),
        PlainSerializer(as_values, when_used="json"),
    ]
