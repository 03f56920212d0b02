"""The course of protocols of sums: rounds of contributions, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator
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
from simulation.courses.rounds import LearningCourse, measured_of
from simulation.courses.task import Grid, Outcome, ServerOutcome, ServerTask, Task
from simulation.courses.transcripts import of_newcomers, parts_of, said_alone, transcript_of

if TYPE_CHECKING:
    from strategies.sums import SumRounds


@dataclass(frozen=True)
class SumsCourse(LearningCourse[SumsProtocol]):
    """Rounds in which everybody contributes to a sum."""

    def begun(self, task: ServerTask, simulation: Task | None) -> SumRounds:
        """Return the strategy before the first round; the users may represent a population."""
        from strategies.sums import SumRounds

        protocol, aggregation = self.protocol, self.protocol.adding_up
        if task.represents is not None:
            aggregation = RepresentedAggregation(
                of=aggregation, users=task.n_users, population=task.represents, rounds=protocol.rounds
            )
        settings = self.settings(task, simulation)
        if simulation is not None and simulation.checkpoints is not None:
            settings["keep"] = simulation.checkpoints.keep
        return SumRounds(
            **settings
            | {
                "public": Public(task.population, task.n_items, task.scale),
                "rated": np.ones(task.n_users, dtype=np.bool_),
            },
            aggregation=aggregation,
            catalogue=task.catalogue,
            exchange=task.exchange_of and task.exchange_of(aggregation, task.public_seed),
        )

    def ended(self, strategy: SumRounds, simulation: Task) -> None:
        """Evaluate a round; the last is evaluated by the caller."""
        if len(strategy.records) < self.protocol.rounds:
            measured = measured_of(
                self._learned_by(strategy, simulation).predicting(simulation.judged), simulation
            )
            strategy.records[-1] = replace(strategy.records[-1], accuracy=measured)

    def deliver(self, strategy: SumRounds, grid: Grid, task: ServerTask) -> None:
        """Send everybody what was learned; raises RunError where every release failed."""
        if strategy.failed == self.protocol.rounds:
            lost = min(record.failures / (record.failures + record.replies) for record in strategy.records)
            tolerated, rounds = strategy.aggregation.tolerated, f"in every round (rounds: {strategy.failed})"
            if lost <= tolerated:
                raise RunError(f"sums were spoiled {rounds}, though at most {lost:.1%} dropped out")
            raise RunError(
                f"too many devices dropped out {rounds}: {lost:.1%} of them or more, where "
                f"protocol.aggregation.dropouts allows {tolerated:.1%}"
            )
        strategy.deliver(grid)

    def served(self, task: ServerTask, state: SumRounds) -> ServerOutcome:
        """Return what the server knows."""
        return ServerOutcome(**self._known(state, task))

    def simulated(self, task: Task, state: SumRounds) -> Outcome:
        """Add what the devices predict."""
        facts, learned = self._known(state, task), self._learned_by(state, task)
        facts["notes"] = (*self.protocol.notes_on(task.train, task.catalogue), *facts["notes"])
        transcript = self._transcript(task, state, learned) if task.attacked else None
        return Outcome(**learned.predicting(task.judged), transcript=transcript, **facts)

    def _learned_by(self, strategy: SumRounds, task: ServerTask) -> Device:
        return self.protocol.device(strategy.server.learned.encode(), task.n_items, task.scale)

    def _transcript(self, task: Task, state: SumRounds, learned: Device) -> Transcript:
        """Return what was said: sums, and what reports say that are protected by themselves."""
        nobody = task.judged.select(np.zeros(task.judged.count, dtype=np.bool_))
        requests = [state.asked_for(number) for number in range(1, len(state.received) + 1)]
        return transcript_of(
            task,
            trusted=self.protocol.aggregation.trust == "central",
            vectors=said_alone(task.n_users, state.received, state.aggregation, requests),
            sums=tuple(self._sums(task, state)),
            newcomer=of_newcomers(learned.predicting(nobody)["predict"]),
        )

    def _sums(self, task: ServerTask, state: SumRounds) -> Iterator[ReleasedSum]:
        """Yield the sums that were released, with what anybody can compute that a profile adds to them."""
        for number, summed in state.released.items():
            device, (layout, _) = state.received[number - 1].model, state.asked_for(number)
            yield replace(summed, added=partial(parts_of, device, layout, number, task.public_seed))

    def _known(self, state: SumRounds, task: ServerTask) -> dict[str, Any]:
        protocol, private, notes, tau = self.protocol, self.protocol.privacy is not None, [], None
        if private and state.noise:
            # The noise per user of the last release, as if it had the whole budget.
            last, deviation = max(state.noise.items())
            tau = deviation * float(np.sqrt(protocol.shares[last - 1])) / state.taught[last][1]
        if state.failed:
            notes.append(
                f"Of {len(state.records)} releases {state.failed} failed, as too many devices dropped out, "
                "or sums were spoiled; they taught nothing."
            )
        facts = self.facts(state, *notes, *state.server.notes)
        if task.represents is not None:
            represented = (
                f"By tau: {task.n_users:,} simulated users represent a population of {task.represents:,} "
                "copies. Sums are theirs, with as much noise per user as sums of all have: normal noise, "
                "which a trusted server draws whoever does in the population. Epsilon and bytes are of all."
            )
            facts["notes"] = (represented, *facts["notes"])
        return facts | {"noise": tuple(state.noise.values()) if private else (), "tau": tau}
