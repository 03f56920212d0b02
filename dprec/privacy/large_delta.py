"""The warning about a delta that is too large to mean much."""

from __future__ import annotations


def note_on_delta(delta: float, users: int) -> str | None:
    """Return a warning with the reason if delta is above one in the number of users; otherwise None."""
    if delta * users <= 1:
        return None
    return (
        f"Delta = {delta:g} is above one in {users:,} users: to publish {delta * users:,.3g} of the profiles "
        "in full, drawn at random, would be within it."
    )
