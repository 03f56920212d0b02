"""What is installed on devices before they are asked, and the task that a protocol is given then."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from clients.faults import Attendance
from dprec.arrays import Bools, Uint8s
from dprec.attacks import MaliciousUsers
from dprec.catalogue import Catalogue
from dprec.components import naming, reference_of
from dprec.errors import InputError, within
from dprec.predictions import checked
from dprec.progress import Progress
from dprec.protocols.base import Protocol
from dprec.protocols.sharing import chosen_epsilons, refusing
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from simulation.configuration.models import RunConfig
from simulation.courses.base import course_of, with_declared_losses
from simulation.courses.task import AccuracyMetric, CheckpointStore, Outcome, Task
from simulation.engine.session import Session
from strategies.participation import RoundRecord


@dataclass(frozen=True, eq=False)
class Installer:
    """Gives the devices of a run what they hold."""

    session: Session
    config: RunConfig
    """With the protocol that is run, suited to what is public."""
    drawn_by: str
    """What the draws of the run follow from, beside its seed."""
    catalogue: Catalogue | None
    """Public data about the items."""
    progress: Progress
    ended: Callable[[RoundRecord], None]
    """Called with the record of every round that has ended, where a protocol has several."""
    attendance: Attendance | None = None
    """Who answers in which round; None where faults are drawn."""

    def task(
        self,
        train: Ratings,
        judged: Ratings,
        metric: AccuracyMetric,
        keys: RunKeys,
        *,
        device_ratings: Ratings,
        protocol: Protocol,
        checkpoints: CheckpointStore | None = None,
        present: Bools | None = None,
        absent: Bools | None = None,
        malicious: MaliciousUsers | None = None,
        tested: Ratings | None = None,
    ) -> Task:
        """Install what devices hold, and return the protocol's task; see `Task`.

        ``present``: who is asked; ``absent``: who is silent; ``malicious``: the last users; ``tested``: what
        devices are told that they are tested on.
        """
        represents, privacy = self.config.dataset.represented(train.n_users), self.config.protocol.privacy
        lying = 0 if malicious is None else malicious.users
        chosen = chosen_epsilons(privacy, train, self.config.seed, lying)
        refuses, hosted = refusing(privacy, chosen), self._users_per_node(train.n_users)
        silent = absent if refuses is None else refuses if absent is None else refuses | absent
        installed_protocol = protocol if represents is None else protocol.represented()
        with_tested = device_ratings if tested is None else device_ratings.beside(tested)
        group = self._install(with_tested, installed_protocol, keys, hosted, silent, chosen, malicious)
        return Task(
            train=train,
            judged=judged,
            n_items=train.n_items,
            scale=train.scale,
            catalogue=self.catalogue,
            seed=self.config.seed,
            server_seed=keys.server,
            public_seed=keys.installed.public_seed,
            group=group,
            roster=replace(self.session.roster(train.n_users, hosted), present=present),
            progress=self.progress,
            metric=metric,
            checkpoints=checkpoints,
            restore=partial(self.session.restore, group),
            ended=self.ended,
            represents=represents,
            attacked=bool(self.config.attacks),
            chosen=chosen,
            tested=tested,
            never_asked=None if self.attendance is None else self.attendance.never_asked,
        )

    def _install(
        self,
        device_ratings: Ratings,
        protocol: Protocol,
        keys: RunKeys,
        hosted: int,
        absent: Bools | None,
        chosen: Uint8s | None,
        malicious: MaliciousUsers | None,
    ) -> str:
        return self.session.install(
            device_ratings,
            users_per_node=hosted,
            keys=keys.installed,
            faults=self.config.simulation.faults,
            protocol=protocol,
            absent=absent,
            attendance=self.attendance,
            epsilons=chosen,
            individual_reports=bool(self.config.attacks),
            crafting=malicious if malicious is not None and malicious.crafted else None,
        )

    def _users_per_node(self, users: int) -> int:
        # A session was opened for the honest users' partitions.
        least = -(-users // len(self.session.node_ids))
        return max(self.config.simulation.partition_size(users), least)


def run_protocol(session: Session, protocol: Protocol, task: Task) -> Outcome:
    """Run the protocol and measure how long it takes."""
    started = time.perf_counter()
    with within("protocol"), naming(protocol, "a class that runs a protocol"):
        outcome = course_of(protocol).run(session.grid, task)
        if not isinstance(outcome, Outcome):
            found = f"its run returned {type(outcome).__name__}"
            raise InputError(reference_of(type(protocol)), found, "an Outcome")
        outcome = with_declared_losses(outcome, protocol)
    if task.never_asked is not None:
        outcome.traffic.clear(task.never_asked)
    name, rows = f"completion {protocol.facts.learns}", outcome.predict_rows
    return replace(
        outcome,
        seconds=time.perf_counter() - started,
        predict=checked(outcome.predict, name),
        predict_rows=None if rows is None else checked(rows, name),
        scores=None if outcome.scores is None else checked(outcome.scores, name),
    )
