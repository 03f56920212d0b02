"""What a protocol is given, and what it produces: predictions, and their cost in bytes and privacy."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from dprec.accounting import Guarantee, PrivacyAccountant
from dprec.arrays import AnyArray, Bools, Uint8s
from dprec.attacks import Transcript
from dprec.catalogue import Catalogue
from dprec.completion import FittedMixture
from dprec.predictions import Predict, PredictRows
from dprec.progress import Progress
from dprec.ratings import Ratings, RatingScale
from dprec.reports import DeviceChannel
from dprec.wire import TrafficLedger
from simulation.courses.domains import LearnedDomains
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    import flwr.serverapp

    from clients.population import HeldQuestion
    from strategies.releases import ExchangeOf
    from strategies.roster import Roster
    from strategies.training import TrainingRounds

if TYPE_CHECKING:
    Grid: TypeAlias = flwr.serverapp.Grid
else:
    # Commands that run nothing do not wait for Flower.
    Grid = Any


class AccuracyMetric(typing.Protocol):
    """Measures accuracy on the test ratings."""

    def __call__(
        self, predict: Predict, hidden: Predict | None = None, predict_rows: PredictRows | None = None
    ) -> dict[str, float | None]:
        """Return the accuracy under the names that the run directory uses."""


class CheckpointStore(typing.Protocol):
    """Keeps the state of a run between rounds."""

    def keep(self, number: int, lesson: AnyArray) -> None:
        """Keep what a round taught, where the server is taught it again."""

    def save(self, state: TrainingRounds) -> None:
        """Keep the state after a round."""

    def load(self, fresh: TrainingRounds) -> None:
        """Fill rounds that have not begun with the state to continue from, if there is any."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerTask:
    """What a server knows before it asks anything. No rating is among it."""

    roster: Roster
    """Which node hosts which users."""
    n_items: int
    """Items of the catalogue."""
    scale: RatingScale
    catalogue: Catalogue | None
    """Public data about the items."""
    server_seed: int
    """Of what the server draws."""
    public_seed: int
    """Of what devices and server draw alike."""
    group: str
    """Run key of the population on disk."""
    progress: Progress
    ended: Callable[[RoundRecord], None]
    """Called with the record of every round that has ended, where a protocol has several; those of the others
    are in the outcome, as is that of the last round of a simulation, whose outcome the caller judges.
    """

    represents: int | None = None
    """How large a population the users represent; None where all are there."""
    exchange_of: ExchangeOf | None = None
    """What makes what is said around the releases of a sum, where devices mask what they send; None in a
    simulation.
    """
    attacked: bool = False
    """Whether the outcome is to hold what the server has seen, for attacks."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.roster.n_users

    @property
    def population(self) -> int:
        """Number of users whom the figures are about."""
        return self.represents or self.n_users


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ServerTask):
    """What a protocol works on in a simulation."""

    train: Ratings
    """The train ratings."""
    judged: Ratings
    """What those hold whose predictions are judged: `train`, or what is given to cold users."""
    seed: int
    """Of the experiment: data sets, splits, held-back ratings. Neither devices nor server are given it."""
    metric: AccuracyMetric
    """From what predicts, a function that returns entries of the hidden matrix or None, and what predicts all
    items of users or None, to the accuracy on the test ratings, which neither devices nor server would know.
    """
    checkpoints: CheckpointStore | None
    """Where a protocol with rounds keeps its state."""
    chosen: Uint8s | None = None
    """The number of every user's own epsilon; None if all have the same; shape (users,)."""
    tested: Ratings | None = None
    """What users are tested on, where devices are told; see `dprec.protocols.base.Facts.told_tested`."""
    never_asked: Bools | None = None
    """Whom a deployment of the same attendance asked nothing; nothing is charged to them; shape (users,)."""
    restore: Callable[[HeldQuestion], None]
    """Gives the devices what they had received before the run was interrupted."""

    def for_server(self) -> ServerTask:
        """Return what the server knows of it."""
        return ServerTask(**{field.name: getattr(self, field.name) for field in fields(ServerTask)})


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerOutcome:
    """What a server knows of a protocol that has ended."""

    traffic: TrafficLedger
    accountant: PrivacyAccountant
    """What was released about the users, and what is proved of their losses."""
    guarantee: Guarantee
    rounds: tuple[RoundRecord, ...]
    """Empty where nothing is sent."""
    channel: DeviceChannel | None = None
    """The channel that the devices applied to their ratings; None if it adds no noise."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures must know."""
    diagnostics: dict[str, Any] = field(default_factory=dict)
    """What the completion learned; JSON values only. They are shown as they are: what anything else reads has
    a field.
    """
    mixture: FittedMixture | None = None
    """What the completion took the noise for, if it was a mixture."""
    domains: LearnedDomains | None = None
    """Two domains as the server knows them, if it compared any."""
    noise: tuple[float, ...] = ()
    """Standard deviation of the noise of each sum, for contributions of a norm of 1; empty without any."""
    tau: float | None = None
    """Noise per user and number of a sum that has the whole budget; None without noisy sums."""
    distance: dict[str, float | None] = field(default_factory=dict)
    """Root mean square difference between the reports and the ratings, and a bound on it, if a paper gives
    one.
    """
    seconds: float = 0.0
    """How long the protocol took in this process, measured by the caller."""

    @property
    def clients_seconds(self) -> float:
        """Seconds of the rounds, in which the devices work, including rounds before an interruption."""
        return sum(record.seconds for record in self.rounds)

    @property
    def server_seconds(self) -> float:
        """Seconds outside the rounds; 0 if rounds before an interruption outweigh them."""
        return max(0.0, self.seconds - self.clients_seconds)


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome(ServerOutcome):
    """What a protocol produces in a simulation, which knows what every device predicts."""

    predict: Predict
    """From arrays of users and items to predicted ratings, not clipped."""
    predict_rows: PredictRows | None = None
    """From users and the number of items to predicted ratings of all items, where that is cheaper than cell
    by cell.
    """
    hidden: Predict | None = None
    """From arrays of users and items to the entries of the hidden matrix behind the ratings, if the
    completion models one.
    """
    scores: Predict | None = None
    """From arrays of users and items to what lists are ranked by, if not by predictions."""
    transcript: Transcript | None = None
    """What was said, where `ServerTask.attacked`; None where nothing was."""

    @property
    def ranking(self) -> tuple[Predict, PredictRows | None]:
        """What lists are ranked by, cell by cell, and for all items at once where that is cheaper."""
        return (self.predict, self.predict_rows) if self.scores is None else (self.scores, None)
