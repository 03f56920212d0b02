"""The server's part of private alternating least squares: rounds of broadcast, sums, noise and an item step.

This is a Flower `Strategy` that starts from a model of its own; see `strategies.rounds`.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from dprec.accounting import PrivacyAccountant
from dprec.exchange import STATISTICS, GradientRequest
from dprec.gradients import Aggregate
from dprec.private_als import Aggregation, ItemLearner
from dprec.randomness import ReleaseDraws
from dprec.wire import TrafficLedger
from strategies.roster import ReadSums, Roster
from strategies.rounds import OwnModelRounds, RoundAccount, request_content


@dataclass(eq=False)
class PrivateAls(OwnModelRounds):
    """Items' effects and factors learned from sums with noise.

    Attributes
    ----------
    traffic : TrafficLedger
    accountant : PrivacyAccountant
        A sum with noise has no epsilon without a delta, so by itself it costs infinitely much.
    failed : int
        Releases that failed because too many devices dropped out; their budget is spent.
    """

    learner: ItemLearner
    aggregation: Aggregation
    multipliers: tuple[float, ...]
    """Noise of each round."""
    seed: int
    public_seed: int
    """Of what the server draws, and of what everybody knows."""
    group: str
    """Run key under which the devices find their setup."""
    roster: Roster
    traffic: TrafficLedger = field(init=False)
    accountant: PrivacyAccountant = field(init=False)
    failed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        everybody = np.ones(self.roster.n_users, dtype=np.bool_)
        self.traffic, self.accountant = TrafficLedger(self.roster.n_users), PrivacyAccountant(rated=everybody)
        self._records = []

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the same request for every node; raises ValueError for arrays to start from."""
        self.refuse_arrays(arrays)
        self._account = RoundAccount(STATISTICS, self.group, self.traffic)
        model = self.learner.model.encode()
        content = request_content(GradientRequest(server_round, model))
        self._account.charge_request(slice(None), content, len(model))
        further = self.aggregation.further_messages()
        everybody = np.arange(self.roster.n_users)
        self._account.charge_exchange(everybody, further.downlink, further.uplink)
        contents = dict.fromkeys(range(len(self.roster.node_ids)), content)
        return self.roster.messages(STATISTICS, contents, self.group)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add up, add the noise and take the item step; see Flower's `Strategy`.

        Where nobody contributes, or too few for a release, nothing is released and nothing is learned.
        """
        n_users = self.roster.n_users
        layout, multiplier = self.learner.layout(server_round), self.multipliers[server_round - 1]
        everybody, sent = np.ones(n_users, dtype=np.bool_), np.zeros(n_users, dtype=np.bool_)
        present = np.zeros(n_users, dtype=np.bool_)
        total = Aggregate(np.zeros(self.aggregation.sum_shape(layout), dtype=np.int64), None, 0)
        reading = ReadSums(
            partial(self.aggregation.decode, layout=layout, multiplier=multiplier),
            partial(self.aggregation.possible, layout=layout, multiplier=multiplier),
            self.aggregation.sum_shape(layout),
            None,
            self.roster.users_per_node,
        )
        for arrivals in self.roster.read(self.roster.by_partition(replies), everybody, reading):
            self._account.charge_reports(arrivals)
            sent[arrivals.senders] = True
            whole = self.aggregation.whole(arrivals.sent, layout, multiplier)
            present[arrivals.users[arrivals.punctual & whole]] = True
            total = total + arrivals.aggregate
        noisy_sum = self.aggregation.noisy_sum(multiplier)
        self.accountant.step(server_round, sent, np.inf, np.inf, noisy_sum)
        if not self.aggregation.can_release(present, total.users, server_round, self.public_seed):
            self.failed += 1
        elif total.users:
            further = self.aggregation.further_messages()
            self._account.charge_exchange(
                np.flatnonzero(present), further.downlink_after, further.uplink_after
            )
            draws = ReleaseDraws(self.seed, server_round)
            released = self.aggregation.release(total, layout, multiplier, draws)
            self.learner.learn(server_round, released, layout, multiplier, total.users)
        self._records.append(self._account.record(server_round, asked=n_users, accepted=total.users))
        return None, MetricRecord({"replies": total.users, "asked": n_users})

    def summary(self) -> None:
        """Log what is run."""
        logging.getLogger("flwr").info("\t└──> private least squares, rounds: %s", len(self.multipliers))

    def deliver(self, grid: Grid) -> None:
        """Send everybody what was learned; see `deliver_parameters`."""
        self.deliver_parameters(grid, self.learner.learned.encode(), self.traffic)
