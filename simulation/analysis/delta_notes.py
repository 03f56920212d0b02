"""What a comparison says of a delta that its populations are too large for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dprec.privacy.large_delta import note_on_delta
from simulation.analysis.protocol_results import ProtocolResult


def notes_on_delta(delta: float, results: Sequence[ProtocolResult]) -> Iterator[str]:
    """Warn where the delta of a comparison is above one in the number of users of its largest population."""
    users = [count for result in results if (count := result.mean("users")) is not None]
    if users and (note := note_on_delta(delta, round(max(users)))):
        yield note
