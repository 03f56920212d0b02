"""What a device is sent after its reports: candidates for an AlterEgo, and at the end a list or a table.

What a device guarantees against any server: nothing that it makes of list or table is ever sent, nor whether
it fails. A list may be any, and a table is checked on what is public of it; one that is malformed is refused.
Only once the reply has left is anything computed from the table and the user's clean ratings.
"""

import numpy as np
from flwr.app import Context

from clients.memory import Memory
from clients.population import Partition, device_draws
from dprec import exchange
from dprec.arrays import Floats, Ints, Pieces, find, offsets, rows_of
from dprec.crossdomain import AlterEgoCodec, Candidates, ReplacementDraws, RowCodec, ValueCode, alter_egos
from dprec.exchange import REPLACEMENT_ROUND, Refusal, RefusalCode, ReplacementRequest, refusing_malformed
from dprec.personalization import BroadcastDevices, OrdinalProcess
from dprec.predictions import NO_ITEM
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.x_map import XMapProtocol
from dprec.ratings import Ratings
from dprec.wire import ItemListCodec, ItemTable


def receive_lists(partition: Partition, delivery: exchange.Recommendations) -> None:
    """Receive the lists of a partition's users; raises Refusal for malformed ones, or those of another."""
    if len(delivery.lists) != partition.size:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "lists of another partition")
    n_items = partition.population.n_items
    with exchange.refusing_malformed():
        items, ratings = ItemListCodec(n_items).decode(delivery.lists)

    def predictions(process: OrdinalProcess) -> Floats:
        """Return the ratings in the lists."""
        predicted = np.full((len(items), n_items), np.nan)
        rows, places = np.nonzero(items != NO_ITEM)
        predicted[rows, items[rows, places]] = ratings[rows, places]
        return predicted

    partition.population.show(predictions)


def receive_table(partition: Partition, personalization: exchange.Personalization) -> None:
    """Receive a table of items, from which each device predicts with its clean ratings, or raise Refusal."""
    population = partition.population
    if not population.installed(OneShotProtocol).on_device:
        raise Refusal(RefusalCode.NOT_SET_UP, "a table of items for devices that predict nothing")
    levels, n_items = population.scale.levels, population.n_items
    with exchange.refusing_malformed():
        table = ItemTable.decode(personalization.table, n_levels=levels, n_items=n_items)

    def predictions(process: OrdinalProcess) -> Floats:
        shape = partition.size, n_items
        ratings = Ratings(
            offsets(partition.counts),
            partition.items,
            partition.levels,
            population.scale,
            user_ids=np.arange(shape[0]),
            item_ids=np.arange(shape[1]),
        )
        users, items = np.indices(shape)
        return BroadcastDevices(process, table, ratings).predict(users.ravel(), items.ravel()).reshape(shape)

    population.show(predictions)


def alter_ego_reports(partition: Partition, request: ReplacementRequest, context: Context) -> Pieces:
    """Return the encoded AlterEgo of every user of a partition.

    Raises Refusal when the request is malformed, its X-Sim values are wider than the installed sensitivity,
    or items have been replaced for another table.
    """
    population, protocol = partition.population, partition.population.installed(XMapProtocol)
    replacement = protocol.replacement
    if protocol.mechanism.private or replacement.selection == "none":
        raise Refusal(RefusalCode.NOT_SET_UP, "asked for AlterEgos, of devices that report by a mechanism")
    if request.round_index != REPLACEMENT_ROUND:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, f"asked to replace items in round {request.round_index}")
    candidates, means = _candidates(request, protocol, population.n_items)
    table = f"{request.start} {request.stop} ".encode() + request.rows
    Memory.of(population, REPLACEMENT_ROUND, context).answer_once(request.round_index, table)
    n_targets, deviations = request.stop - request.start, replacement.deviations
    draws = ReplacementDraws.prepare(
        candidates,
        replacement.epsilon or 0.0,
        protocol.sensitivity,
        n_targets,
        whole_catalogue=replacement.whole_catalogue,
    )
    values = partition.values
    if deviations and candidates.items.size:
        places, _ = find(candidates.items, partition.items)
        values = values - ValueCode.of(population.scale, deviations=False).decode(means)[places]
    noise = device_draws(partition, "replacement").per_cell(
        partition.counts, partition.items, request.round_index
    )
    egos = alter_egos(
        rows_of(partition.counts),
        partition.items,
        values,
        partition.size,
        draws,
        noise,
        request.start,
    )
    return AlterEgoCodec(n_targets, ValueCode.of(population.scale, deviations=deviations)).encode(egos)


def _candidates(request: ReplacementRequest, protocol: XMapProtocol, n_items: int) -> tuple[Candidates, Ints]:
    """Decode the candidates of a request and the codes of the source items' means."""
    start, stop = request.start, request.stop
    if stop > n_items:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "the target domain extends beyond the catalogue")
    codec = RowCodec(
        n_items,
        stop - start,
        with_steps=protocol.replacement.private,
        with_means=protocol.replacement.deviations,
    )
    with refusing_malformed():
        candidates, means = codec.unpack(request.rows)
    if np.any((candidates.items >= start) & (candidates.items < stop)):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "candidates for items of the target domain itself")
    if protocol.sensitivity < 2 and np.any(candidates.steps < 0):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "X-Sim values below 0, for a sensitivity of 1")
    return candidates, means
