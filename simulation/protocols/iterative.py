"""Iterative protocols: the item factors are learned over rounds from gradient reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import Bools
from dprec.attacks import Broadcast, Transcript
from dprec.attacks.transcript import added_up
from dprec.channel import Channel
from dprec.completion import StepOptions, check_rank
from dprec.components import Options, option
from dprec.errors import RunError, SettingError, within
from dprec.exchange import IterativeSetup
from dprec.gradients import GradientReport
from dprec.metrics import root_mean_squared_error
from dprec.predictions import Predict
from dprec.protocols.base import Facts, Public, Sent
from dprec.protocols.components import AnyGradient
from dprec.protocols.predicting import OwnFactors
from dprec.protocols.rounds import SamplingOptions
from dprec.protocols.sharing import budget_at, check_unit
from dprec.randomness import uniforms, words
from dprec.ratings import Ratings
from dprec.wire import BroadcastOptions
from simulation.protocols.base import Protocol
from simulation.protocols.course import notes_on_failures
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Sizes, Task
from simulation.protocols.transcripts import GradientRounds, transcript_of

if TYPE_CHECKING:
    from strategies.iterative import IterativeFactorization, State
    from strategies.rounds import Received


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Options):
    """Stop once the error on ratings that the devices hold back stops falling."""

    patience: int = option("Rounds without a lower error after which the run stops.", 5, ge=1)
    validation_fraction: float = option("Share of each device's ratings that is held back.", 0.1, gt=0, lt=1)

    def held_back(self, train: Ratings, seed: int) -> Bools:
        """Return which ratings the devices do not learn from, shape (ratings,)."""
        return uniforms(words(seed, "validation", 0, train.count)) < self.validation_fraction

    def remember_best(self, state: State, predict: Predict, train: Ratings, seed: int) -> None:
        """Keep the factors of the last round in the state if their error is the lowest so far."""
        held_back = train.select(self.held_back(train, seed))
        error = root_mean_squared_error(predict(held_back.users, held_back.items), held_back.values)
        if error < state.best_error:
            state.best_error, state.best_round = error, state.rounds_done
            state.best_factors = state.factors.copy()

    def exhausted(self, state: State) -> bool:
        """Return whether the error has not fallen for `patience` rounds."""
        return state.rounds_done - state.best_round >= self.patience


class BetweenRounds:
    """A server that knows no ratings: it has nothing to do between rounds, and performs them all."""

    def begun(self, state: State) -> State:
        """Return the state to begin with, given that before the first round."""
        return state

    def stops(self, state: State) -> bool:
        """Return whether no further round is to be performed."""
        return False

    def ended(self, state: State) -> None:
        """Take note that a round has ended."""

    def finish(self, state: State) -> None:
        """Choose the factors that are delivered: by default, the last."""


_NOTHING_BETWEEN = BetweenRounds()


@dataclass(frozen=True, kw_only=True)
class IterativeProtocol(Protocol):
    """Devices report gradients over rounds; the server learns item factors, users keep their own."""

    kind: Literal["iterative"] = "iterative"
    undeployable: ClassVar[str] = ""
    papers: ClassVar[tuple[str, ...]] = ("shin2018", "minto2021")
    folds_in: ClassVar[bool] = True
    privacy: accounting.PrivacyBudget | None = option(
        "What is promised for all rounds together, per user.", None
    )
    gradient: AnyGradient = option("What a device reports about its gradient.")
    rounds: int = option("Largest number of rounds.", ge=1)
    rank: int = option("Number of factors.", 5, ge=1)
    ridge: float = option("Ridge penalty on the factors that each device fits to its user.", 1.0, gt=0)
    step: StepOptions = option("How the item factors are updated.", StepOptions())
    sampling: SamplingOptions = option("Who is asked in a round.", SamplingOptions())
    downlink: BroadcastOptions = option("How item factors are sent to the devices.", BroadcastOptions())
    evaluate_every: int = option("Rounds between evaluations; the last is always evaluated.", 1, ge=1)
    early_stopping: EarlyStopping | None = option(
        "When to stop before the last round.", None, published=None, source="shin2018, Algorithm 1"
    )
    max_empty_rounds: int = option("Rounds in a row without a usable report that end the run.", 3, ge=1)

    @property
    def facts(self) -> Facts:
        """A factorization, learned from reports on its gradient."""
        return self.facts_of(
            protects=self.gradient.kind,
            learns="federated-factorization",
            predicts=self.gradient.predicted,
            private=self.gradient.private,
            starts_at_random=True,
        )

    def at_budget(self, budget: accounting.MatchedBudget) -> Self:
        """Return the protocol at a budget; a promise per user holds per rating as well."""
        return replace(self, privacy=budget_at(self.privacy, budget, "user"))

    @property
    def epsilon_per_round(self) -> float:
        """Budget of one report: an even share of the user's; infinite if nothing is protected."""
        return self.privacy.share(self._channel_at, self.rounds) if self.privacy else math.inf

    def _channel_at(self, epsilon: float) -> Channel:
        """Return a channel that is no more private than a report at a budget."""
        return accounting.dominating_channel(self.gradient.exact_epsilon(epsilon))

    def check(self, train: Sizes) -> None:
        """Refuse a budget, gradient, sampling and catalogue that do not fit together."""
        name = self.gradient.kind
        if self.gradient.private and self.privacy is None:
            raise SettingError("privacy", f"none, with {name} gradients", "an epsilon")
        if not self.gradient.private and self.privacy is not None:
            raise SettingError("privacy", f"an epsilon, with {name} gradients", "no privacy key")
        if self.privacy is not None:
            check_unit(self.privacy, "user", "the rounds protect whole profiles")
        check_rank(self.rank, (train.n_users, train.n_items))
        with within("gradient"):
            self.gradient.check((train.n_items, self.rank))
        with within("sampling"):
            self.sampling.size(train.n_users)

    def audited(self) -> Self:
        """Return the protocol with everybody in every round, measured at the end; see `Protocol.audited`."""
        if not self.gradient.private:
            promise = f"{self.gradient.kind!r}, which promises nothing"
            raise SettingError("gradient.kind", promise, "a private gradient")
        return replace(self, sampling=SamplingOptions(), early_stopping=None, evaluate_every=self.rounds)

    def audited_on(self, items: int, *, separating: bool = False) -> Self:
        """Return the protocol with fewer factors than items, which start at one level if they separate."""
        step = replace(self.step, start="level") if separating else self.step
        return replace(self, rank=min(self.rank, items - 1), step=step)

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of a report, which is the same in every round."""
        return self.gradient.influence_of_one((train.n_items, self.rank), self.epsilon_per_round)

    def setup(self) -> IterativeSetup:
        """Return what a device needs to know about the rounds."""
        return IterativeSetup(
            gradient=self.gradient,
            broadcast=self.downlink,
            rank=self.rank,
            ridge=self.ridge,
            epsilon_per_round=self.epsilon_per_round if self.gradient.private else None,
            rounds=self.rounds,
        )

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return the ratings that the devices learn from, without those held back for early stopping."""
        if self.early_stopping is None:
            return train
        return train.select(~self.early_stopping.held_back(train, seed))

    def check_deployed(self) -> None:
        """Refuse early stopping, for which the server would have to know errors on devices."""
        if self.early_stopping is not None:
            found = "early stopping, which costs privacy that is not charged"
            raise SettingError("early_stopping", found, "none, in a deployment")

    def serve(self, grid: Grid, task: ServerTask, between: BetweenRounds = _NOTHING_BETWEEN) -> State:
        """Run the rounds, with what happens between them, and deliver the result."""
        from strategies.iterative import State

        everybody = np.ones(task.n_users, dtype=np.bool_)
        fresh = State.begin(everybody, task.n_items, self.rank, task.server_seed, self.step.start)
        fresh.received = [] if task.attacked else None
        strategy = self._strategy(task, between.begun(fresh))
        state = strategy.state
        while state.rounds_done < self.rounds and not between.stops(state):
            self._round(strategy, grid, task, between)
        if state.empty_rounds == state.rounds_done:
            raise RunError(f"no usable report arrived in any round (rounds: {state.rounds_done})")
        between.finish(state)
        strategy.deliver(grid)
        return state

    def served(self, task: ServerTask, held: State) -> ServerOutcome:
        """Return what the server knows; it assumes that everybody has a rating."""
        return ServerOutcome(**self._facts(held, task))

    def simulated(self, task: Task, held: State) -> Outcome:
        """Add what the devices predict."""
        return Outcome(
            predict=self._between(task).predictor(held),
            transcript=None if held.received is None else self._transcript(task, held, held.received),
            **self._facts(held, task),
        )

    def _transcript(self, task: ServerTask, held: State, received: Sequence[Received]) -> Transcript:
        """Return what was said; what comes through a proxy can be linked with nobody."""
        shape = task.n_items, self.rank
        reading = GradientRounds(self.gradient, self.ridge, self.epsilon_per_round, shape, task.public_seed)
        uploads = reading.uploads(task.n_users, received) if self.gradient.linked else ()
        trusted = self.guarantee((task.n_users, task.n_items)).trusts_server
        return transcript_of(
            task,
            trusted=trusted,
            uploads=uploads,
            vectors=added_up(uploads),
            broadcast=Broadcast.of_products(held.factors),
        )

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the rounds, with checkpoints and evaluations between them; a run that is attacked has none.

        What users sent before an interruption is in no checkpoint.
        """
        if task.attacked:
            task = replace(task, checkpoints=None)
        return self.simulated(task, self.serve(grid, task.for_server(), self._between(task)))

    def _between(self, task: Task) -> EvaluatedRounds:
        """Return what a simulation does between the rounds."""
        return EvaluatedRounds(
            task=task,
            fit=self.held_ratings(task.train, task.seed),
            downlink=self.downlink,
            gradient=self.gradient,
            ridge=self.ridge,
            rounds=self.rounds,
            evaluate_every=self.evaluate_every,
            early_stopping=self.early_stopping,
        )

    def _facts(self, state: State, task: ServerTask) -> dict[str, Any]:
        return {
            "traffic": state.traffic,
            "accountant": state.accountant,
            "guarantee": self.guarantee((task.n_users, task.n_items)),
            "rounds": tuple(state.records),
            "notes": self._notes(state, task.n_users),
        }

    def _strategy(self, task: ServerTask, state: State) -> IterativeFactorization:
        from strategies.iterative import IterativeFactorization

        return IterativeFactorization(
            gradient=self.gradient,
            epsilon=self.epsilon_per_round,
            step=self.step,
            broadcast=self.downlink,
            sampling=self.sampling,
            seed=task.server_seed,
            public_seed=task.public_seed,
            group=task.group,
            roster=task.roster,
            state=state,
        )

    def _round(
        self, strategy: IterativeFactorization, grid: Grid, task: ServerTask, between: BetweenRounds
    ) -> None:
        """Run the next round, and give up after too many that brought nothing."""
        state = strategy.state
        strategy.run_round(grid)
        between.ended(state)
        task.ended(state.records[-1])
        task.progress("rounds", state.rounds_done, self.rounds)
        if state.empty_rounds >= self.max_empty_rounds:
            raise RunError(
                f"no usable report in {state.empty_rounds} rounds in a row, up to round {state.rounds_done} "
                f"(protocol.max_empty_rounds: {self.max_empty_rounds})"
            )

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the reports, one in each round that a device is asked in."""
        answers = 1 if self.gradient.hides_rated_items else ratings * self.rank
        return Sent(
            reports=self.rounds,
            symbols=2 if self.gradient.private else None,
            answers=answers,
            bits=self.gradient.report_bits((public.n_items, self.rank), ratings),
            epsilon=self.gradient.exact_epsilon(self.epsilon_per_round) if self.gradient.private else None,
            per="user",
        )

    def guarantee(self, shape: tuple[int, int]) -> accounting.Guarantee:
        """Promise the loss of a bit, once for each round, if there is a budget."""
        if self.privacy is None:
            why = "gradients at the rated items let the server compute the ratings."
            return accounting.Guarantee("none", "central", False, why)
        composed = self.privacy.composition == "pld"
        together = f"compose, beyond a probability of {self.privacy.delta:g}" if composed else "add up"
        return accounting.Guarantee(
            status="proved",
            trust="local",
            hides_rated_items=self.gradient.hides_rated_items,
            reason="an answer is one bit, drawn in integer weights whose ratio bounds its loss whatever the "
            f"ratings, and the rounds {together}.",
            notes=(
                f"Epsilon holds for everything a user sends in all rounds, {self.epsilon_per_round:.4g} "
                "in each; which items were rated is hidden.",
                *self.gradient.notes,
            ),
        )

    def _notes(self, state: State, n_users: int) -> tuple[str, ...]:
        notes = [*notes_on_failures(state.records)]
        if self.early_stopping is not None:
            notes.append(
                f"Stopped after round {state.rounds_done} with the factors of round {state.best_round}, "
                "chosen by ratings held back on the devices. The privacy and bytes that this choice costs "
                "are not charged."
            )
        if self.gradient.private:
            noise = self.gradient.noise_deviation((state.factors.shape[0], self.rank), self.epsilon_per_round)
            notes.append(
                f"Privacy noise on each coordinate of the mean gradient: standard deviation "
                f"{noise / math.sqrt(n_users):.3g} with {n_users} users reporting."
            )
        return tuple(notes)


@dataclass(frozen=True, eq=False)
class EvaluatedRounds(BetweenRounds):
    """A simulation: it knows the ratings, so it evaluates rounds, stops early, and keeps checkpoints."""

    task: Task
    fit: Ratings
    """What the devices learn from."""
    downlink: BroadcastOptions
    gradient: GradientReport
    ridge: float
    """As for `OwnFactors`."""
    rounds: int
    evaluate_every: int
    """Rounds at most, and between evaluations."""
    early_stopping: EarlyStopping | None

    def begun(self, state: State) -> State:
        """Return the state before the first round, or after the last one of an interrupted run."""
        from clients.population import HeldFactors

        state = replace(state, accountant=accounting.PrivacyAccountant(self.fit.counts > 0))
        if self.task.checkpoints is not None:
            state = self.task.checkpoints.load(state)
        if state.broadcast is not None:
            self.task.restore(HeldFactors(state.rounds_done, state.broadcast))
        return state

    def stops(self, state: State) -> bool:
        """Return whether early stopping ends the rounds."""
        return self.early_stopping is not None and self.early_stopping.exhausted(state)

    def ended(self, state: State) -> None:
        """Evaluate the factors of the last round and keep a checkpoint."""
        record = state.records[-1]
        if self.early_stopping is not None:
            predict = self._own_factors(self.fit, state)
            self.early_stopping.remember_best(state, predict, self.task.train, self.task.seed)
        if record.round == self.rounds or record.round % self.evaluate_every == 0:
            state.records[-1] = replace(record, accuracy=self.task.metric(self.predictor(state)))
        if self.task.checkpoints is not None:
            self.task.checkpoints.save(state)

    def finish(self, state: State) -> None:
        """Choose the factors with the lowest error on what devices held back, if the rounds stop early."""
        if self.early_stopping is not None:
            state.factors = state.best_factors

    def predictor(self, state: State) -> Predict:
        """Return the predictions that the devices would make with the current factors."""
        task = self.task
        return self._own_factors(self.fit if task.judged is task.train else task.judged, state)

    def _own_factors(self, held: Ratings, state: State) -> OwnFactors:
        item_factors = self.downlink.rounded(state.factors).astype(np.float64)
        return OwnFactors(held, item_factors, self.ridge, solve=self.gradient.user_factors)
