"""The words that tables, pages and advice share."""

from __future__ import annotations

from collections.abc import Iterable

from dprec.privacy.guarantee import Trust
from dprec.privacy.units import PrivacyUnit

TRUST_IN_WORDS: dict[Trust, str] = {
    "central": "the server is trusted",
    "secure-aggregation": "whoever adds up is trusted",
    "shuffle": "whoever shuffles is trusted",
    "local": "nobody is trusted",
}


def server_sees(
    *,
    trust: Trust,
    hides_rated_items: bool,
    unlinked: bool,
    sends: bool,
    spends: bool,
    declared: bool = False,
) -> str:
    """Return what the server learns directly from devices that send anything, and spend privacy on values.

    What code from outside sends, which declares its own loss, nobody knows. Where devices predict, all of
    them are sent what the server makes of it: the notes of a run say what.
    """
    if declared or not sends:
        return "what own code sends" if sends else "nothing"
    if trust == "central":
        return "true ratings"
    if trust == "secure-aggregation":
        return "noisy sums only" if hides_rated_items else "sums without noise"
    if not spends:
        return "rated items only"
    if hides_rated_items:
        return "noise only"
    return "items and noise, not whose" if unlinked else "rated items, noise"


def profiles_compared(epsilon: float | None, *, hides_rated_items: bool, link: str = ", ") -> str:
    """Return what qualifies a loss per user: where rated items are seen, it is for profiles of the same ones.

    Parameters
    ----------
    epsilon : float or None
        The loss; without one there is nothing to qualify.
    hides_rated_items : bool
        Of the protocol.
    link : str
        What goes before the words.
    """
    return "" if hides_rated_items or epsilon is None else f"{link}same items"


def loss_per(unit: PrivacyUnit) -> str:
    """Name the privacy loss in a unit."""
    return f"ε per {unit}"


QUICK_IN_WORDS = (
    "only the first seed and fold and the middle ε of the comparison were run, so nothing here is averaged; "
    "without --quick, all are."
)
"""What a quick comparison is."""


def plural(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def listed(words: Iterable[str]) -> str:
    """Join words with commas and a final "and"."""
    *others, last = [*words] or [""]
    return f"{', '.join(others)} and {last}" if others else last
