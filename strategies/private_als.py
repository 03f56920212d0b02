"""The server's part of private alternating least squares: broadcast, sums, noise and an item step."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message
from flwr.serverapp import Grid

from dprec.accounting import NoisySum
from dprec.arrays import Bools
from dprec.exchange import STATISTICS
from dprec.gradients import Aggregate
from dprec.private_als import Aggregation, ItemLearner
from dprec.randomness import ReleaseDraws
from strategies.roster import ReadSums, Sums
from strategies.rounds import SummedRounds


@dataclass(eq=False)
class PrivateAls(SummedRounds):
    """Items' effects and factors learned from sums with noise."""

    message_type: ClassVar[str] = STATISTICS
    learner: ItemLearner
    aggregation: Aggregation
    multipliers: tuple[float, ...]
    """Noise of each round."""
    public_seed: int
    """Of what everybody knows."""
    failed: int = field(default=0, init=False)
    """Releases that failed because too many devices dropped out; their budget is spent."""

    def _model_bytes(self) -> bytes:
        return self.learner.model.encode()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Charge what the aggregation exchanges before the reports, too; see `SummedRounds`."""
        requests = super().configure_train(server_round, arrays, config, grid)
        further = self.aggregation.further_messages()
        self._account.charge_exchange(np.arange(self.roster.n_users), further.downlink, further.uplink)
        return requests

    def _reading(self, server_round: int) -> ReadSums:
        aggregation, layout = self.aggregation, self.learner.layout(server_round)
        multiplier = self.multipliers[server_round - 1]
        return ReadSums(
            partial(aggregation.decode, layout=layout, multiplier=multiplier),
            partial(aggregation.possible, layout=layout, multiplier=multiplier),
            aggregation.sum_shape(layout),
            None,
            self.roster.users_per_node,
        )

    def _whole(self, server_round: int, sums: Sums) -> Bools:
        layout = self.learner.layout(server_round)
        return self.aggregation.whole(sums.sent, layout, self.multipliers[server_round - 1])

    def _costs(self, server_round: int) -> NoisySum | None:
        return self.aggregation.noisy_sum(self.multipliers[server_round - 1])

    def _learn(self, server_round: int, total: Aggregate, present: Bools) -> None:
        """Take the item step; where nobody contributes, or too few for a release, nothing is learned."""
        if not self.aggregation.can_release(present, total.users, server_round, self.public_seed):
            self.failed += 1
        elif total.users:
            further = self.aggregation.further_messages()
            here = np.flatnonzero(present)
            self._account.charge_exchange(here, further.downlink_after, further.uplink_after)
            layout, multiplier = self.learner.layout(server_round), self.multipliers[server_round - 1]
            draws = ReleaseDraws(self.seed, server_round)
            released = self.aggregation.release(total, layout, multiplier, draws)
            self.learner.learn(server_round, released, layout, multiplier, total.users)

    def summary(self) -> None:
        """Log what is run."""
        logging.getLogger("flwr").info("\t└──> private least squares, rounds: %s", len(self.multipliers))

    def deliver(self, grid: Grid) -> None:
        """Send everybody what was learned; see `deliver_parameters`."""
        self.deliver_parameters(grid, self.learner.learned.encode(), self.traffic)
