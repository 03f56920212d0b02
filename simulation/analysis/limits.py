"""What may be spent, and who may be trusted, when a protocol is chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dprec.errors import InputError
from dprec.privacy.guarantee import LEAST_TRUST_FIRST, Trust
from dprec.privacy.units import COMPARABLE_UNITS, ComparableUnit
from simulation.analysis.protocol_results import ProtocolResult

_AT_MOST_IN_WORDS: dict[Trust, str] = {
    "local": "with nobody trusted",
    "shuffle": "with nobody trusted but whoever shuffles",
    "secure-aggregation": "without trusting the server",
}
"""What a limit of trust asks for; trusting the server asks for nothing."""


@dataclass(frozen=True)
class AdviceLimits:
    """What may be spent."""

    epsilon: float
    """Largest privacy loss of any user."""
    unit: ComparableUnit
    """Unit of the loss."""
    max_bytes: float
    """Largest mean of the bytes of a user's messages, both directions together."""
    trust: Trust = "central"
    """The most that may be trusted: protocols that need more are left out."""
    hide_items: bool = False
    """Leave out protocols that show which items were rated."""
    claimed: bool = False
    """Count an epsilon that a paper claims like one that is proved; otherwise it bounds nothing."""
    delta: float | None = None
    """Largest delta with which losses per user may be composed; None counts their sum, which needs none."""

    def __post_init__(self) -> None:
        for option, value in (("--epsilon", self.epsilon), ("--max-bytes", self.max_bytes)):
            if not (math.isfinite(value) and value > 0):
                raise InputError(option, repr(value), "a number above 0")
        if self.delta is None:
            return
        if not 0 < self.delta < 1:
            raise InputError("--delta", repr(self.delta), "a number between 0 and 1")
        if self.unit != "user":
            raise InputError("--delta", f"{self.delta:g}, with --per {self.unit}", "--per user")

    def allows(self, result: ProtocolResult) -> bool:
        """Return whether a setting asks for no more trust, and shows no more of the rated items."""
        trusts_more = LEAST_TRUST_FIRST.index(result.trust) > LEAST_TRUST_FIRST.index(self.trust)
        return not trusts_more and (result.flag("hides_rated_items") or not self.hide_items)

    def loss(self, result: ProtocolResult) -> float:
        """Return the loss of a setting that counts; infinite without a bound."""
        counted = counted_loss(result, self.unit, claimed=self.claimed)
        losses = [math.inf if counted is None else counted]
        composed, delta = result.composed, result.delta
        if self.delta is not None and composed is not None and delta is not None:
            losses += [composed] * (result.status == "proved" and delta <= self.delta)
        return min(losses)

    @property
    def privacy(self) -> str:
        """The limit of the loss, in words."""
        with_delta = "" if self.delta is None else f" with δ ≤ {self.delta:g}"
        return f"ε ≤ {self.epsilon:g} per {self.unit}{with_delta}"

    @property
    def conditions(self) -> Iterator[str]:
        """What else is asked for, in words."""
        if self.trust in _AT_MOST_IN_WORDS:
            yield _AT_MOST_IN_WORDS[self.trust]
        if self.hide_items:
            yield "with the rated items hidden"


def privacy_unit(name: str) -> ComparableUnit:
    """Return the privacy unit of that name.

    Raises
    ------
    InputError
    """
    for unit in COMPARABLE_UNITS:
        if unit == name:
            return unit
    raise InputError("--per", repr(name), " or ".join(COMPARABLE_UNITS))


def most_trust(name: str) -> Trust:
    """Return the limit of trust of that name.

    Raises
    ------
    InputError
    """
    for trust in LEAST_TRUST_FIRST:
        if trust == name:
            return trust
    raise InputError("--trust", repr(name), ", ".join(LEAST_TRUST_FIRST))


def counted_loss(result: ProtocolResult, unit: ComparableUnit, *, claimed: bool) -> float | None:
    """Return the sum of losses that counts: what is proved, or also what is claimed; None without a bound."""
    if result.status == "proved":
        return result.epsilon(unit)
    if not claimed:
        return None
    promised = result.claimed(unit)
    return result.epsilon(unit) if promised is None else promised
