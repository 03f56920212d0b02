"""Which protocols are floors: what others must beat to be worth any privacy or bytes."""

from __future__ import annotations

from dprec.completion.averages import ItemAverage
from simulation.protocols.base import Protocol
from simulation.protocols.global_mean import GlobalMeanProtocol
from simulation.protocols.nothing_sent import NothingSentProtocol
from simulation.protocols.one_shot import OneShotProtocol

FLOORS = ("nothing-sent", "global-mean", "item-average", "sets-only")
"""Names of the presets, and of the floors in the column `floor` of comparison.csv."""


def floor_of(protocol: Protocol) -> str | None:
    """Return which of the floors a protocol is, whatever it is called; None for any other protocol."""
    if isinstance(protocol, NothingSentProtocol):
        return "nothing-sent"
    if isinstance(protocol, GlobalMeanProtocol) and not protocol.private:
        return "global-mean"
    if isinstance(protocol, OneShotProtocol) and not protocol.mechanism.sends_values:
        return "sets-only" if protocol.personalization == "on-device" else None
    if isinstance(protocol, OneShotProtocol) and isinstance(protocol.completion, ItemAverage):
        return "item-average" if protocol.mechanism.kind == "none" else None
    return None
