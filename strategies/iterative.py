"""The server's part of iterative factorisation: rounds of broadcast, gradient reports and a step.

A Flower `Strategy`: `start()` runs it as any other, and `run_round` runs one round for a caller who
checkpoints, evaluates or stops early. Who takes part in a round follows from the seed and the
user's number, never from the nodes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray

from dprec.completion.item_updates import StepOptions, initial_item_factors, step_item_factors
from dprec.errors import RunError, SettingError
from dprec.gradients import Aggregate, GradientReport
from dprec.messages import DELIVER, TRAIN, Delivery, GradientRequest, bitmap_of
from dprec.options import Options, option
from dprec.privacy.ledger import PrivacyLedger
from dprec.randomness import subset, words
from dprec.wire.broadcast import BroadcastOptions, Factors, encode_broadcast
from dprec.wire.traffic import TrafficLedger
from strategies.envelope import message_size, reply_message, report_sizes, request_content, request_message
from strategies.roster import Arrivals, Roster, arrivals_of
from strategies.rounds import RoundRecord, traffic_totals


@dataclass(frozen=True, kw_only=True)
class SamplingOptions(Options):
    """Who is asked in a round; everybody by default."""

    fraction: float | None = option("Share of the users, drawn anew each round.", None, gt=0, le=1)
    count: int | None = option("Number of users, drawn anew each round.", None, ge=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fraction is not None and self.count is not None:
            raise SettingError("", "a fraction and a count", "one of the two")

    def size(self, n_users: int) -> int:
        """Return how many of the users are asked.

        Raises
        ------
        SettingError
            When nobody would be asked, or more than there are.
        """
        wanted = n_users if self.count is None else self.count
        if self.fraction is not None:
            wanted = round(self.fraction * n_users)
        if not 1 <= wanted <= n_users:
            key = "count" if self.count is not None else "fraction"
            found = f"{getattr(self, key)} selects {wanted} of {n_users} users"
            raise SettingError(key, found, "one that selects at least one and at most all")
        return wanted


@dataclass(eq=False)
class State:
    """Everything that a round changes, and that an interrupted run goes on from.

    Parameters
    ----------
    factors, velocity : ndarray of float64, shape (items, rank)
    broadcast : ndarray, shape (items, rank), or None
        What the last round sent, as the devices saw it.
    holders : ndarray of bool, shape (users,)
        Who is known to hold it.
    traffic : TrafficLedger
    privacy : PrivacyLedger
    best_factors : ndarray of float64, shape (items, rank)
    best_error, best_round : float and int
        Where the validation error was lowest, for early stopping.
    records : list of RoundRecord
        One per finished round.
    """

    factors: NDArray[np.float64]
    velocity: NDArray[np.float64]
    broadcast: Factors | None
    holders: NDArray[np.bool_]
    traffic: TrafficLedger
    privacy: PrivacyLedger
    best_factors: NDArray[np.float64]
    best_error: float = math.inf
    best_round: int = 0
    records: list[RoundRecord] = field(default_factory=list)

    @classmethod
    def begin(cls, rated: NDArray[np.bool_], n_items: int, rank: int, seed: int) -> State:
        """Return the state before the first round.

        Parameters
        ----------
        rated : ndarray of bool, shape (users,)
            Who has a rating to protect.
        n_items, rank, seed : int
        """
        factors = initial_item_factors(n_items, rank, seed)
        return cls(
            factors=factors,
            velocity=np.zeros((n_items, rank)),
            broadcast=None,
            holders=np.zeros(rated.size, dtype=np.bool_),
            traffic=TrafficLedger(rated.size),
            privacy=PrivacyLedger(rated),
            best_factors=factors.copy(),
        )

    @property
    def rounds_done(self) -> int:
        """Number of finished rounds."""
        return len(self.records)

    @property
    def empty_rounds(self) -> int:
        """Rounds without an accepted report since the last one that had any."""
        replies = [record.replies for record in self.records]
        return next((lag for lag, count in enumerate(reversed(replies)) if count), len(replies))


@dataclass(eq=False)
class IterativeFactorization(Strategy):
    """Item factors learned from gradient reports.

    Parameters
    ----------
    gradient : GradientReport
        What the devices report.
    epsilon : float
        Budget of one report; infinite where nothing is protected.
    step : StepOptions
    broadcast : BroadcastOptions
    sampling : SamplingOptions
    seed : int
    group : str
        Run key under which the devices find their setup.
    roster : Roster
    state : State
    """

    gradient: GradientReport
    epsilon: float
    step: StepOptions
    broadcast: BroadcastOptions
    sampling: SamplingOptions
    seed: int
    group: str
    roster: Roster
    state: State

    @property
    def shape(self) -> tuple[int, int]:
        """Items and rank."""
        n_items, rank = self.state.factors.shape
        return n_items, rank

    def run_round(self, grid: Grid) -> RoundRecord:
        """Run the next round: ask, read, account, step."""
        round_index = self.state.rounds_done + 1
        arrays = ArrayRecord([self.state.factors])
        requests = self.configure_train(round_index, arrays, ConfigRecord(), grid)
        self.aggregate_train(round_index, grid.send_and_receive(requests))
        return self.state.records[-1]

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return one request per node with users who are asked; see Flower's `Strategy`.

        Raises
        ------
        ValueError
            When the arrays are not one array of item factors.
        """
        given = arrays.to_numpy_ndarrays()
        if len(given) != 1 or given[0].shape != self.shape:
            shapes = ", ".join(str(array.shape) for array in given)
            raise ValueError(f"arrays of shapes {shapes} where item factors of shape {self.shape} belong")
        self.state.factors = given[0].astype(np.float64)
        self._started, self._before = time.perf_counter(), traffic_totals(self.state.traffic)
        self._asked = self._draw_users(server_round)
        factors = self.broadcast.rounded(self.state.factors)
        whole = encode_broadcast(factors)
        changes = encode_broadcast(factors, self.state.broadcast) if self.broadcast.delta else whole
        self._charge_broadcast(server_round, whole, changes)
        requests = []
        for partition, node in enumerate(self.roster.node_ids):
            cohort = self.roster.cohort(partition)
            asked = self._asked[cohort.start : cohort.stop]
            if not asked.any():
                continue
            # A node keeps one copy: it can take the changes only where all its asked users could.
            up_to_date = bool(self.state.holders[cohort.start : cohort.stop][asked].all())
            payload = changes if up_to_date else whole
            content = request_content(GradientRequest(server_round, payload, bitmap_of(asked)))
            requests.append(Message(content, node, TRAIN, group_id=self.group))
        self.state.broadcast = factors
        return requests

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Read the reports and take a step; see Flower's `Strategy`."""
        answers = self.roster.by_partition(replies)
        sent, in_time = np.zeros((2, self.roster.n_users), dtype=np.bool_)
        aggregate: Aggregate | None = None
        for partition, reply in answers.items():
            cohort = self.roster.cohort(partition)
            users = cohort.start + np.flatnonzero(self._asked[cohort.start : cohort.stop])
            arrivals = arrivals_of(reply, cohort.start, users.size)
            if arrivals is None:
                continue
            self._charge_uplink(users, arrivals)
            sent[users[arrivals.arrived]] = True
            in_time[users[arrivals.punctual]] = True
            _, part = self.gradient.decode(arrivals.in_time(), self.shape)
            aggregate = part if aggregate is None else aggregate + part
        loss = self.gradient.exact_epsilon(self.epsilon)
        self.state.privacy.charge(server_round, sent, loss, loss)
        self.state.holders = in_time
        accepted = aggregate.users if aggregate is not None else 0
        if aggregate is not None and accepted:
            self._step(aggregate, server_round)
        asked = int(self._asked.sum())
        self.state.records.append(self._record(server_round, accepted, asked - accepted))
        return ArrayRecord([self.state.factors]), MetricRecord({"replies": accepted, "asked": asked})

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask nobody: devices evaluate nothing that they would have to send."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return nothing; see `configure_evaluate`."""
        return None

    def summary(self) -> None:
        """Log what is run."""
        logging.getLogger("flwr").info("\t└──> %s gradients, shape %s", self.gradient.kind, self.shape)

    def deliver(self, grid: Grid) -> None:
        """Send everybody the final item factors, with which devices make their own predictions.

        The bytes belong to the last round: they are what its accuracy costs.
        """
        before = traffic_totals(self.state.traffic)
        factors = self.broadcast.rounded(self.state.factors)
        payload = encode_broadcast(factors)
        content = request_content(Delivery(payload))
        size = message_size(request_message(DELIVER, content, self.group))
        self.state.traffic.charge_downlink(slice(None), len(payload), size)
        partitions = range(len(self.roster.node_ids))
        answers = self.roster.ask(grid, DELIVER, dict.fromkeys(partitions, content), self.group)
        acknowledgement = message_size(reply_message(DELIVER, RecordDict(), self.group))
        for partition in answers:
            cohort = self.roster.cohort(partition)
            self.state.traffic.charge_uplink(slice(cohort.start, cohort.stop), 0, acknowledgement)
        self.state.broadcast, self.state.factors = factors, factors.astype(np.float64)
        after = traffic_totals(self.state.traffic)
        last = self.state.records[-1]
        self.state.records[-1] = last.with_traffic({key: after[key] - before[key] for key in after})

    def _draw_users(self, round_index: int) -> NDArray[np.bool_]:
        n_users = self.roster.n_users
        size = self.sampling.size(n_users)
        return subset(size, words(self.seed, "sampling", 0, n_users, round_index=round_index))

    def _charge_broadcast(self, round_index: int, whole: bytes, changes: bytes) -> None:
        for users, payload in (
            (self._asked & ~self.state.holders, whole),
            (self._asked & self.state.holders, changes),
        ):
            content = request_content(GradientRequest(round_index, payload))
            size = message_size(request_message(TRAIN, content, self.group))
            self.state.traffic.charge_downlink(users, len(payload), size)

    def _charge_uplink(self, users: NDArray[np.int64], arrivals: Arrivals) -> None:
        """Charge everybody who sent a report for its bytes, whether or not it is used."""
        senders, payloads = users[arrivals.arrived], arrivals.payloads[arrivals.arrived]
        sizes = report_sizes(TRAIN, self.group, senders, payloads)
        self.state.traffic.charge_uplink(senders, payloads, sizes)

    def _step(self, aggregate: Aggregate, round_index: int) -> None:
        gradient = self.gradient.gradient(aggregate, self.shape, self.epsilon, self.seed)
        share = None if aggregate.raters is None else aggregate.raters / aggregate.users
        with np.errstate(all="ignore"):
            factors, velocity = step_item_factors(
                self.state.factors, self.state.velocity, gradient, share, round_index, self.step
            )
        if not (np.isfinite(factors).all() and np.isfinite(velocity).all()):
            raise RunError(
                f"the item factors diverged in round {round_index}; try a smaller protocol.step.size"
            )
        self.state.factors, self.state.velocity = factors, velocity

    def _record(self, round_index: int, replies: int, failures: int) -> RoundRecord:
        after = traffic_totals(self.state.traffic)
        return RoundRecord(
            round=round_index,
            replies=replies,
            failures=failures,
            accuracy=None,
            seconds=time.perf_counter() - self._started,
            **{key: after[key] - self._before[key] for key in after},
        )
