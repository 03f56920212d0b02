"""The server's part of iterative factorisation: rounds of broadcast, gradient reports and a step.

This is a Flower `Strategy` whose arrays are the item factors; see `strategies.rounds`.
"""

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from dprec.accounting import ChannelDraws, PrivacyAccountant, dominating_channel
from dprec.arrays import Bools, Floats
from dprec.completion import Start, StepOptions, initial_item_factors, step_item_factors
from dprec.errors import RunError
from dprec.exchange import TRAIN, GradientRequest, bitmap_of
from dprec.gradients import Aggregate, GradientReport
from dprec.wire import BroadcastOptions, Factors, TrafficLedger, encode_broadcast
from strategies.participation import RoundRecord, SamplingOptions
from strategies.roster import ReadSums, Roster
from strategies.rounds import RoundAccount, TrainingRounds, request_content


@dataclass(eq=False)
class State:
    """Everything that a round changes, from which an interrupted run resumes."""

    factors: Floats
    velocity: Floats
    """Shape (items, rank)."""
    broadcast: Factors | None
    """What the last round sent, as the devices received it; shape (items, rank)."""
    holders: Bools
    """Users who are known to hold it; shape (users,)."""
    traffic: TrafficLedger
    accountant: PrivacyAccountant
    best_factors: Floats
    """Shape (items, rank)."""
    best_error: float = math.inf
    best_round: int = 0
    """The lowest validation error, and its round and item factors, for early stopping."""
    records: list[RoundRecord] = field(default_factory=list)
    """One per finished round."""

    @classmethod
    def begin(cls, rated: Bools, n_items: int, rank: int, seed: int, start: Start = "level") -> Self:
        """Return the state before the first round of users who have a rating to protect."""
        factors = initial_item_factors(n_items, rank, seed, start)
        return cls(
            factors=factors,
            velocity=np.zeros((n_items, rank)),
            broadcast=None,
            holders=np.zeros(rated.size, dtype=np.bool_),
            traffic=TrafficLedger(rated.size),
            accountant=PrivacyAccountant(rated),
            best_factors=factors.copy(),
        )

    @property
    def rounds_done(self) -> int:
        """Number of finished rounds."""
        return len(self.records)

    @property
    def empty_rounds(self) -> int:
        """Number of rounds without an accepted report since the last one that had any."""
        replies = [record.replies for record in self.records]
        return next((lag for lag, count in enumerate(reversed(replies)) if count), len(replies))


@dataclass(eq=False)
class IterativeFactorization(TrainingRounds):
    """Item factors learned from gradient reports."""

    gradient: GradientReport
    """What the devices report."""
    epsilon: float
    """Budget of one report; infinite if nothing is protected."""
    step: StepOptions
    broadcast: BroadcastOptions
    sampling: SamplingOptions
    seed: int
    """Of what the server draws."""
    public_seed: int
    """Of what devices and server draw alike."""
    group: str
    """Run key under which the devices find their setup."""
    roster: Roster
    state: State

    def __post_init__(self) -> None:
        epsilon = self.gradient.exact_epsilon(self.epsilon)
        self._report = ChannelDraws((dominating_channel(epsilon),))
        # The files of a checkpoint hold what earlier rounds cost, and not by which mechanism.
        self.state.accountant = self.state.accountant.through(self._report)

    @property
    def shape(self) -> tuple[int, int]:
        """Items and rank."""
        n_items, rank = self.state.factors.shape
        return n_items, rank

    @property
    def records(self) -> list[RoundRecord]:
        """One per finished round."""
        return self.state.records

    @property
    def arrays(self) -> ArrayRecord:
        """The item factors."""
        return ArrayRecord([self.state.factors])

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return a request per node with users who are asked; raises ValueError without item factors."""
        given = arrays.to_numpy_ndarrays()
        if len(given) != 1 or given[0].shape != self.shape:
            shapes = ", ".join(str(array.shape) for array in given)
            raise ValueError(f"arrays of shapes {shapes} given, not item factors of shape {self.shape}")
        self.state.factors = given[0].astype(np.float64)
        self._account = RoundAccount(TRAIN, self.group, self.state.traffic)
        self._asked = self.sampling.draw(self.roster.n_users, self.seed, server_round)
        factors = self.broadcast.rounded(self.state.factors)
        whole = encode_broadcast(factors)
        changes = encode_broadcast(factors, self.state.broadcast) if self.broadcast.delta else whole
        self._charge_broadcast(server_round, whole, changes)
        contents = {}
        for partition_id in range(len(self.roster.node_ids)):
            partition = self.roster.partition(partition_id)
            asked = self._asked[partition.start : partition.stop]
            if not asked.any():
                continue
            # A node keeps one copy: it can apply the changes only if all its asked users could.
            up_to_date = bool(self.state.holders[partition.start : partition.stop][asked].all())
            payload = changes if up_to_date else whole
            request = GradientRequest(server_round, payload, bitmap_of(asked))
            contents[partition_id] = request_content(request)
        self.state.broadcast = factors
        return self.roster.messages(TRAIN, contents, self.group)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Read the reports and take a step; see Flower's `Strategy`."""
        answers = self.roster.by_partition(replies)
        sent, in_time = np.zeros((2, self.roster.n_users), dtype=np.bool_)
        aggregate: Aggregate | None = None
        reading = ReadSums.of_gradients(self.gradient, self.shape, self.roster.users_per_node)
        for arrivals in self.roster.read(answers, self._asked, reading):
            self._account.charge_reports(arrivals)
            sent[arrivals.senders] = True
            in_time[arrivals.punctual_users] = True
            part = arrivals.aggregate
            aggregate = part if aggregate is None else aggregate + part
        loss = self.gradient.exact_epsilon(self.epsilon)
        self.state.accountant.step(server_round, sent, loss, loss, self._report)
        self.state.holders = in_time
        accepted = aggregate.users if aggregate is not None else 0
        if aggregate is not None and accepted:
            self._step(aggregate, server_round)
        asked = int(self._asked.sum())
        self.state.records.append(self._account.record(server_round, asked=asked, accepted=accepted))
        return ArrayRecord([self.state.factors]), MetricRecord({"replies": accepted, "asked": asked})

    def summary(self) -> None:
        """Log what is run."""
        logging.getLogger("flwr").info("\t└──> %s gradients, shape %s", self.gradient.kind, self.shape)

    def deliver(self, grid: Grid) -> None:
        """Send everybody the final item factors; see `deliver_parameters`."""
        factors = self.broadcast.rounded(self.state.factors)
        self.deliver_parameters(grid, encode_broadcast(factors), self.state.traffic)
        self.state.broadcast, self.state.factors = factors, factors.astype(np.float64)

    def _charge_broadcast(self, round_index: int, whole: bytes, changes: bytes) -> None:
        for users, payload in (
            (self._asked & ~self.state.holders, whole),
            (self._asked & self.state.holders, changes),
        ):
            content = request_content(GradientRequest(round_index, payload))
            self._account.charge_request(users, content, len(payload))

    def _step(self, aggregate: Aggregate, round_index: int) -> None:
        gradient = self.gradient.gradient(aggregate, self.shape, self.epsilon, self.public_seed)
        share = None if aggregate.raters is None else aggregate.raters / aggregate.users
        with np.errstate(all="ignore"):
            factors, velocity = step_item_factors(
                self.state.factors, self.state.velocity, gradient, share, round_index, self.step
            )
        if not (np.isfinite(factors).all() and np.isfinite(velocity).all()):
            raise RunError(f"the item factors diverged in round {round_index}; try a smaller step.size")
        self.state.factors, self.state.velocity = factors, velocity
