"""Rounds in which a server learns: what it asks, reads, accounts for and keeps, under any protocol.

The fields of a strategy are all that a round changes, so an interrupted run resumes from them.
"""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from dprec.accounting import PrivacyAccountant
from dprec.arrays import AnyArray, Bools, Ints, Pieces
from dprec.attacks import ReleasedSum
from dprec.exchange import REPLY, TELL, GradientRequest, SlopesRequest, Told
from dprec.gradients import Aggregate
from dprec.protocols.base import Public
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol, Slopes, SlopesServer
from dprec.protocols.rounds import AnsweringDevice, BroadcastProtocol, Device, LearningServer, RoundsProtocol
from dprec.wire import Exchanged, TrafficLedger
from strategies.participation import RoundRecord
from strategies.roster import Reader, ReadSums, Replies, Roster, Sums, arrivals_of
from strategies.rounds import RoundAccount, broadcast_parameters, request_content

RepliesT = TypeVar("RepliesT", bound=Replies)

_LEDGER, _SERVER, _KEPT = "privacy_", "server_", "kept_"
"""Prefixes of the names of arrays: of the privacy ledger, of the server, and of what devices keep."""


def encoded(**devices: Device | None) -> dict[str, AnyArray]:
    """Return what devices hold as the bytes that they are sent, by name, where they hold anything."""
    return {
        name: np.frombuffer(device.encode(), dtype=np.uint8)
        for name, device in devices.items()
        if device is not None
    }


def named(arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    """Return the arrays whose names begin with something, by what follows it, in their order."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


@dataclass(frozen=True, eq=False)
class Received:
    """What a server that remembers everything keeps of a round."""

    model: Any
    """What everybody was sent, as devices received it."""
    parts: list[tuple[Ints, Pieces]] = field(default_factory=list)
    """Users who can be told apart, and the reports of these."""

    def take(self, sums: Sums) -> None:
        """Keep the reports of a partition, if it was reports that arrived."""
        if sums.reports is not None:
            self.parts.append((sums.punctual_users, sums.reports))


@dataclass(eq=False)
class TrainingRounds(Strategy):
    """A Flower `Strategy` whose model stays with it, and which evaluates nothing on the devices.

    There are no arrays: devices are sent bytes of the model. `start()` runs it like any other; `run_round`
    runs one round, for a caller that checkpoints, evaluates or stops early. Who is asked, and what it costs,
    is the same whatever is learned.
    """

    protocol: RoundsProtocol
    public: Public
    seed: int
    """Of what the server draws."""
    public_seed: int
    """Of what devices and server draw alike."""
    group: str
    """Run key under which the devices find what is installed."""
    roster: Roster
    rated: Bools
    """Users who have a rating to protect; shape (users,)."""
    counts: Ints | None = None
    """Ratings of each user, for the ledger, where they are known; shape (users,)."""
    remembers: bool = False
    """Whether what each user sends in a round is kept."""
    server: Any = field(init=False)
    """What it has learned."""
    records: list[RoundRecord] = field(default_factory=list, init=False)
    """One per finished round."""
    traffic: TrafficLedger = field(init=False)
    accountant: PrivacyAccountant = field(init=False)
    holders: Bools = field(init=False)
    """Users whose last report arrived in time, who hold what the last round sent; shape (users,)."""
    broadcast: Device | None = field(default=None, init=False)
    """What the last round sent, where everybody is sent the same."""
    kept: tuple[AnyArray, ...] = field(default=(), init=False)
    """What devices keep, users first, where a simulation has them tell it."""

    def __post_init__(self) -> None:
        self.traffic = TrafficLedger(self.roster.n_users)
        self.accountant = PrivacyAccountant(self.rated, adjacency=self.protocol.compares)
        self.holders = np.zeros(self.roster.n_users, dtype=np.bool_)

    @property
    def empty_rounds(self) -> int:
        """Number of rounds without an accepted report since the last one that had any."""
        replies = [record.replies for record in self.records]
        return next((lag for lag, count in enumerate(reversed(replies)) if count), len(replies))

    @property
    def resumable(self) -> bool:
        """Whether an interrupted run goes on from what is `stored`, or begins anew."""
        return False

    def stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return what the rounds so far have changed: arrays, and JSON values."""
        ledger = {f"{_LEDGER}{name}": array for name, array in self.accountant.to_arrays().items()}
        state = {f"{_KEPT}{place}": array for place, array in enumerate(self.kept)}
        values = {
            "records": [vars(record) for record in self.records],
            "first_user": [
                [
                    kind,
                    up,
                    exchanged.messages,
                    exchanged.payload_bytes,
                    exchanged.message_bytes,
                    exchanged.example.hex(),
                ]
                for (kind, up), exchanged in self.traffic.first_user.items()
            ],
        }
        return {**self._places, **ledger, **state, **encoded(broadcast=self.broadcast)}, values

    def resume(
        self, arrays: Mapping[str, AnyArray], values: Mapping[str, Any], lessons: Callable[[int], AnyArray]
    ) -> None:
        """Go on from what was `stored`, before the first round.

        Parameters
        ----------
        lessons : callable
            Returns what a round taught, where the server is taught it again.

        Raises
        ------
        LookupError, TypeError, ValueError
            When something is missing, or of another run.
        """
        # The history says neither by which mechanisms users lost nor what is compared: the protocol does.
        loaded = PrivacyAccountant.from_arrays(named(arrays, _LEDGER))
        loaded = loaded.through(lambda number: self.protocol.charge(number, self.counts).mechanism)
        self.accountant = replace(loaded, adjacency=self.accountant.adjacency)
        for name, place in self._places.items():
            place[...] = arrays[name]
        self.kept = tuple(named(arrays, _KEPT).values())
        self.broadcast = self.decoded(arrays.get("broadcast"))
        self.records = [RoundRecord(**record) for record in values["records"]]
        for kind, up, messages, payload, message, example in values["first_user"]:
            exchanged = Exchanged(messages, payload, message, bytes.fromhex(example))
            self.traffic.first_user[kind, up] = exchanged

    def decoded(self, sent: AnyArray | None) -> Any:
        """Return what devices hold that were sent some bytes, which are `encoded`; None for none.

        Raises ValueError for malformed ones.
        """
        if sent is None:
            return None
        protocol: Any = self.protocol
        return protocol.device(sent.tobytes(), self.public.n_items, self.public.scale)

    @property
    def _places(self) -> dict[str, AnyArray]:
        """The arrays that are there from the beginning."""
        columns = {f"traffic_{name}": column for name, column in self.traffic.columns.items()}
        return {"holders": self.holders} | columns

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return a request per node with users who are asked; raises ValueError for arrays to start from."""
        if len(arrays):
            raise ValueError(f"{len(arrays)} arrays given, but the strategy starts from its own model")
        self._account = RoundAccount(self.protocol.message_type, self.group, self.traffic)
        self._asked = self.protocol.sampling.draw(self.roster.n_users, self.seed, server_round)
        return self.roster.messages(
            self.protocol.message_type, self._questions(server_round, grid), self.group
        )

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Read the reports, account for them, and learn; see Flower's `Strategy`."""
        answers = self.roster.by_partition(replies)
        sent, in_time = np.zeros((2, self.roster.n_users), dtype=np.bool_)

        def arriving(reader: Reader[RepliesT]) -> Iterator[RepliesT]:
            for arrivals in self.roster.read(answers, self._asked, reader):
                charged, paying = self._charged(server_round, arrivals)
                self._account.charge_reports(charged)
                sent[paying] = True
                in_time[arrivals.punctual_users] = True
                yield arrivals

        accepted = self._learn(server_round, arriving)
        price = self.protocol.charge(server_round, self.counts)
        charged = np.ones_like(sent) if price.everybody else sent
        self.accountant.step(server_round, charged, price.per_rating, price.per_user, price.mechanism)
        self.holders = in_time
        asked = int(self._asked.sum())
        self.records.append(self._account.record(server_round, asked=asked, accepted=accepted))
        return None, MetricRecord({"replies": accepted, "asked": asked})

    def summary(self) -> None:
        """Log what is run."""
        logging.getLogger("flwr").info("\t└──> %s", type(self).__name__)

    def run_round(self, grid: Grid) -> RoundRecord:
        """Run the next round: ask, read, account, learn."""
        server_round = len(self.records) + 1
        requests = self.configure_train(server_round, ArrayRecord(), ConfigRecord(), grid)
        self.aggregate_train(server_round, grid.send_and_receive(requests))
        return self.records[-1]

    def deliver(self, grid: Grid) -> None:
        """Send everybody what was learned, from which devices make their own predictions.

        The bytes are charged to the last round: its accuracy depends on them.
        """
        learned = self.learned.encode()
        spent = broadcast_parameters(grid, self.roster, self.group, learned, self.traffic)
        self.records[-1] = self.records[-1].with_traffic(spent)

    @property
    def learned(self) -> Device:
        """What is delivered."""
        learned: Device = self.server.learned
        return learned

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask nobody: devices evaluate nothing that they could send."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return nothing; see `configure_evaluate`."""
        return None

    def _charged(self, server_round: int, arrivals: RepliesT) -> tuple[RepliesT, Ints]:
        """Return what arrived as its bytes are charged, and whose report costs them something."""
        return arrivals, arrivals.senders

    @abstractmethod
    def _questions(self, server_round: int, grid: Grid) -> dict[int, RecordDict]:
        """Return what is sent to those who are asked, by partition, and charge it."""

    @abstractmethod
    def _learn(self, server_round: int, arriving: Callable[[Reader[Any]], Iterator[Any]]) -> int:
        """Read what arrives by a reader and learn from it; return how many reports were accepted."""


@dataclass(eq=False)
class BroadcastRounds(TrainingRounds):
    """Rounds in which everybody is sent the same, and of reports the sum is used."""

    protocol: BroadcastProtocol
    server: LearningServer = field(init=False)
    broadcast: AnsweringDevice | None = field(default=None, init=False)
    best: AnsweringDevice | None = field(default=None, init=False)
    best_error: float = field(default=math.inf, init=False)
    best_round: int = field(default=0, init=False)
    """Of the round with the lowest validation error: what was learned, and the error; for early stopping."""
    received: list[Received] = field(default_factory=list, init=False)
    released: list[ReleasedSum] = field(default_factory=list, init=False)
    """Of all rounds, where the strategy remembers; no checkpoint holds it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.server = self.protocol.server(self.public, self.seed, self.public_seed)

    @property
    def resumable(self) -> bool:
        """Whether the server says what it remembers."""
        return self.server.arrays is not None

    def stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return what the rounds so far have changed, with the server's arrays; see `TrainingRounds`."""
        arrays, values = super().stored()
        server_arrays = {f"{_SERVER}{name}": array for name, array in (self.server.arrays or {}).items()}
        best = {"best_error": self.best_error, "best_round": self.best_round}
        return {**arrays, **server_arrays, **encoded(best=self.best)}, values | best

    def resume(
        self, arrays: Mapping[str, AnyArray], values: Mapping[str, Any], lessons: Callable[[int], AnyArray]
    ) -> None:
        """Go on from what was `stored`; see `TrainingRounds`."""
        super().resume(arrays, values, lessons)
        self.server.resume(named(arrays, _SERVER))
        self.best = self.decoded(arrays.get("best"))
        self.best_error, self.best_round = values["best_error"], values["best_round"]

    def _questions(self, server_round: int, grid: Grid) -> dict[int, RecordDict]:
        question = self.server.held
        in_full = question.encode()
        changes = in_full
        if self.protocol.keeps_last and self.broadcast is not None:
            changes = question.changes(self.broadcast)
        behind = self._asked & ~self.holders
        for users, payload in ((behind, in_full), (self._asked & self.holders, changes)):
            content = request_content(GradientRequest(server_round, payload))
            self._account.charge_request(users, content, len(payload))

        def request_of(partition_id: int, bitmap: bytes | None) -> RecordDict:
            # A node keeps one copy: it can apply the changes only if all its asked users could.
            partition = self.roster.partition(partition_id)
            payload = in_full if behind[partition.start : partition.stop].any() else changes
            return request_content(GradientRequest(server_round, payload, bitmap))

        self.broadcast = question
        if self.remembers:
            self.received.append(Received(question))
        return self.roster.contents(self._asked, request_of)

    def _learn(self, server_round: int, arriving: Callable[[Reader[Any]], Iterator[Any]]) -> int:
        device = self.broadcast
        assert device is not None, "a round in which nothing was asked"
        total: Aggregate | None = None
        for sums in arriving(ReadSums(*device.reading, self.roster.believed)):
            if self.remembers:
                self.received[-1].take(sums)
            total = sums.aggregate if total is None else total + sums.aggregate
        if total is None or not total.users:
            if not self.protocol.learns_of_nobody:
                return 0
            total = Aggregate(np.zeros(device.reading.sum_shape, dtype=np.int64), None, 0)
        released = self.server.learn(server_round, total)
        if self.remembers and released is not None:
            self.released.append(released)
        return total.users

    def observe(self, grid: Grid) -> None:
        """Have the nodes of a simulation tell what their devices keep, and computed in the last round.

        Raises RunError where nothing that was computed can be used.
        """
        contents = {partition_id: RecordDict() for partition_id in range(len(self.roster.node_ids))}
        answers = self.roster.ask(grid, TELL, contents, self.group)
        replies = [Told.of(answer.content[REPLY]) for answer in answers.values()]
        self.kept = tuple(
            np.concatenate(arrays) for arrays in zip(*(part.kept for part in replies), strict=True)
        )
        device, last = self.broadcast, len(self.records)
        assert device is not None, "a round in which nothing was asked"
        norms = np.concatenate([np.where(part.round_index == last, part.norms, np.nan) for part in replies])
        losses = np.concatenate([np.where(part.round_index == last, part.losses, np.nan) for part in replies])
        observed = device.observed(norms[self.rated], losses[self.rated], last)
        self.records[-1] = replace(self.records[-1], observed=observed)

    @property
    def learned(self) -> AnsweringDevice:
        """What is delivered: of the last round, or of the best, if the rounds stop early."""
        return self.server.learned.keeping(self.kept) if self.best is None else self.best


@dataclass(eq=False)
class RowRounds(TrainingRounds):
    """Rounds in which every user is sent a row of its own, and each report is read."""

    protocol: GradientPerturbationProtocol
    server: SlopesServer = field(init=False)
    received: list[Slopes] = field(default_factory=list, init=False)
    """Of all rounds, where the strategy remembers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.server = self.protocol.server(self.public, self.seed)

    def _questions(self, server_round: int, grid: Grid) -> dict[int, RecordDict]:
        rows = self.server.rows()
        self._account.charge_requests(
            np.arange(self.roster.n_users),
            rows.sizes,
            lambda row: request_content(SlopesRequest(server_round, [row])),
        )
        contents = {}
        for partition_id in range(len(self.roster.node_ids)):
            partition = self.roster.partition(partition_id)
            request = SlopesRequest(server_round, list(rows[partition.start : partition.stop]))
            contents[partition_id] = request_content(request)
        return contents

    def _learn(self, server_round: int, arriving: Callable[[Reader[Any]], Iterator[Any]]) -> int:
        read = [
            self.server.read(arrivals.punctual_users, arrivals.in_time())
            for arrivals in arriving(arrivals_of)
        ]
        accepted = sum(valid for valid, _, _ in read)
        if accepted:
            cells, symbols = (np.concatenate(parts) for parts in list(zip(*read, strict=True))[1:])
            slopes = self.server.learn(cells, symbols)
            if self.remembers:
                self.received.append(slopes)
        return accepted
