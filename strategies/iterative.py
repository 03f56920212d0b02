"""The server's part of iterative factorisation: rounds of broadcast, gradient reports and a step.

This is a Flower `Strategy` whose arrays are the item factors; see `strategies.rounds`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from dprec.accounting import ChannelDraws, PrivacyAccountant, dominating_channel
from dprec.arrays import Bools, Floats, Int32s, Ints, Pieces, offsets, segments
from dprec.attacks import ReleasedSum
from dprec.channel import Channel
from dprec.completion import (
    Biases,
    Domain,
    HiddenMatrix,
    OneBit,
    Start,
    StepOptions,
    initial_item_factors,
    step_item_factors,
)
from dprec.errors import RunError
from dprec.exchange import ROW_ENTRY, SLOPES, STATISTICS, TRAIN, GradientRequest, SlopesRequest
from dprec.exchange.messages import UPDATE
from dprec.federated import FederatedModel, Parameters, UpdateCode
from dprec.gradients import Aggregate, GradientReport
from dprec.protocols.rounds import SamplingOptions
from dprec.protocols.sums import SummedServer
from dprec.randomness import ReleaseDraws
from dprec.sums import Aggregation, Cost, Layout
from dprec.wire import BroadcastOptions, Factors, ReportCodec, SymbolRows, TrafficLedger, encode_broadcast
from strategies.participation import RoundRecord
from strategies.releases import ChargedExchange, Release, ReleaseExchange
from strategies.roster import ReadSums, Roster, Sums
from strategies.rounds import (
    OwnModelRounds,
    Received,
    RoundAccount,
    SummedRounds,
    TrainingRounds,
    request_content,
)


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
    received: list[Received] | None = None
    """Where what each user sends in a round is kept, if it is; no checkpoint holds it."""

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
        for users, payload in (
            (self._asked & ~self.state.holders, whole),
            (self._asked & self.state.holders, changes),
        ):
            content = request_content(GradientRequest(server_round, payload))
            self._account.charge_request(users, content, len(payload))

        def request_of(partition_id: int, asked: bytes | None) -> RecordDict:
            # A node keeps one copy: it can apply the changes only if all its asked users could.
            partition = self.roster.partition(partition_id)
            behind = (self._asked & ~self.state.holders)[partition.start : partition.stop]
            payload = whole if behind.any() else changes
            return request_content(GradientRequest(server_round, payload, asked))

        contents = self.roster.contents(self._asked, request_of)
        self.state.broadcast = factors
        if self.state.received is not None:
            self.state.received.append(Received(factors))
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
            if self.state.received is not None:
                self.state.received[-1].take(arrivals)
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

    def deliver(self, grid: Grid) -> None:
        """Send everybody the final item factors; see `deliver_parameters`."""
        factors = self.broadcast.rounded(self.state.factors)
        self.deliver_parameters(grid, encode_broadcast(factors), self.state.traffic)
        self.state.broadcast, self.state.factors = factors, factors.astype(np.float64)

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


@dataclass(eq=False)
class FederatedRounds(SummedRounds):
    """Parameters learned from sums of clipped updates."""

    message_type: ClassVar[str] = UPDATE
    model: FederatedModel
    code: UpdateCode
    deviation: float
    """Of the noise that the server adds to each number of a sum, in clips; 0 if it adds none."""
    cost: Cost
    """What a round costs a user, whoever adds the noise."""
    parameters: Parameters
    """Before the first round; those of the last round afterwards."""
    released: list[ReleasedSum] = field(default_factory=list, init=False)
    """All sums, in clips, where what is received is kept."""

    @property
    def broadcast(self) -> Parameters:
        """The parameters as devices receive them."""
        return self.code.unpack(self._model_bytes())

    def _model_bytes(self) -> bytes:
        return self.code.pack(self.parameters)

    def _reading(self, server_round: int) -> ReadSums:
        code = self.code
        return ReadSums(code.decode, code.possible, (code.size,), None, self.roster.users_per_node)

    def _cost(self, server_round: int) -> Cost:
        return self.cost

    def __post_init__(self) -> None:
        super().__post_init__()
        self._step = self.model.steps()

    def _learn(self, server_round: int, total: Aggregate, present: Bools) -> None:
        if total.users:
            draws = ReleaseDraws(self.seed, server_round)
            update = self.code.released(total.total, self.roster.n_users, self.deviation, draws)
            if self.received is not None:
                users, code = self.roster.n_users, self.code
                numbers = np.concatenate([each.ravel() for each in update]) * (users / code.clip)
                deviation = math.hypot(self.deviation, code.deviation * math.sqrt(total.users))
                self.released.append(ReleasedSum(numbers, deviation))
            self.parameters = self._step(self.broadcast, update, server_round)

    def deliver(self, grid: Grid) -> None:
        """Send everybody what was learned; see `deliver_parameters`."""
        self.deliver_parameters(grid, self._model_bytes(), self.traffic)


@dataclass(eq=False)
class LearningFromSums(SummedRounds):
    """Whatever a method learns from sums with noise."""

    message_type: ClassVar[str] = STATISTICS
    server: SummedServer
    aggregation: Aggregation
    multipliers: tuple[float, ...]
    """Noise of each round."""
    costs: tuple[Cost, ...]
    """What each round costs a user."""
    public_seed: int
    """Of what everybody knows."""
    exchange: ReleaseExchange | None = None
    """What is said around the reports of a release; by default nothing, as in a simulation."""
    failed: int = field(default=0, init=False)
    """Releases that failed, as too many devices dropped out or sums were spoiled; their budget is spent."""
    released: dict[int, ReleasedSum] = field(default_factory=dict, init=False)
    """The sum of each round that did not fail, where what is received is kept."""
    asked: list[tuple[Layout, float]] = field(default_factory=list, init=False)
    """What was asked for in each round then, and its multiplier."""
    noise: dict[int, float] = field(default_factory=dict, init=False)
    """The deviation of each release that did not fail, as the learner was told it."""
    learned_of: int = field(default=0, init=False)
    """Users who are in the last of these."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._exchange = self.exchange or ChargedExchange(self.aggregation)

    def _model_bytes(self) -> bytes:
        return self.server.held.encode()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the requests of a round; see `SummedRounds`."""
        requests = super().configure_train(server_round, arrays, config, grid)
        if self.received is not None:
            self.asked.append(self._asked_for(server_round))
        return requests

    def _asking(self, server_round: int, model: bytes, grid: Grid) -> dict[int, RecordDict]:
        """Exchange what the aggregation needs before the reports; see `SummedRounds`."""
        self._account.sealed = self.aggregation.sealed
        self._current = Release(server_round, self._account, grid, self.roster, self.group)
        return self._exchange.asking(self._current, model)

    def _asked_for(self, server_round: int) -> tuple[Layout, float]:
        """Return the layout of what a round releases, and its multiplier."""
        return self.server.held.release(server_round), self.multipliers[server_round - 1]

    def _reading(self, server_round: int) -> ReadSums:
        aggregation, (layout, multiplier) = self.aggregation, self._asked_for(server_round)
        return ReadSums(
            partial(aggregation.decode, layout=layout, multiplier=multiplier),
            partial(aggregation.possible, layout=layout, multiplier=multiplier),
            aggregation.sum_shape(layout),
            None,
            self.roster.users_per_node,
        )

    def _taken(self, server_round: int, sums: Sums) -> tuple[Sums, Ints, Bools]:
        asked_for = self._asked_for(server_round)
        charged = replace(sums, sent=self.aggregation.sizes(sums.sent, *asked_for, server_round))
        paying = charged.senders[self.aggregation.costing(charged.payloads)]
        return charged, paying, sums.punctual & self.aggregation.whole(sums.sent, *asked_for)

    def _cost(self, server_round: int) -> Cost:
        return self.costs[server_round - 1]

    def _learn(self, server_round: int, total: Aggregate, present: Bools) -> None:
        """Take the item step; where nobody contributes, or too few for a release, nothing is learned."""
        layout, multiplier = self._asked_for(server_round)
        unmasked = None
        if self.aggregation.can_release(present, total.users, server_round, self.public_seed):
            if not total.users:
                return
            unmasked = self._exchange.unmasked(self._current, total, present, layout, multiplier)
        if unmasked is None:
            self.failed += 1
            return
        draws = ReleaseDraws(self.seed, server_round)
        released = self.aggregation.release(unmasked, layout, multiplier, draws)
        deviation = self.aggregation.noise_in(unmasked, layout, multiplier)
        users = self.aggregation.counted(unmasked.users)
        if self.received is not None:
            self.released[server_round] = ReleasedSum((released / layout.scales).ravel(), deviation)
        try:
            self.server.learn(layout, server_round, released, deviation, users)
        except np.linalg.LinAlgError:
            # No honest devices add up to such numbers: somebody has spoiled them.
            self.failed += 1
        else:
            self.noise[server_round], self.learned_of = deviation, users

    def deliver(self, grid: Grid) -> None:
        """Send everybody what was learned; see `deliver_parameters`."""
        self.deliver_parameters(grid, self.server.learned.encode(), self.traffic)


@dataclass(frozen=True, eq=False)
class ReceivedSlopes:
    """What was sent in a round about the slopes of cells, and what devices had been sent of these."""

    users: Int32s
    items: Int32s
    """By user, items ascending within a user; shape (cells,)."""
    symbols: Ints
    entries: Floats
    """Entries of the hidden matrix, from which a slope follows and the sign of the rating."""


@dataclass(eq=False)
class GradientPerturbation(OwnModelRounds):
    """Projected steps along noisy gradients (Li et al. [li2021], Algorithm 3)."""

    completion: OneBit
    """The model and its constraints."""
    channel: Channel
    """The channel through which every entry of a gradient is sent."""
    step: float
    """Length of the projected step, as a multiple of one over the likelihood's curvature at 0."""
    counts: Ints
    """Ratings of each user, for the ledger; shape (users,)."""
    n_items: int
    seed: int
    group: str
    """Run key under which the devices find their setup."""
    roster: Roster
    received: list[ReceivedSlopes] | None = None
    """Where what users send in a round is kept, if it is."""

    def __post_init__(self) -> None:
        users = self.roster.n_users
        self.traffic, self.accountant = TrafficLedger(users), PrivacyAccountant(rated=self.counts > 0)
        self._slopes = ChannelDraws((self.channel,), draws=self.counts)
        self._records = []
        self._codec, self._rows = ReportCodec(self.channel, self.n_items), SymbolRows(self.channel)
        self._cells, self._counts = np.zeros(0, dtype=np.int64), np.zeros(users, dtype=np.int64)
        empty = np.zeros(0, dtype=np.int32)
        self.matrix = HiddenMatrix(
            self.completion.link_function, Biases.zero(self.shape), self._domain(empty, empty).zero()
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.roster.n_users, self.n_items

    @property
    def observed(self) -> tuple[Int32s, Int32s]:
        """Users and items of the cells that are known to be rated, by user."""
        return self._users_and_items(self._cells)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return one request per node, with the rows of its users; raises ValueError for arrays."""
        self.refuse_arrays(arrays)
        self._account = RoundAccount(SLOPES, self.group, self.traffic)
        entries = self.matrix.hidden(*self.observed).astype(ROW_ENTRY).tobytes()
        rows = Pieces(entries, offsets(self._counts) * ROW_ENTRY.itemsize)
        everybody = np.arange(self.roster.n_users)
        self._account.charge_requests(
            everybody, rows.sizes, lambda row: request_content(SlopesRequest(server_round, [row]))
        )
        contents = {}
        for partition_id in range(len(self.roster.node_ids)):
            partition = self.roster.partition(partition_id)
            request = SlopesRequest(server_round, list(rows[partition.start : partition.stop]))
            contents[partition_id] = request_content(request)
        return self.roster.messages(SLOPES, contents, self.group)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Read the slopes and take a step; see Flower's `Strategy`."""
        n_users = self.roster.n_users
        cells, symbols, accepted = [], [], 0
        sent, everybody = np.zeros(n_users, dtype=np.bool_), np.ones(n_users, dtype=np.bool_)
        for arrivals in self.roster.arrivals(self.roster.by_partition(replies), everybody):
            self._account.charge_reports(arrivals)
            sent[arrivals.senders] = True
            valid, own, said = self._read(arrivals.punctual_users, arrivals.in_time())
            accepted += valid
            cells.append(own)
            symbols.append(said)
        loss = self.channel.epsilon
        per_user = self.counts.astype(np.float64) * loss
        self.accountant.step(server_round, sent, loss, per_user, self._slopes)
        if accepted:
            all_cells, all_symbols = np.concatenate(cells), np.concatenate(symbols)
            if self.received is not None:
                self.received.append(self._received(all_cells, all_symbols))
            self._move(all_cells, self.channel.values[all_symbols])
        self._records.append(self._account.record(server_round, asked=n_users, accepted=accepted))
        return None, MetricRecord({"replies": accepted, "asked": n_users})

    def _received(self, cells: Ints, symbols: Ints) -> ReceivedSlopes:
        """Return what was sent, with the entries as devices know them: 0 before the first report."""
        order = np.argsort(cells)
        users, items = self._users_and_items(cells[order])
        entries = self.matrix.hidden(users, items).astype(ROW_ENTRY).astype(np.float64)
        entries[~np.isin(cells[order], self._cells)] = 0.0
        return ReceivedSlopes(users, items, symbols[order], entries)

    def _read(self, users: Ints, reports: Pieces) -> tuple[int, Ints, Ints]:
        """Decode the reports of some users: how many are valid, and their cells and symbols."""
        known = self._counts[users] > 0
        new, old = users[~known], users[known]
        first = self._codec.decode(reports.chosen(np.flatnonzero(~known)))
        new_cells = np.repeat(new, np.diff(first.indptr)) * self.n_items + first.items
        counts = self._counts[old]
        valid, symbols = self._rows.decode(reports.chosen(np.flatnonzero(known)), counts)
        starts = offsets(self._counts)[old]
        old_cells = self._cells[segments(starts[valid], counts[valid])]
        return (
            int(first.valid.sum() + valid.sum()),
            np.concatenate([new_cells, old_cells]),
            np.concatenate([first.symbols, symbols]).astype(np.int64),
        )

    def _move(self, cells: Ints, slopes: Floats) -> None:
        order = np.argsort(cells)
        cells, slopes = cells[order], slopes[order]
        users, items = self._users_and_items(cells)
        link, biases = self.completion.link_function, self.matrix.biases
        if self.completion.biases:
            ridge = self.completion.absolute_ridge
            biases, slopes = biases.stepped(users, items, slopes, link.largest_curvature, ridge)
        length = self.step / float(link.curvature(np.zeros(1))[0])
        point = self._domain(users, items).step(self.matrix.point, slopes, length)
        self.matrix = HiddenMatrix(link, biases, point)
        self._cells = np.union1d(self._cells, cells)
        self._counts = np.bincount(self._cells // self.n_items, minlength=self.roster.n_users)

    def _domain(self, users: Int32s, items: Int32s) -> Domain:
        return self.completion.domain(users, items, self.shape, self.seed)

    def _users_and_items(self, cells: Ints) -> tuple[Int32s, Int32s]:
        users, items = np.divmod(cells, self.n_items)
        return users.astype(np.int32), items.astype(np.int32)
