"""The server's part of protocols of sums: rounds of a broadcast, contributions and what is learned."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from dprec.arrays import Bools, Ints
from dprec.attacks import ReleasedSum
from dprec.exchange import STATISTICS
from dprec.gradients import Aggregate
from dprec.protocols.sums import SummedServer
from dprec.randomness import ReleaseDraws
from dprec.sums import Aggregation, Cost, Layout
from strategies.releases import ChargedExchange, Release, ReleaseExchange
from strategies.roster import ReadSums, Sums
from strategies.rounds import (
    SummedRounds,
)


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
