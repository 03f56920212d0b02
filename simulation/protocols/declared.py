"""Losses that a class from outside this distribution declares: nothing here follows from its code.

A mechanism of one's own is a matrix, from which its loss follows whoever made it. A gradient report, an
aggregation, a perturbation or a protocol of one's own sends what its code sends, and its loss is its word.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from dprec.accounting import Guarantee
from dprec.components import Options, reference_of, user_defined_classes
from dprec.errors import InputError
from simulation.protocols.base import Protocol
from simulation.protocols.outcome import ServerOutcome

OutcomeT = TypeVar("OutcomeT", bound=ServerOutcome)


def declaring(protocol: Protocol) -> tuple[type[Options], ...]:
    """Return the classes from outside on whose word alone the losses of a protocol rest."""
    own = dict.fromkeys([*user_defined_classes(protocol), *user_defined_classes(protocol.picked)])
    return tuple(each for each in own if each.declares_loss())


def guarantee_of(protocol: Protocol, shape: tuple[int, int]) -> Guarantee:
    """Return what a protocol promises, which is declared if it rests on code from outside."""
    return _as_declared(protocol.guarantee(shape), declaring(protocol))


def with_declared_losses(outcome: OutcomeT, protocol: Protocol) -> OutcomeT:
    """Return an outcome whose accountant holds what is proved: losses only declared stand as claims."""
    own = declaring(protocol)
    if type(protocol) in own:
        _check_charged(outcome, protocol)
    guarantee = _as_declared(outcome.guarantee, own)
    if guarantee.status != "declared":
        return outcome
    return replace(
        outcome,
        guarantee=guarantee,
        accountant=outcome.accountant.declared(),
    )


def _as_declared(guarantee: Guarantee, own: tuple[type[Options], ...]) -> Guarantee:
    if guarantee.status == "none" or not own:
        return guarantee
    names = " and ".join(map(reference_of, own))
    reason = (
        f"the loss, what is hidden and who is trusted are the word of {names}, and nothing here follows from "
        "its code. dprec audit measures what is sent."
    )
    notes = tuple(f"By the word of {names}: {note}" for note in guarantee.notes)
    return replace(guarantee, status="declared", reason=reason, notes=notes)


def _check_charged(outcome: ServerOutcome, protocol: Protocol) -> None:
    """Refuse a ledger in which what was sent costs nothing; only which items are rated can cost nothing."""
    if not protocol.picked.setup().sends_values:
        return
    proved = outcome.accountant
    claimed = proved if proved.claimed is None else proved.claimed
    charged = np.maximum(proved.get_epsilon(), claimed.get_epsilon()) > 0
    free = (outcome.traffic.uplink_message > 0) & ~charged
    if free.any():
        size = int(outcome.traffic.uplink_message[free].sum())
        found = f"{size:,} bytes from {int(free.sum()):,} users, for which its privacy ledger charges nothing"
        accepted = "a charge to everybody who sends: infinite where nothing is protected"
        raise InputError(reference_of(type(protocol)), found, accepted)
