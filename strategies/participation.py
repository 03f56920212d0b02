"""Who takes part in a round, and what is kept of it.

Which users are asked depends on the seed and the user's number, never on the nodes. The configuration needs
this module, so it knows nothing of Flower.
"""

from dataclasses import dataclass, field, replace
from typing import Self

from dprec.arrays import Bools
from dprec.components import Options, option
from dprec.errors import RunError, SettingError
from dprec.randomness import subset, words


@dataclass(frozen=True, kw_only=True)
class SamplingOptions(Options):
    """Which users are asked in a round; everybody by default."""

    fraction: float | None = option(
        "Share of the users, drawn again each round.",
        None,
        published=None,
        source="shin2018, Algorithm 1",
        gt=0,
        le=1,
    )
    count: int | None = option(
        "Number of users, drawn again each round.",
        None,
        published=None,
        source="shin2018, Algorithm 1",
        ge=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fraction is not None and self.count is not None:
            raise SettingError("", "a fraction and a count", "one of the two")

    def size(self, n_users: int) -> int:
        """Return how many of the users are asked; raises SettingError for nobody, or more than there are."""
        wanted = n_users if self.count is None else self.count
        if self.fraction is not None:
            wanted = round(self.fraction * n_users)
        if not 1 <= wanted <= n_users:
            key = "count" if self.count is not None else "fraction"
            selection = f"{getattr(self, key)} selects {wanted} of {n_users} users"
            raise SettingError(key, selection, "a value that selects at least one user and at most all")
        return wanted

    def draw(self, n_users: int, seed: int, round_index: int) -> Bools:
        """Return whether each user is asked in a round, shape (users,)."""
        return subset(self.size(n_users), words(seed, "sampling", 0, n_users, round_index=round_index))


@dataclass(frozen=True)
class RoundRecord:
    """One round of a protocol."""

    round: int
    """From 1."""
    replies: int
    failures: int
    """Users whose report was accepted, and users who were asked but had none accepted."""
    accuracy: dict[str, float | None] | None
    """Only if the round was evaluated."""
    uplink_payload_bytes: int
    uplink_message_bytes: int
    downlink_payload_bytes: int
    downlink_message_bytes: int
    """Sums over the users, for this round alone."""
    seconds: float
    causes: dict[str, int] = field(default_factory=dict)
    """Why the failures failed: how many were absent, late or malformed, or why devices refused."""

    def with_traffic(self, more: dict[str, int]) -> Self:
        """Return the record with bytes added to it, under the names of the fields."""
        return replace(self, **{name: getattr(self, name) + more[name] for name in more})


class NoReportError(RunError):
    """Nobody sent a report that can be used; ``record`` says why."""

    def __init__(self, text: str, record: RoundRecord) -> None:
        super().__init__(text)
        self.record = record

    def __reduce__(self) -> tuple[type[Self], tuple[str, RoundRecord]]:
        """Return what another process makes the error of."""
        return type(self), (str(self), self.record)
