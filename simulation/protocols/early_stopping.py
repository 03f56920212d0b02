"""Early stopping: the rounds end once the error on ratings that the devices hold back stops falling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dprec.components import Options, option
from dprec.metrics import root_mean_squared_error
from dprec.predictions import Predict
from dprec.randomness import uniforms, words
from dprec.ratings import Ratings

if TYPE_CHECKING:
    from strategies.iterative import State


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Options):
    """Stop once the error on ratings that the devices hold back stops falling."""

    patience: int = option("Rounds without a lower error after which the run stops.", 5, ge=1)
    validation_fraction: float = option("Share of each device's ratings that is held back.", 0.1, gt=0, lt=1)

    def held_back(self, train: Ratings, seed: int) -> NDArray[np.bool_]:
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
