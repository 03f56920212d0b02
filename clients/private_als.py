"""The device's part of private alternating least squares: contribute to the statistics of the items.

What a device contributes has a norm of at most 1 whatever its ratings, in each round that was agreed on and
in no other; number of rounds, noise, and how ratings are chosen and clipped are installed on it, and a round
is answered once. Who adds up, and the noise that is added on the way, are those of the installed aggregation.
"""

from functools import partial

import numpy as np
from flwr.app import Context

from clients.iterative import ReceivedFactors, profiles_of
from clients.memory import Memory
from clients.population import Partition, draws_of_rounds
from clients.replies import AddUp
from dprec import exchange
from dprec.errors import SettingError
from dprec.gradients import RoundDraws
from dprec.private_als import Aggregation, ItemModel, contributions_of, with_level


def contributions(
    partition: Partition, request: exchange.GradientRequest, context: Context
) -> tuple[list[bytes], AddUp]:
    """Return the report of every user of a partition, and what validates and adds them up.

    Raises Refusal when the model is malformed, the setup has fewer rounds, the round has been answered for
    another model, or a later one has been answered; or when the devices are too few for their aggregation, as
    one that runs alone is for sums with others.
    """
    population, setup = partition.population, partition.population.installed(exchange.PrivateAlsSetup)
    model = _decoded(request.factors, partition)
    Memory.of(population, len(setup.multipliers), context).answer_once(request.round_index, request.factors)
    options, aggregation, scale = setup.factorization, _among_all(partition), population.scale
    layout = model.layout(options, request.round_index, scale.high - scale.low)
    devices = draws_of_rounds(partition, "contribution").asked(request.factors)
    words = devices.per_cell(np.asarray(partition.counts), partition.items, request.round_index)
    chosen = contributions_of(profiles_of(partition), model, options, layout, request.round_index, words)
    draws = RoundDraws(devices, request.round_index, population.keys.public_seed)
    multiplier = setup.multipliers[request.round_index - 1]
    reports = aggregation.encode(chosen, layout, multiplier, draws)
    return reports, partial(aggregation.decode, layout=layout, multiplier=multiplier)


def receive_model(partition: Partition, final: exchange.FinalFactors, context: Context) -> ItemModel:
    """Return what was learned of the items; raises Refusal when it is malformed."""
    model, population = _decoded(final.factors, partition), partition.population
    options = population.installed(exchange.PrivateAlsSetup).factorization
    ridge = options.predict_ridge * (population.scale.high - population.scale.low) ** 2
    factors = with_level(model.all_factors, ridge, options.level_ridge)
    population.show(ReceivedFactors(partition, factors, ridge, model.mean + model.biases))
    return model


def _among_all(partition: Partition) -> Aggregation:
    population = partition.population
    try:
        return population.installed(exchange.PrivateAlsSetup).aggregation.among(population.n_users)
    except SettingError as error:
        raise exchange.Refusal(exchange.RefusalCode.NOT_SET_UP, str(error)) from None


def _decoded(data: bytes, partition: Partition) -> ItemModel:
    setup = partition.population.installed(exchange.PrivateAlsSetup)
    with exchange.refusing_malformed():
        return ItemModel.decode(data, partition.population.n_items, setup.factorization.rank)
