"""Between the rounds of an iterative protocol: nothing on a server, evaluation in a simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dprec.accounting import PrivacyAccountant
from dprec.predictions import Predict
from dprec.ratings import Ratings
from dprec.wire import BroadcastOptions
from simulation.protocols.early_stopping import EarlyStopping
from simulation.protocols.own_factors import OwnFactors
from simulation.protocols.task import Task

if TYPE_CHECKING:
    from strategies.iterative import State


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


@dataclass(frozen=True, eq=False)
class EvaluatedRounds(BetweenRounds):
    """A simulation: it knows the ratings, so it evaluates rounds, stops early, and keeps checkpoints."""

    task: Task
    fit: Ratings
    """What the devices learn from."""
    downlink: BroadcastOptions
    ridge: float
    """As for `OwnFactors`."""
    rounds: int
    evaluate_every: int
    """Rounds at most, and between evaluations."""
    early_stopping: EarlyStopping | None

    def begun(self, state: State) -> State:
        """Return the state before the first round, or after the last one of an interrupted run."""
        from clients.population import HeldFactors

        state = replace(state, accountant=PrivacyAccountant(self.fit.counts > 0))
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
        predict, record = self.predictor(state), state.records[-1]
        if self.early_stopping is not None:
            self.early_stopping.remember_best(state, predict, self.task.train, self.task.seed)
        if record.round == self.rounds or record.round % self.evaluate_every == 0:
            state.records[-1] = replace(record, accuracy=self.task.metric(predict))
        if self.task.checkpoints is not None:
            self.task.checkpoints.save(state)

    def finish(self, state: State) -> None:
        """Choose the factors with the lowest error on what devices held back, if the rounds stop early."""
        if self.early_stopping is not None:
            state.factors = state.best_factors

    def predictor(self, state: State) -> Predict:
        """Return the predictions that the devices would make with the current factors."""
        item_factors = self.downlink.rounded(state.factors).astype(np.float64)
        return OwnFactors(self.fit, item_factors, self.ridge)
