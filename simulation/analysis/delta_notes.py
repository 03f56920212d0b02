"""What a comparison says of a delta that its populations are too large for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dprec.accounting import note_on_delta
from simulation.analysis.settings import Setting


def notes_on_delta(delta: float, settings: Sequence[Setting]) -> Iterator[str]:
    """Warn where the delta of a comparison is above one in the number of users of its largest population.

    Parameters
    ----------
    delta : float
    settings : sequence of Setting
    """
    users = [count for setting in settings if (count := setting.mean("users")) is not None]
    if users and (note := note_on_delta(delta, round(max(users)))):
        yield note
