"""The server's part of a federated model: rounds of broadcast, sums of updates with noise, and a step.

This is a Flower `Strategy` that starts from a model of its own; see `strategies.rounds`.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from dprec.accounting import NoisySum, PrivacyAccountant
from dprec.exchange import GradientRequest
from dprec.exchange.messages import UPDATE
from dprec.federated import FederatedModel, Parameters, UpdateCode
from dprec.gradients import Aggregate
from dprec.randomness import ReleaseDraws
from dprec.wire import TrafficLedger
from strategies.roster import ReadSums, Roster
from strategies.rounds import OwnModelRounds, RoundAccount, request_content


@dataclass(eq=False)
class FederatedRounds(OwnModelRounds):
    """Parameters learned from sums of clipped updates.

    Attributes
    ----------
    traffic : TrafficLedger
    accountant : PrivacyAccountant
        A sum with noise has no epsilon without a delta, so by itself it costs infinitely much.
    """

    model: FederatedModel
    code: UpdateCode
    deviation: float
    """Of the noise that the server adds to each number of a sum, in clips; 0 if it adds none."""
    noisy_sum: NoisySum | None
    """What a round costs a user, whoever adds the noise; None without noise."""
    parameters: Parameters
    """Before the first round; those of the last round afterwards."""
    seed: int
    """Of what the server draws."""
    group: str
    """Run key under which the devices find their setup."""
    roster: Roster
    traffic: TrafficLedger = field(init=False)
    accountant: PrivacyAccountant = field(init=False)

    def __post_init__(self) -> None:
        everybody = np.ones(self.roster.n_users, dtype=np.bool_)
        self.traffic, self.accountant = TrafficLedger(self.roster.n_users), PrivacyAccountant(rated=everybody)
        self._records = []

    @property
    def broadcast(self) -> Parameters:
        """The parameters as devices receive them."""
        return self.code.unpack(self.code.pack(self.parameters))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the same request for every node; raises ValueError for arrays to start from."""
        self.refuse_arrays(arrays)
        self._account = RoundAccount(UPDATE, self.group, self.traffic)
        payload = self.code.pack(self.parameters)
        content = request_content(GradientRequest(server_round, payload))
        self._account.charge_request(slice(None), content, len(payload))
        contents = dict.fromkeys(range(len(self.roster.node_ids)), content)
        return self.roster.messages(UPDATE, contents, self.group)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add up, add the noise and take a step; see Flower's `Strategy`."""
        n_users = self.roster.n_users
        everybody, sent = np.ones(n_users, dtype=np.bool_), np.zeros(n_users, dtype=np.bool_)
        total = Aggregate(np.zeros(self.code.size, dtype=np.int64), None, 0)
        code, size = self.code, (self.code.size,)
        reading = ReadSums(code.decode, code.possible, size, None, self.roster.users_per_node)
        for arrivals in self.roster.read(self.roster.by_partition(replies), everybody, reading):
            self._account.charge_reports(arrivals)
            sent[arrivals.senders] = True
            total = total + arrivals.aggregate
        self.accountant.step(server_round, sent, np.inf, np.inf, self.noisy_sum)
        if total.users:
            draws = ReleaseDraws(self.seed, server_round)
            update = self.code.released(total.total, n_users, self.deviation, draws)
            self.parameters = self.model.step(self.broadcast, update, server_round)
        self._records.append(self._account.record(server_round, asked=n_users, accepted=total.users))
        return None, MetricRecord({"replies": total.users, "asked": n_users})

    def summary(self) -> None:
        """Log what is run."""
        logging.getLogger("flwr").info("\t└──> %s, numbers: %s", self.model.kind, self.code.size)

    def deliver(self, grid: Grid) -> None:
        """Send everybody what was learned; see `deliver_parameters`."""
        self.deliver_parameters(grid, self.code.pack(self.parameters), self.traffic)
