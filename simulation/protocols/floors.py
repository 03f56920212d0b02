"""Which protocols are baselines: what others must beat to be worth any privacy or bytes."""

from __future__ import annotations

from dprec.completion import ItemAverage
from simulation.protocols.base import Protocol
from simulation.protocols.global_mean import GlobalMeanProtocol
from simulation.protocols.nothing_sent import NothingSentProtocol
from simulation.protocols.one_shot import OneShotProtocol

NOTHING_SENT = "nothing-sent"
"""The baseline of devices that predict alone."""

BASELINES = (NOTHING_SENT, "global-mean", "item-average", "sets-only")
"""Names of the presets, and of the baselines in the column `baseline` of comparison.csv."""


def baseline_of(protocol: Protocol) -> str | None:
    """Return which of the baselines a protocol is, whatever it is called; None for any other protocol."""
    if isinstance(protocol, NothingSentProtocol):
        return NOTHING_SENT
    if isinstance(protocol, GlobalMeanProtocol) and not protocol.private:
        return "global-mean"
    if not isinstance(protocol, OneShotProtocol):
        return None
    on_device = protocol.personalization == "on-device"
    if not protocol.mechanism.sends_values:
        return "sets-only" if on_device else None
    averages = isinstance(protocol.completion, ItemAverage) and not on_device
    return "item-average" if averages and protocol.mechanism.kind == "none" else None
