"""How a protocol runs over Flower: what its server does, and what only a simulation knows of it."""

from __future__ import annotations

from abc import ABC
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Generic, TypeVar

import numpy as np

from dprec.components import reference_of
from dprec.errors import InputError
from dprec.protocols.base import Protocol, as_declared, declaring
from dprec.protocols.baselines import GlobalMeanProtocol
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.references import ClearSetsProtocol
from dprec.protocols.rounds import BroadcastProtocol
from dprec.protocols.silent import SilentProtocol
from dprec.protocols.sums import SumsProtocol
from dprec.protocols.trusted_server import TrustedServerProtocol
from dprec.protocols.x_map import XMapProtocol
from dprec.ratings import Ratings
from dprec.schedules import Schedule
from simulation.courses.task import Grid, Outcome, ServerOutcome, ServerTask, Task
from strategies.participation import RoundRecord

ProtocolT = TypeVar("ProtocolT", bound=Protocol)


@dataclass(frozen=True)
class Course(ABC, Generic[ProtocolT]):
    """How protocols of one kind run.

    In three parts: `serve` is all that the server does, from a `ServerTask` in which there is no rating;
    `served` is what it knows then; `simulated` adds what only a simulation knows. A course whose server needs
    ratings, or trust, defines `run` alone, and cannot be deployed.
    """

    protocol: ProtocolT

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the protocol on the nodes of a grid: serve, then add what only the simulation knows."""
        return self.simulated(task, self.serve(grid, task.for_server()))

    def serve(self, grid: Grid, task: ServerTask) -> Any:
        """Do all that the server does, and return what it holds: ask devices, learn, tell them."""
        raise NotImplementedError

    def served(self, task: ServerTask, state: Any) -> ServerOutcome:
        """Return what the server knows at the end, where nobody knows more."""
        raise NotImplementedError

    def simulated(self, task: Task, state: Any) -> Outcome:
        """Return the outcome in a simulation, which knows the ratings that the devices hold."""
        raise NotImplementedError

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return the ratings that are installed on the devices."""
        return train


_FAULTS = ("absent", "late", "malformed")
"""Causes of failures that are no refusals."""


def notes_on_failures(records: Sequence[RoundRecord], reports: str = "reports") -> tuple[str, ...]:
    """Note how many of the requested reports, in the plural, could not be used; empty if all could."""
    failures = sum(record.failures for record in records)
    requested = failures + sum(record.replies for record in records)
    lost = sum(int(record.observed.get("not_finite", 0)) for record in records)
    notes: tuple[str, ...] = (
        (f"{lost} of {requested} updates were not finite; zeros were sent instead.",) if lost else ()
    )
    if not failures:
        return notes
    notes += (f"{failures} of {requested} {reports} were missing, late or malformed and were not used.",)
    refusals = sum((Counter(record.causes) for record in records), Counter[str]())
    refused = [f"{count} {cause}" for cause, count in sorted(refusals.items()) if cause not in _FAULTS]
    return (*notes, f"Devices refused to send {reports}: {', '.join(refused)}.") if refused else notes


NOT_DELIVERED = (
    "What the server predicts is not sent back to the users: the bytes down leave out their recommendations."
)
"""Of a protocol that has no delivery."""


OutcomeT = TypeVar("OutcomeT", bound=ServerOutcome)


def with_declared_losses(outcome: OutcomeT, protocol: Protocol, schedule: Schedule | None = None) -> OutcomeT:
    """Return an outcome whose accountant holds what is proved: losses only declared stand as claims."""
    user_defined = declaring(protocol, schedule)
    if type(protocol) in user_defined:
        _check_charged(outcome, protocol)
    if outcome.guarantee.status == "declared":  # of each collection already
        return outcome
    guarantee = as_declared(outcome.guarantee, user_defined)
    if guarantee.status != "declared":
        return outcome
    return replace(outcome, guarantee=guarantee, accountant=outcome.accountant.declared())


def _check_charged(outcome: ServerOutcome, protocol: Protocol) -> None:
    """Refuse a ledger in which what was sent costs nothing; only which items are rated can cost nothing."""
    if not protocol.installed.sends_values:
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


COURSES: dict[type[Protocol], str] = {
    OneShotProtocol: "one_shot:OneShotCourse",
    XMapProtocol: "x_map:XMapCourse",
    BroadcastProtocol: "rounds:BroadcastCourse",
    GradientPerturbationProtocol: "rounds:SlopesCourse",
    SumsProtocol: "sums:SumsCourse",
    ClearSetsProtocol: "lists:ReceivedSetsCourse",
    GlobalMeanProtocol: "baselines:GlobalMeanCourse",
    RandomizedSetsProtocol: "randomized_sets:RandomizedSetsCourse",
    SilentProtocol: "silent:SilentCourse",
    TrustedServerProtocol: "baselines:TrustedServerCourse",
}
"""Module and class of the course of each kind; one that is not here is its own."""


def course_of(protocol: Any) -> Any:
    """Return how a protocol runs."""
    if protocol.course is not None:
        return protocol.course(protocol)
    for kind in type(protocol).__mro__:
        if kind in COURSES:
            module, _, name = COURSES[kind].partition(":")
            return getattr(import_module(f"simulation.courses.{module}"), name)(protocol)
    return protocol
