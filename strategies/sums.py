"""The server's part of protocols of sums: who adds up, what is charged, and what a release teaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid

from dprec.arrays import AnyArray, Ints
from dprec.attacks import ReleasedSum
from dprec.catalogue import Catalogue
from dprec.gradients import Aggregate
from dprec.protocols.sums import SummedServer, SumsProtocol
from dprec.randomness import ReleaseDraws
from dprec.sums import Aggregation, Layout
from strategies.releases import ChargedExchange, OpenRelease, ReleaseExchange
from strategies.roster import Reader, ReadSums, Sums
from strategies.training import Received, TrainingRounds


@dataclass(eq=False)
class SumRounds(TrainingRounds):
    """Rounds in which everybody contributes to a sum with noise."""

    protocol: SumsProtocol
    aggregation: Aggregation = field(kw_only=True)
    """Who adds up, as the server knows it."""
    catalogue: Catalogue | None = field(kw_only=True)
    exchange: ReleaseExchange | None = field(kw_only=True)
    """What is said around the reports of a release; None for nothing, as in a simulation."""
    server: SummedServer = field(init=False)
    failed: int = field(default=0, init=False)
    """Releases that failed, as too many devices dropped out or sums were spoiled; their budget is spent."""
    received: list[Received] = field(default_factory=list, init=False)
    released: dict[int, ReleasedSum] = field(default_factory=dict, init=False)
    """Of all rounds, and of each that did not fail, where the strategy remembers."""
    keep: Callable[[int, AnyArray], None] = field(default=lambda number, lesson: None, kw_only=True)
    """Called with what each release teaches, from which an interrupted run is taught again."""
    taught: dict[int, tuple[float, int]] = field(default_factory=dict, init=False)
    """The deviation of each release, as the server was told it, and how many users are in it."""
    noise: dict[int, float] = field(default_factory=dict, init=False)
    """The deviation of each that did not fail."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.server = self.protocol.server(self.public, self.catalogue, self.seed)
        self._exchange = self.exchange or ChargedExchange(self.aggregation)

    @property
    def resumable(self) -> bool:
        """Whether an interrupted run goes on: what the server knows follows from the releases."""
        return True

    def stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return what the rounds so far have changed, but not the server; see `TrainingRounds`."""
        arrays, values = super().stored()
        return arrays, values | {"failed": self.failed, "taught": list(self.taught.items())}

    def resume(
        self, arrays: Mapping[str, AnyArray], values: Mapping[str, Any], lessons: Callable[[int], AnyArray]
    ) -> None:
        """Go on from what was `stored`, and teach the server all releases again; see `TrainingRounds`."""
        super().resume(arrays, values, lessons)
        for number, (deviation, users) in values["taught"]:
            self._teach(number, self.server.held.release(number), lessons(number), deviation, users)
        self.failed = values["failed"]

    def _questions(self, server_round: int, grid: Grid) -> dict[int, RecordDict]:
        device = self.broadcast = self.server.held
        self._asked_for = device.release(server_round), self.protocol.multipliers[server_round - 1]
        if self.remembers:
            self.received.append(Received(device))
        self._account.sealed = self.aggregation.sealed
        self._current = OpenRelease(server_round, self._account, grid, self.roster, self.group)
        return self._exchange.asking(self._current, device.encode())

    def asked_for(self, server_round: int) -> tuple[Layout, float]:
        """Return the layout of a round that was asked for, where the strategy remembers, and its noise."""
        device = self.received[server_round - 1].model
        return device.release(server_round), self.protocol.multipliers[server_round - 1]

    def _charged(self, server_round: int, arrivals: Any) -> tuple[Any, Ints]:
        sizes = self.aggregation.sizes(arrivals.sent, *self._asked_for, server_round)
        charged: Sums = replace(arrivals, sent=sizes)
        return charged, charged.senders[self.aggregation.costing(charged.payloads)]

    def _learn(self, server_round: int, arriving: Callable[[Reader[Any]], Iterator[Any]]) -> int:
        """Learn from a release; where nobody contributes, or too few for it, nothing is learned."""
        aggregation, (layout, multiplier) = self.aggregation, self._asked_for
        reading = ReadSums(
            partial(aggregation.decode, layout=layout, multiplier=multiplier),
            partial(aggregation.possible, layout=layout, multiplier=multiplier),
            aggregation.sum_shape(layout),
            None,
            self.roster.believed,
        )
        present = np.zeros(self.roster.n_users, dtype=np.bool_)
        total = Aggregate(np.zeros(reading.sum_shape, dtype=np.int64), None, 0)
        for sums in arriving(reading):
            if self.remembers and aggregation.by_itself:
                self.received[-1].take(sums)
            complete = sums.punctual & aggregation.whole(sums.sent, layout, multiplier)
            present[sums.users[complete]] = True
            total += sums.aggregate
        if not aggregation.can_release(present, total.users, server_round, self.public_seed):
            self.failed += 1
        elif total.users:
            unmasked = self._exchange.unmasked(self._current, total, present, layout, multiplier)
            if unmasked is None:
                self.failed += 1
            else:
                self._release(server_round, unmasked, layout, multiplier)
        return total.users

    def _release(self, server_round: int, total: Aggregate, layout: Layout, multiplier: float) -> None:
        aggregation, draws = self.aggregation, ReleaseDraws(self.seed, server_round)
        released = aggregation.release(total, layout, multiplier, draws)
        deviation, users = aggregation.noise_in(total, layout, multiplier), aggregation.counted(total.users)
        if self.remembers:
            self.released[server_round] = ReleasedSum((released / layout.scales).ravel(), deviation)
        lesson = self.server.lesson(released)
        del released  # It may be most of the memory.
        self.keep(server_round, lesson)
        self._teach(server_round, layout, lesson, deviation, users)

    def _teach(
        self, server_round: int, layout: Layout, lesson: AnyArray, deviation: float, users: int
    ) -> None:
        self.taught[server_round] = deviation, users
        try:
            self.server.learn(layout, server_round, lesson, deviation, users)
        except np.linalg.LinAlgError:
            # No honest devices add up to such numbers: somebody has spoiled them.
            self.failed += 1
        else:
            self.noise[server_round] = deviation
