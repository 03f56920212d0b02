"""Simulated faults: devices that never answer, answer too late or send damaged reports."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.components import Options, option
from dprec.errors import SettingError
from dprec.randomness import categories, uniforms, words

ABSENT, LATE, DAMAGED, PUNCTUAL = 0, 1, 2, 3
"""The fates of a reply."""


@dataclass(frozen=True, kw_only=True)
class FaultOptions(Options):
    """Shares of the asked users whose reply goes wrong, drawn separately for each user and round."""

    dropout: float = option("Share that never answers.", 0.0, ge=0, le=1)
    straggle: float = option("Share that answers after the round has ended.", 0.0, ge=0, le=1)
    corrupt: float = option("Share whose report is damaged in transit.", 0.0, ge=0, le=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.dropout + self.straggle + self.corrupt
        if total > 1:
            raise SettingError("", f"shares that add up to {total:g}", "at most 1 in total")


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
