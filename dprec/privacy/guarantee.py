"""What a protocol promises: whether it is proved, whom it leaves users to trust, and what stays hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
