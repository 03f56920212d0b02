"""How protocols with rounds run: ask, learn, evaluate, keep checkpoints, stop early, deliver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from dprec.accounting import LargestLoss
from dprec.attacks import Transcript
from dprec.attacks.transcript import added_up
from dprec.completion import cold_notes
from dprec.components import naming
from dprec.errors import RunError
from dprec.metrics import root_mean_squared_error
from dprec.protocols.base import Public, declaring
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.protocols.rounds import AnsweringDevice, BroadcastProtocol, RoundsProtocol
from dprec.ratings import Ratings
from simulation.courses.base import Course, notes_on_failures
from simulation.courses.delivering import attacked_lists, deliver
from simulation.courses.task import CheckpointStore, Grid, Outcome, ServerOutcome, ServerTask, Task
from simulation.courses.transcripts import transcript_of

if TYPE_CHECKING:
    from strategies.training import BroadcastRounds, RowRounds

RoundsT = TypeVar("RoundsT", bound=RoundsProtocol)


@dataclass(frozen=True)
class LearningCourse(Course[RoundsT], Generic[RoundsT]):
    """What all protocols with rounds do; a simulation knows the ratings, so it evaluates rounds besides."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the rounds; a run that is attacked keeps no checkpoints: these lack what users have sent."""
        if task.attacked:
            task = replace(task, checkpoints=None)
        with naming(self.protocol.code, "a class that computes updates"):
            return self.simulated(task, self._learned(grid, task, task))

    def serve(self, grid: Grid, task: ServerTask) -> Any:
        """Run the rounds and deliver what was learned."""
        return self._learned(grid, task, None)

    def _learned(self, grid: Grid, task: ServerTask, simulation: Task | None) -> Any:
        """Return the strategy after its rounds; ``simulation``: what only a simulation knows."""
        protocol, strategy = self.protocol, self.begun(task, simulation)
        checkpoints = None if simulation is None else self._resumed(strategy, simulation)
        # What rests on the word of a class from outside is no loss that anybody has proved.
        lost = None if declaring(protocol) else LargestLoss(strategy.accountant, protocol.delta)
        while len(strategy.records) < protocol.rounds and not self.exhausted(strategy):
            record = strategy.run_round(grid)
            strategy.records[-1] = replace(record, epsilon=lost and lost.so_far())
            if simulation is not None:
                self.observe(strategy, grid)
                self.ended(strategy, simulation)
            if checkpoints is not None:
                checkpoints.save(strategy)
            done, empty = len(strategy.records), strategy.empty_rounds
            if simulation is None or done < protocol.rounds:
                task.ended(strategy.records[-1])
            task.progress("rounds", done, protocol.rounds)
            if protocol.max_empty_rounds is not None and empty >= protocol.max_empty_rounds:
                raise RunError(
                    f"no usable report in {empty} rounds in a row, up to round {done} "
                    f"(protocol.max_empty_rounds: {protocol.max_empty_rounds})"
                )
        if strategy.empty_rounds == len(strategy.records) and not protocol.learns_of_nobody:
            raise RunError(f"no usable report arrived in any round (rounds: {len(strategy.records)})")
        self.deliver(strategy, grid, task)
        return strategy

    def _resumed(self, strategy: Any, simulation: Task) -> CheckpointStore | None:
        """Go on from a checkpoint, and give devices back what they held; return where to keep the next."""
        from clients.population import HeldQuestion

        if simulation.checkpoints is None or not strategy.resumable:
            return None
        simulation.checkpoints.load(strategy)
        if (broadcast := strategy.broadcast) is not None:
            question = len(strategy.records), broadcast.encode(), broadcast.question
            simulation.restore(HeldQuestion(*question, strategy.kept or None))
        return simulation.checkpoints

    def settings(self, task: ServerTask, simulation: Task | None) -> dict[str, Any]:
        """Return the fields of a strategy."""
        rated = np.ones(task.n_users, dtype=np.bool_)
        if simulation is not None:
            rated = self.held_ratings(simulation.train, simulation.seed).counts > 0
        return {
            "protocol": self.protocol,
            "public": Public(task.n_users, task.n_items, task.scale),
            "seed": task.server_seed,
            "public_seed": task.public_seed,
            "group": task.group,
            "roster": task.roster,
            "rated": rated,
            "counts": None if simulation is None else simulation.train.counts,
            "remembers": task.attacked,
        }

    def begun(self, task: ServerTask, simulation: Task | None) -> Any:
        """Return the strategy before the first round."""
        raise NotImplementedError

    def observe(self, strategy: Any, grid: Grid) -> None:
        """Have devices tell what only a simulation is told."""

    def ended(self, strategy: Any, simulation: Task) -> None:
        """Evaluate a round."""
        raise NotImplementedError

    def exhausted(self, strategy: Any) -> bool:
        """Return whether no further round would help."""
        return False

    def deliver(self, strategy: Any, grid: Grid, task: ServerTask) -> None:
        """Send everybody what is for them: what was learned."""
        strategy.deliver(grid)

    def facts(self, state: Any, *notes: str) -> dict[str, Any]:
        """Return the fields of an outcome that a server knows; ``notes``: how the rounds went."""
        public = state.public
        return {
            "traffic": state.traffic,
            "accountant": state.accountant,
            "guarantee": self.protocol.guarantee((public.n_users, public.n_items)),
            "rounds": tuple(state.records),
            "notes": (*notes_on_failures(state.records), *notes, *self.protocol.notes(public)),
            "noise": self.protocol.noise_of_rounds,
            "diagnostics": dict(state.server.diagnostics),
        }


def measured_of(predicting: Mapping[str, Any], simulation: Task) -> dict[str, float | None]:
    """Return the accuracy of what `Device.predicting` returned."""
    return simulation.metric(predicting["predict"], None, predicting.get("predict_rows"))


@dataclass(frozen=True)
class BroadcastCourse(LearningCourse[BroadcastProtocol]):
    """Rounds in which everybody is sent the same, and predicts from what is delivered."""

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return the ratings that the devices learn from, without those held back for early stopping."""
        early = self.protocol.early_stopping
        return train if early is None else train.select(~early.held_back(train, seed))

    def served(self, task: ServerTask, state: BroadcastRounds) -> ServerOutcome:
        """Return what the server knows; it assumes that everybody has a rating."""
        return ServerOutcome(**self.facts(state))

    def simulated(self, task: Task, state: BroadcastRounds) -> Outcome:
        """Add what the devices predict."""
        transcript: Transcript | None = None
        if task.attacked:
            devices = ((received.model, received.parts) for received in state.received)
            read = (device.upload(task.n_users, parts, task.public_seed) for device, parts in devices)
            uploads = tuple(upload for upload in read if upload is not None)
            nobody = task.judged.select(np.zeros(task.judged.count, dtype=np.bool_))
            transcript = transcript_of(
                task,
                trusted=self.protocol.guarantee((task.n_users, task.n_items)).trusts_server,
                uploads=uploads,
                vectors=added_up(uploads),
                sums=tuple(state.released),
                **state.learned.shown(nobody),
            )
        predicted = state.learned.predicting(self._judged(task))
        return Outcome(**predicted, transcript=transcript, **self.facts(state))

    def _judged(self, task: Task) -> Ratings:
        """Return what those hold whose predictions are judged."""
        return self.held_ratings(task.train, task.seed) if task.judged is task.train else task.judged

    def begun(self, task: ServerTask, simulation: Task | None) -> BroadcastRounds:
        """Return the strategy before the first round."""
        from strategies.training import BroadcastRounds

        return BroadcastRounds(**self.settings(task, simulation))

    def remember_best(
        self, strategy: BroadcastRounds, learned: AnsweringDevice, train: Ratings, seed: int
    ) -> None:
        """Keep what the last round learned if its error on what devices held back is the lowest so far."""
        if (early := self.protocol.early_stopping) is None:
            return
        held_back = train.select(early.held_back(train, seed))
        if not held_back.count:
            return
        predict = learned.predicting(self.held_ratings(train, seed))["predict"]
        error = root_mean_squared_error(predict(held_back.users, held_back.items), held_back.values)
        if error < strategy.best_error:
            strategy.best_error, strategy.best_round = error, len(strategy.records)
            strategy.best = learned

    def exhausted(self, strategy: BroadcastRounds) -> bool:
        """Return whether the error has not fallen for as many rounds as early stopping waits."""
        early = self.protocol.early_stopping
        return early is not None and len(strategy.records) - strategy.best_round >= early.patience

    def observe(self, strategy: BroadcastRounds, grid: Grid) -> None:
        """Have devices tell what they keep and computed, where they do."""
        if self.protocol.tells:
            strategy.observe(grid)

    def ended(self, strategy: BroadcastRounds, simulation: Task) -> None:
        """Evaluate a round, unless it is the last, which the caller evaluates."""
        protocol, record = self.protocol, strategy.records[-1]
        learned = strategy.server.learned.keeping(strategy.kept)
        self.remember_best(strategy, learned, simulation.train, simulation.seed)
        if record.round < protocol.rounds and record.round % protocol.evaluate_every == 0:
            measured = measured_of(learned.predicting(self._judged(simulation)), simulation)
            strategy.records[-1] = replace(record, accuracy=measured)

    def facts(self, state: Any, *notes: str) -> dict[str, Any]:
        """Return what a server knows, and how the rounds were stopped."""
        if self.protocol.early_stopping is not None:
            best = state.best_round
            notes = (
                f"Stopped after round {len(state.records)} with the factors of round {best}, chosen by "
                "ratings held back on the devices. The privacy and bytes that this choice costs are not "
                "charged.",
            )
        return super().facts(state, *notes)


@dataclass(frozen=True)
class SlopesCourse(LearningCourse[GradientPerturbationProtocol]):
    """Rounds of noisy slopes, after which the server predicts, and sends lists if it is asked to."""

    def begun(self, task: ServerTask, simulation: Task | None) -> RowRounds:
        """Return the strategy before the first round."""
        from strategies.training import RowRounds

        return RowRounds(**self.settings(task, simulation))

    def ended(self, strategy: RowRounds, simulation: Task) -> None:
        """Evaluate a round; the last is evaluated by the caller."""
        if len(strategy.records) < self.protocol.rounds:
            matrix = strategy.server.matrix
            measured = simulation.metric(matrix.predict, matrix.hidden)
            strategy.records[-1] = replace(strategy.records[-1], accuracy=measured)

    def deliver(self, strategy: RowRounds, grid: Grid, task: ServerTask) -> None:
        """Send everybody a list, if lists are to be sent."""
        delivery, server, name = self.protocol.delivery, strategy.server, self.protocol.facts.learns
        if delivery is not None:
            spent = deliver(delivery, grid, task, server.matrix, server.seen, strategy.traffic, name)
            strategy.records[-1] = strategy.records[-1].with_traffic(spent)

    def simulated(self, task: Task, state: RowRounds) -> Outcome:
        """Return what the server predicts."""
        protocol, server, shape = self.protocol, state.server, (task.n_users, task.n_items)
        transcript = None
        if task.attacked:
            reports = tuple(received.observed(protocol, shape, task.scale) for received in state.received)
            name = protocol.facts.learns
            lists = attacked_lists(protocol.delivery, task, server.matrix, server.seen, name)
            transcript = transcript_of(task, reports=reports, lists=lists)
        facts = self.facts(state)
        facts["notes"] = cold_notes(*server.observed, shape) + facts["notes"]
        matrix = server.matrix
        return Outcome(predict=matrix.predict, hidden=matrix.hidden, transcript=transcript, **facts)
