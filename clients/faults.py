"""Simulated faults: devices that never answer, answer too late or send damaged reports.

They are drawn, or are those of a deployment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Bools, Pieces
from dprec.components import Options, option
from dprec.errors import SettingError
from dprec.randomness import categories, uniforms, words

ABSENT, LATE, DAMAGED, PUNCTUAL = 0, 1, 2, 3
"""The fates of a reply."""

NOT_ASKED = 4
"""Absent, and nothing was sent: a device of a deployment that was not online in a round."""


@dataclass(frozen=True, kw_only=True)
class FaultOptions(Options):
    """Shares of the asked users whose reply goes wrong, drawn separately for each user and round."""

    dropout: float = option("Share that never answers.", 0.0, ge=0, le=1)
    straggle: float = option("Share that answers after the round has ended.", 0.0, ge=0, le=1)
    corrupt: float = option("Share whose report is damaged in transit.", 0.0, ge=0, le=1)
    attendance: str | None = option(
        "Run directory of a deployment, whose users answer as they did there; in place of shares.", None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.dropout + self.straggle + self.corrupt
        if total > 1:
            raise SettingError("", f"shares that add up to {total:g}", "at most 1 in total")
        if self.attendance is not None and total:
            raise SettingError("attendance", "shares of faults beside it", "one of the two")


@dataclass(frozen=True, eq=False)
class Attendance:
    """Who answered in which round of a deployment."""

    fates: NDArray[np.int8]
    """`ABSENT`, `LATE`, `PUNCTUAL` or `NOT_ASKED`, shape (rounds, users); later, all are absent."""

    @classmethod
    def of(cls, rows: Sequence[str], users: int) -> Self:
        """Read the rows that `rows` wrote; raises ValueError when they are others."""
        fates = np.array([[int(fate) for fate in row] for row in rows], dtype=np.int8).reshape(-1, users)
        if not np.isin(fates, (ABSENT, LATE, PUNCTUAL, NOT_ASKED)).all():
            raise ValueError("fates that no deployment has")
        return cls(fates)

    def rows(self) -> tuple[str, ...]:
        """Return a row for each round, a digit for each user."""
        return tuple("".join(map(str, row)) for row in self.fates.tolist())

    def of_round(self, round_index: int, first_user: int, users: int) -> NDArray[np.int8]:
        """Return the fates of consecutive users; see `fates`."""
        if round_index > len(self.fates):
            return np.full(users, ABSENT, dtype=np.int8)
        round_fates = self.fates[round_index - 1, first_user : first_user + users]
        return np.where(round_fates == NOT_ASKED, np.int8(ABSENT), round_fates)

    @property
    def never_asked(self) -> Bools:
        """Who was asked in no round, shape (users,)."""
        asked: Bools = np.any(self.fates != NOT_ASKED, axis=0)
        return ~asked


def fates(
    options: FaultOptions, seed: int, round_index: int, first_user: int, users: int
) -> NDArray[np.int8]:
    """Draw the fates of consecutive users: `ABSENT`, `LATE`, `DAMAGED` or `PUNCTUAL`, shape (users,)."""
    draws = uniforms(words(seed, "faults", first_user, users, round_index=round_index))
    shares = np.cumsum([options.dropout, options.straggle, options.corrupt])
    return categories(shares, draws).astype(np.int8)


def damaged(report: bytes) -> bytes:
    """Return a report with a stray byte appended, as a broken encoder might send it."""
    return report + b"\xff"


@dataclass(frozen=True, eq=False)
class UserReplies:
    """What becomes of the reports of consecutive users."""

    asked: Bools
    """Who is asked; shape (users,)."""
    fates: NDArray[np.int8]
    """`ABSENT`, `LATE`, `DAMAGED` or `PUNCTUAL`, also of the others; shape (users,)."""

    def of(self, users: slice) -> Self:
        """Return those of some of the users."""
        return type(self)(self.asked[users], self.fates[users])

    def have(self, *fates: int) -> Bools:
        """Return which of those who are asked have one of some fates, shape (asked,)."""
        return np.isin(self.fates[self.asked], fates)

    def arriving(self, reports: Sequence[bytes]) -> Pieces:
        """Return the reports of those who are asked as they arrive: of who is absent, an empty one."""
        sent = Pieces.of(reports).chosen(np.flatnonzero(self.asked))
        if not self.have(ABSENT, DAMAGED).any():
            return sent
        after = {ABSENT: lambda report: b"", DAMAGED: damaged}
        with_fates = zip(sent, self.fates[self.asked].tolist(), strict=True)
        return Pieces.of([after[fate](report) if fate in after else report for report, fate in with_fates])
