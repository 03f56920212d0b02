"""What every protocol provides to the simulation."""

from __future__ import annotations

import typing
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from flwr.serverapp import Grid
from numpy.typing import NDArray

from clients.population import HeldFactors
from dprec.errors import SettingError
from dprec.options import Options
from dprec.privacy.device_channel import DeviceChannel
from dprec.privacy.ledger import Guarantee, PrivacyLedger
from dprec.privacy.units import ComparableUnit
from dprec.progress import Progress
from dprec.ratings import Ratings
from dprec.setups import Setup
from dprec.wire.traffic import TrafficLedger
from strategies.iterative import State
from strategies.roster import Roster
from strategies.rounds import RoundRecord

Predict = Callable[[NDArray[np.integer], NDArray[np.integer]], NDArray[np.float64]]
"""From arrays of users and items to predicted ratings, not clipped."""


class Measure(typing.Protocol):
    """Measures accuracy on the test ratings."""

    def __call__(self, predict: Predict, hidden: Predict | None = None) -> dict[str, float | None]:
        """Return the accuracy, by the names that the run directory uses."""


class Checkpoints(typing.Protocol):
    """Keeps the state of a run between rounds."""

    def save(self, state: State) -> None:
        """Keep the state after a round."""

    def load(self, fresh: State) -> State:
        """Return the state to go on from: the fresh one where no round has ended."""


@dataclass(frozen=True, eq=False)
class Task:
    """What a protocol works on.

    Parameters
    ----------
    train : Ratings
        What the devices hold.
    seed : int
    group : str
        Run key of the population on disk.
    roster : Roster
        Which node hosts which users.
    progress : callable
    measure : callable
        From a function that predicts, and one that returns entries of the hidden matrix or None, to
        the accuracy on the test ratings, for the experiment's eyes.
    checkpoints : Checkpoints or None
        Where a protocol of rounds keeps its state.
    restore : callable
        Gives the devices back what they had received when the run was interrupted.
    """

    train: Ratings
    seed: int
    group: str
    roster: Roster
    progress: Progress
    measure: Measure
    checkpoints: Checkpoints | None
    restore: Callable[[HeldFactors], None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a protocol leaves behind.

    Parameters
    ----------
    predict : callable
        From arrays of users and items to predicted ratings, not clipped.
    traffic : TrafficLedger
    privacy : PrivacyLedger
    guarantee : Guarantee
    rounds : tuple of RoundRecord
    deployed_factor : float
        Bytes that the deployment engine moves per byte of a report's message.
    channel : DeviceChannel or None
        What the devices applied to their ratings, where that is a channel that adds noise.
    notes : tuple of str
        What a reader of the figures must know.
    diagnostics : dict
        What the completion learned; JSON values only.
    distance : dict
        Root mean square difference between the reports and the ratings, and a bound on it, where a
        paper gives one.
    hidden : callable or None
        From arrays of users and items to the entries of the hidden matrix behind the ratings, where
        the completion models one.
    seconds : float
        What the protocol took in this process, as measured by whoever ran it.
    """

    predict: Predict
    traffic: TrafficLedger
    privacy: PrivacyLedger
    guarantee: Guarantee
    rounds: tuple[RoundRecord, ...]
    deployed_factor: float
    channel: DeviceChannel | None = None
    notes: tuple[str, ...] = ()
    diagnostics: dict[str, Any] = field(default_factory=dict)
    distance: dict[str, float | None] = field(default_factory=dict)
    hidden: Predict | None = None
    seconds: float = 0.0

    @property
    def clients_seconds(self) -> float:
        """Seconds of the rounds, in which the devices work; of all processes that ran them."""
        return sum(record.seconds for record in self.rounds)

    @property
    def server_seconds(self) -> float:
        """Seconds outside the rounds; 0 where rounds before an interruption hide them."""
        return max(0.0, self.seconds - self.clients_seconds)


@dataclass(frozen=True, kw_only=True)
class Protocol(Options):
    """Base of the protocols: how devices and server reach predictions together."""

    kind: str

    @property
    @abstractmethod
    def private(self) -> bool:
        """Whether the protocol takes a privacy budget."""

    @abstractmethod
    def at_budget(self, epsilon: float, unit: ComparableUnit) -> Self:
        """Return the protocol calibrated to a budget in a unit that all protocols share.

        Parameters
        ----------
        epsilon : float
        unit : {"rating", "user"}
        """

    @property
    @abstractmethod
    def mechanism_name(self) -> str:
        """Name of what protects the users, for the summary."""

    @property
    @abstractmethod
    def completion_name(self) -> str:
        """Name of what completes the matrix, for the summary."""

    @abstractmethod
    def check(self, train: Ratings) -> None:
        """Refuse settings that do not suit the ratings, before anything runs.

        Raises
        ------
        SettingError
            Naming the protocol's key.
        """

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return the ratings that are installed on the devices."""
        return train

    def audited(self) -> tuple[Self, int]:
        """Return the protocol with little work that does not touch what devices send, for an audit.

        Returns
        -------
        Protocol
        int
            Items that the smallest profile needs in the catalogue.

        Raises
        ------
        SettingError
            When what leaves the devices is not protected, or not by the device alone.
        """
        accepted = "one that an audit can play: one-shot, iterative or gradient-perturbation"
        raise SettingError("kind", repr(self.kind), accepted)

    @abstractmethod
    def setup(self) -> Setup:
        """Return what is installed on the devices."""

    @abstractmethod
    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the protocol with the nodes of a grid."""
