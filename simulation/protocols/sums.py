"""The course of protocols of sums: rounds of a question and of contributions, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dprec.attacks import ReleasedSum, Transcript
from dprec.errors import RunError
from dprec.protocols.base import Public
from dprec.protocols.rounds import Device
from dprec.protocols.sums import SumsProtocol
from dprec.sums import RepresentedAggregation
from simulation.protocols.course import Course, notes_on_failures
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Task
from simulation.protocols.transcripts import of_newcomers, parts_of, said_alone, transcript_of

if TYPE_CHECKING:
    from strategies.iterative import LearningFromSums
    from strategies.rounds import Received


@dataclass(frozen=True)
class SumsCourse(Course[SumsProtocol]):
    """Rounds in which everybody contributes to a sum."""

    def serve(self, grid: Grid, task: ServerTask, between: Task | None = None) -> LearningFromSums:
        """Run the rounds and deliver the result; ``between``: in a simulation, which knows the accuracy."""
        from strategies.iterative import LearningFromSums

        protocol, aggregation = self.protocol, self.protocol.adding_up
        if task.represents is not None:
            aggregation = RepresentedAggregation(
                of=aggregation, users=task.n_users, population=task.represents, rounds=protocol.rounds
            )
        public = Public(task.population, task.n_items, task.scale)
        strategy = LearningFromSums(
            server=protocol.server(public, task.catalogue, task.server_seed),
            aggregation=aggregation,
            multipliers=protocol.multipliers,
            costs=tuple(map(protocol.cost_of, range(1, protocol.rounds + 1))),
            seed=task.server_seed,
            public_seed=task.public_seed,
            group=task.group,
            roster=task.roster,
            received=[] if task.attacked else None,
            exchange=task.exchange_of and task.exchange_of(aggregation, task.public_seed),
        )

        def evaluate() -> dict[str, float | None]:
            assert between is not None
            return between.metric(self._learned(task, strategy).predicting(between.judged)["predict"])

        strategy.run_rounds(
            grid,
            protocol.rounds,
            ended=task.ended,
            progress=task.progress,
            evaluate=None if between is None else evaluate,
        )
        if strategy.failed == protocol.rounds:
            raise RunError(f"too many devices dropped out in every round (rounds: {protocol.rounds})")
        strategy.deliver(grid)
        return strategy

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the rounds, and evaluate each of them."""
        return self.simulated(task, self.serve(grid, task.for_server(), task))

    def served(self, task: ServerTask, held: LearningFromSums) -> ServerOutcome:
        """Return what the server knows."""
        return ServerOutcome(**self._facts(held, task))

    def simulated(self, task: Task, held: LearningFromSums) -> Outcome:
        """Add what the devices predict."""
        facts, learned = self._facts(held, task), self._learned(task, held)
        facts["notes"] = (*self.protocol.notes_on(task.train, task.catalogue), *facts["notes"])
        transcript = None if held.received is None else self._transcript(task, held, held.received, learned)
        return Outcome(**learned.predicting(task.judged), transcript=transcript, **facts)

    def _learned(self, task: ServerTask, held: LearningFromSums) -> Device:
        return self.protocol.device(held.server.learned.encode(), task.n_items, task.scale)

    def _transcript(
        self, task: Task, held: LearningFromSums, received: Sequence[Received], learned: Device
    ) -> Transcript:
        """Return what was said: sums, and what reports say that are protected by themselves."""
        nobody = task.judged.select(np.zeros(task.judged.count, dtype=np.bool_))
        return transcript_of(
            task,
            trusted=self.protocol.aggregation.trust == "central",
            vectors=said_alone(task.n_users, received, held.aggregation, held.asked),
            sums=tuple(self._sums(task, held, received)),
            newcomer=of_newcomers(learned.predicting(nobody)["predict"]),
        )

    def _sums(
        self, task: ServerTask, held: LearningFromSums, received: Sequence[Received]
    ) -> Iterator[ReleasedSum]:
        """Yield the sums that were released, with what anybody can compute that a profile adds to them."""
        for number, summed in held.released.items():
            device = self.protocol.device(received[number - 1].model, task.n_items, task.scale)
            layout, _ = held.asked[number - 1]
            yield replace(summed, added=partial(parts_of, device, layout, number, task.public_seed))

    def _facts(self, held: LearningFromSums, task: ServerTask) -> dict[str, Any]:
        protocol, private = self.protocol, self.protocol.privacy is not None
        tau = None
        if private and held.noise:
            # The noise per user of the last release, as if it had the whole budget.
            last, deviation = max(held.noise.items())
            tau = deviation * float(np.sqrt(protocol.shares[last - 1])) / held.learned_of
        notes = notes_on_failures(held.records)
        if task.represents is not None:
            represented = (
                f"By tau: {task.n_users:,} simulated users represent a population of {task.represents:,} "
                "copies. Sums are theirs, with as much noise per user as sums of all have, drawn by a "
                "trusted server; epsilon and bytes are those of all."
            )
            notes = (represented, *notes)
        if held.failed:
            failed = (
                f"Of {len(held.records)} releases {held.failed} failed, as too many devices dropped out, or "
                "sums were spoiled; they taught nothing."
            )
            notes = (*notes, failed)
        return {
            "traffic": held.traffic,
            "accountant": replace(held.accountant, adjacency=protocol.adjacency),
            "guarantee": protocol.guarantee((task.population, task.n_items)),
            "rounds": tuple(held.records),
            "notes": notes,
            "diagnostics": dict(held.server.diagnostics),
            "noise": tuple(held.noise.values()) if private else (),
            "tau": tau,
        }
