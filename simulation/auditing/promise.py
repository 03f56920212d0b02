"""What a configuration promises, read from what is written in it and from nothing that a run computes."""

from __future__ import annotations

from dataclasses import dataclass

from dprec.accounting import PrivacyUnit
from dprec.exchange import IterativeSetup
from simulation.auditing.decoding import reports_of
from simulation.protocols.base import Protocol
from simulation.protocols.x_map import XMapProtocol


@dataclass(frozen=True)
class Promise:
    """What the devices of a protocol promise."""

    epsilon: float
    """For everything that is sent over all rounds."""
    unit: PrivacyUnit
    """What two profiles may differ in."""
    hides_rated_items: bool
    """Whether it holds for which items are rated, too."""
    delta: float = 0.0
    """Probability beyond which it holds; 0 unless the budget is for composed draws."""

    def loss(self, entries: int) -> float:
        """Return the largest loss between two profiles that differ in so many entries.

        A promise per user holds for any difference; one per rating or cell adds up.
        """
        return self.epsilon if self.unit == "user" else self.epsilon * entries

    def unit_of(self, entries: int) -> PrivacyUnit:
        """Return the unit in which a difference in so many entries is counted."""
        return self.unit if entries == 1 else "user"


def promise_of(protocol: Protocol) -> Promise:
    """Return what the budget of a protocol promises.

    Parameters
    ----------
    protocol : Protocol
        With a budget; see `Protocol.audited`.
    """
    if isinstance(protocol, XMapProtocol) and not protocol.mechanism.private:
        # Each of its outputs has a budget of its own; see `simulation.auditing.outputs`.
        return Promise(protocol.largest_output_epsilon, "rating", hides_rated_items=False)
    budget = protocol.privacy
    assert budget is not None, "a protocol without a budget"
    setup, reports = protocol.setup(), reports_of(protocol)
    if reports is not None:
        hides = reports.hides_items
    else:
        hides = isinstance(setup, IterativeSetup) and setup.gradient.hides_rated_items
    delta = budget.delta if budget.composition == "pld" else 0.0
    return Promise(budget.epsilon, budget.per, hides, delta)
