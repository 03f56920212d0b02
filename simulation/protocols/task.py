"""What a protocol is given: the ratings, the population that holds them, and callbacks for its rounds."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprec.catalogue import Catalogue
from dprec.progress import Progress
from dprec.ratings import Ratings
from dprec.recommendation import Predict

if TYPE_CHECKING:
    from clients.population import HeldFactors
    from strategies.iterative import State
    from strategies.roster import Roster
    from strategies.round_record import RoundRecord


class Measure(typing.Protocol):
    """Measures accuracy on the test ratings."""

    def __call__(self, predict: Predict, hidden: Predict | None = None) -> dict[str, float | None]:
        """Return the accuracy under the names that the run directory uses."""


class Checkpoints(typing.Protocol):
    """Keeps the state of a run between rounds."""

    def save(self, state: State) -> None:
        """Keep the state after a round."""

    def load(self, fresh: State) -> State:
        """Return the state to continue from: the fresh one if no round has ended."""


@dataclass(frozen=True, eq=False)
class Task:
    """What a protocol works on.

    Parameters
    ----------
    train : Ratings
        The train ratings.
    catalogue : Catalogue or None
        Public data about the items.
    seed : int
        Of the experiment: data sets, splits, held-back ratings. Neither devices nor server are given it.
    server_seed : int
        Of what the server draws.
    public_seed : int
        Of what devices and server draw alike.
    group : str
        Run key of the population on disk.
    roster : Roster
        Which node hosts which users.
    progress : callable
    measure : callable
        From a predictor, and a function that returns entries of the hidden matrix or None, to the
        accuracy on the test ratings, which neither devices nor server would know.
    checkpoints : Checkpoints or None
        Where a protocol with rounds keeps its state.
    restore : callable
        Gives the devices what they had received before the run was interrupted.
    ended : callable
        Called with the record of every round that has ended, where a protocol has several; those of the
        others are in the outcome.
    """

    train: Ratings
    catalogue: Catalogue | None
    seed: int
    server_seed: int
    public_seed: int
    group: str
    roster: Roster
    progress: Progress
    measure: Measure
    checkpoints: Checkpoints | None
    restore: Callable[[HeldFactors], None]
    ended: Callable[[RoundRecord], None]
