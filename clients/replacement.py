"""The device's part of X-Map once its ratings are sent: replace its source items, send the AlterEgo.

What a device guarantees against any server: the mechanism, its budget and the sensitivity to which it is
calibrated are installed on it, and the contents of a request must lie within that sensitivity. A device
replaces its items for one table of candidates only. It draws the same random words whenever it is asked, so
asking again with the same table reveals nothing more, and another table is refused.
"""

import numpy as np
from flwr.app import Context

from clients.memory import Memory
from clients.population import Partition, device_draws
from dprec.arrays import Ints, Pieces, find, rows_of
from dprec.crossdomain import AlterEgoCodec, Candidates, ReplacementDraws, RowCodec, ValueCode, alter_egos
from dprec.exchange import (
    REPLACEMENT_ROUND,
    Refusal,
    RefusalCode,
    ReplacementRequest,
    ReplacementSetup,
    XMapSetup,
    refusing_malformed,
)


def alter_ego_reports(partition: Partition, request: ReplacementRequest, context: Context) -> Pieces:
    """Return the encoded AlterEgo of every user of a partition.

    Raises Refusal when the request is malformed, its X-Sim values are wider than the installed sensitivity,
    or items have been replaced for another table.
    """
    population, setup = partition.population, partition.population.installed(XMapSetup).replacement
    if request.round_index != REPLACEMENT_ROUND:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, f"asked to replace items in round {request.round_index}")
    candidates, means = _candidates(request, setup, population.n_items)
    table = f"{request.start} {request.stop} ".encode() + request.rows
    Memory.of(population, REPLACEMENT_ROUND, context).answer_once(request.round_index, table)
    n_targets, deviations = request.stop - request.start, setup.transfer == "deviation"
    draws = ReplacementDraws.prepare(
        candidates,
        setup.epsilon or 0.0,
        setup.sensitivity,
        n_targets,
        whole_catalogue=setup.whole_catalogue,
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


def _candidates(
    request: ReplacementRequest, setup: ReplacementSetup, n_items: int
) -> tuple[Candidates, Ints]:
    """Decode the candidates of a request and the codes of the source items' means."""
    start, stop = request.start, request.stop
    if stop > n_items:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "the target domain extends beyond the catalogue")
    codec = RowCodec(
        n_items,
        stop - start,
        with_steps=setup.epsilon is not None,
        with_means=setup.transfer == "deviation",
    )
    with refusing_malformed():
        candidates, means = codec.unpack(request.rows)
    if np.any((candidates.items >= start) & (candidates.items < stop)):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "candidates for items of the target domain itself")
    if setup.sensitivity < 2 and np.any(candidates.steps < 0):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "X-Sim values below 0, for a sensitivity of 1")
    return candidates, means
