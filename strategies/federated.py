"""The server's part of a federated model: rounds of broadcast, sums of updates with noise, and a step."""

import logging
from dataclasses import dataclass
from typing import ClassVar

from flwr.serverapp import Grid

from dprec.accounting import NoisySum
from dprec.arrays import Bools
from dprec.exchange.messages import UPDATE
from dprec.federated import FederatedModel, Parameters, UpdateCode
from dprec.gradients import Aggregate
from dprec.randomness import ReleaseDraws
from strategies.roster import ReadSums
from strategies.rounds import SummedRounds


@dataclass(eq=False)
class FederatedRounds(SummedRounds):
    """Parameters learned from sums of clipped updates."""

    message_type: ClassVar[str] = UPDATE
    model: FederatedModel
    code: UpdateCode
    deviation: float
    """Of the noise that the server adds to each number of a sum, in clips; 0 if it adds none."""
    noisy_sum: NoisySum | None
    """What a round costs a user, whoever adds the noise; None without noise."""
    parameters: Parameters
    """Before the first round; those of the last round afterwards."""

    @property
    def broadcast(self) -> Parameters:
        """The parameters as devices receive them."""
        return self.code.unpack(self._model_bytes())

    def _model_bytes(self) -> bytes:
        return self.code.pack(self.parameters)

    def _reading(self, server_round: int) -> ReadSums:
        code = self.code
        return ReadSums(code.decode, code.possible, (code.size,), None, self.roster.users_per_node)

    def _costs(self, server_round: int) -> NoisySum | None:
        return self.noisy_sum

    def _learn(self, server_round: int, total: Aggregate, present: Bools) -> None:
        if total.users:
            draws = ReleaseDraws(self.seed, server_round)
            update = self.code.released(total.total, self.roster.n_users, self.deviation, draws)
            self.parameters = self.model.step(self.broadcast, update, server_round)

    def summary(self) -> None:
        """Log what is run."""
        logging.getLogger("flwr").info("\t└──> %s, numbers: %s", self.model.kind, self.code.size)

    def deliver(self, grid: Grid) -> None:
        """Send everybody what was learned; see `deliver_parameters`."""
        self.deliver_parameters(grid, self._model_bytes(), self.traffic)
