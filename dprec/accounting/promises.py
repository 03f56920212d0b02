"""What is promised: units of privacy loss, budgets, and the guarantee of a protocol."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dprec.accounting.pld import largest_share
from dprec.channel import Channel
from dprec.components import Options, option
from dprec.errors import SettingError
from dprec.randomness import even_share

PrivacyUnit = Literal["rating", "cell", "user"]
"""What two neighbouring profiles differ in, for a loss.

``rating``: the value of one rating; both profiles hold the same items. ``cell``: one (user, item)
entry, rated or not. ``user``: everything that a user sends.
"""

ComparableUnit = Literal["rating", "user"]
"""The units in which every protocol has a loss, so that protocols can be compared.

If a mechanism hides which items are rated, the loss of a rating is that of a cell.
"""

COMPARABLE_UNITS: tuple[ComparableUnit, ...] = get_args(ComparableUnit)

UNITS_IN_WORDS: dict[PrivacyUnit, str] = {
    "rating": "for the value of one rating",
    "cell": "for one entry, rated or not",
    "user": "for everything that a user sends",
}

_SPELLINGS = {"per-rating": "rating", "per-user": "user"}


def unit_from_text(text: Any) -> Any:
    """Return a unit by its usual name, or as "per-rating" or "per-user"; anything else as it is."""
    return _SPELLINGS.get(text, text) if isinstance(text, str) else text


LARGEST_CELL_EPSILON = 20.0
"""Largest loss of one cell for which integer weights out of 2**60 keep the ratios that epsilon requires."""

DELTA = 1e-6
"""Default: less than one in the number of users of any data set here."""

SMALLEST_DELTA, LARGEST_DELTA = 1e-9, 0.1
"""Range of delta: what floating-point numbers can tell from 0, and what is still small."""


@dataclass(frozen=True, kw_only=True)
class PrivacyBudget(Options):
    """What is guaranteed: epsilon, and for what; see `PrivacyUnit`."""

    epsilon: float = option("Privacy loss, in natural logarithms.", gt=0)
    per: PrivacyUnit = option("What the loss is guaranteed for.", "rating")
    composition: Literal["sum", "pld"] = option(
        "How the draws about a user share a budget per user: by the sum of their losses, or by their privacy "
        "loss distributions, so that (epsilon, delta) holds.",
        "sum",
    )
    delta: float = option(
        "Probability beyond which composed losses hold; sums hold without.",
        DELTA,
        ge=SMALLEST_DELTA,
        le=LARGEST_DELTA,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.composition == "pld" and self.per != "user":
            accepted = "'sum', or per: user, which is what draws are composed for"
            raise SettingError("composition", f"'pld' per {self.per}", accepted)

    def share(
        self,
        channel: Callable[[float], Channel],
        draws: int,
        *,
        most: float = math.inf,
        guess: float | None = None,
    ) -> float:
        """Return the budget of each of a user's draws, at most ``most``; see `largest_share`."""
        if self.composition == "sum":
            return min(even_share(self.epsilon, draws), most)
        return largest_share(channel, draws, self.epsilon, self.delta, most=most, guess=guess)


@dataclass(frozen=True)
class MatchedBudget:
    """A budget in a unit that all protocols share."""

    epsilon: float
    """Above 0."""
    unit: ComparableUnit = "rating"
    delta: float | None = None
    """Probability beyond which epsilon holds; per user only. A protocol whose draws about a user compose
    keeps to (epsilon, delta), and any other to the sum of its losses, which holds at every delta. By default,
    each protocol composes as it is configured.
    """


def note_on_delta(delta: float, users: int) -> str | None:
    """Return a warning with the reason if delta is above one in the number of users; otherwise None."""
    if delta * users <= 1:
        return None
    return (
        f"Delta = {delta:g} is above one in {users:,} users: to publish {delta * users:,.3g} of the profiles "
        "in full, drawn at random, would be within it."
    )


Status = Literal["proved", "claimed", "declared", "none"]
"""How far a promise carries.

``proved``: the epsilon of the ledger holds by a theorem, for the numbers that are drawn. ``claimed``: a
paper claims an epsilon, and something is missing from its proof. ``declared``: a class from outside this
distribution says so, and nothing here follows its code. ``none``: nothing is promised.
"""

Trust = Literal["central", "secure-aggregation", "shuffle", "local"]
"""Whom users trust with true ratings: the server, one that adds up or shuffles reports, or nobody."""

LEAST_TRUST_FIRST: tuple[Trust, ...] = ("local", "shuffle", "secure-aggregation", "central")
"""Who trusts one of these can take part in what needs any before it."""

_OPENINGS: dict[Status, str] = {
    "proved": "Proved",
    "claimed": "Claimed, not proved",
    "declared": "Declared, not proved",
    "none": "No privacy",
}


@dataclass(frozen=True)
class Guarantee:
    """What a protocol promises to everybody who takes part in it."""

    status: Status
    """Of what was asked for. The ledger holds what is proved in any case."""
    trust: Trust
    hides_rated_items: bool
    """Whether it stays hidden which items a user rated."""
    reason: str
    """The theorem, or what is missing from one: what follows a colon, to its full stop."""
    notes: tuple[str, ...] = ()
    """What else a reader of the figures must know about the guarantee."""
    unlinked: bool = False
    """Whether the server can tell of nothing that it sees whose it is, or what else is of the same user."""

    @property
    def trusts_server(self) -> bool:
        """Whether the server sees true ratings."""
        return self.trust == "central"

    @property
    def statements(self) -> tuple[str, ...]:
        """The status with its reason, and the notes."""
        return (f"{_OPENINGS[self.status]}: {self.reason}", *self.notes)
