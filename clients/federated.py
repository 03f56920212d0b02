"""The device's part of a federated model: an update for the parameters that it is sent, clipped to a norm.

What a device guarantees against any server: in a round that was agreed on, and in no other, it sends one
update of bounded length whatever its ratings, with its own noise if it adds any; a round is answered once.
Model, clip, noise and number of rounds are installed on it.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flwr.app import Context

from clients.iterative import profiles_of
from clients.memory import Memory
from clients.population import Partition, Population, draws_of_rounds
from clients.replies import AddUp
from dprec.arrays import Floats
from dprec.exchange import FinalFactors, GradientRequest, refusing_malformed
from dprec.exchange.setups import FederatedSetup
from dprec.federated import Parameters, UpdateCode, code_of
from dprec.gradients import RoundDraws
from dprec.personalization import OrdinalProcess

_NUMBERS_AT_ONCE = 1 << 22
"""Bounds the memory of a worker, whatever the size of its partitions and of the model."""


def update_reports(
    partition: Partition, request: GradientRequest, context: Context
) -> tuple[list[bytes], AddUp]:
    """Return the report of every user of a partition, and what validates and adds them up.

    Raises Refusal when the parameters are malformed, the setup has fewer rounds, the round has been answered
    for other parameters, or a later one has been answered.
    """
    population, setup = partition.population, partition.population.installed(FederatedSetup)
    code = _code(population)
    with refusing_malformed():
        parameters = code.unpack(request.factors)
    Memory.of(population, setup.rounds, context).answer_once(request.round_index, request.factors)
    reports: list[bytes] = []
    users = max(1, _NUMBERS_AT_ONCE // code.size)
    for start in range(partition.start, partition.stop, users):
        part = Partition(population, start, min(start + users, partition.stop))
        devices = draws_of_rounds(part, "model update").asked(request.factors)
        draws = RoundDraws(devices, request.round_index, population.keys.public_seed)
        reports += code.encode(setup.model.updates(parameters, profiles_of(part)), draws)
    return reports, code.decode


def receive_parameters(partition: Partition, final: FinalFactors, context: Context) -> Parameters:
    """Return the parameters of a message that asks for no report; raises Refusal for malformed ones."""
    with refusing_malformed():
        parameters = _code(partition.population).unpack(final.factors)
    partition.population.show(ReceivedParameters(partition, parameters))
    return parameters


@dataclass(frozen=True, eq=False)
class ReceivedParameters:
    """Parameters, with which each device predicts for its user."""

    partition: Partition
    parameters: Parameters

    def predictions(self, process: OrdinalProcess) -> Floats:
        """Predict every item, shape (users, items)."""
        population = self.partition.population
        model = population.installed(FederatedSetup).model
        predict = model.predictor(self.parameters, profiles_of(self.partition))
        users, items = np.indices((self.partition.size, population.n_items))
        return predict(users.ravel(), items.ravel()).reshape(users.shape)


@lru_cache(maxsize=4)
def _code(population: Population) -> UpdateCode:
    setup = population.installed(FederatedSetup)
    return code_of(setup.model, population.n_items, population.scale, setup.clip, setup.deviation)
