"""The device's part of one-shot protocols and gradient perturbation: reports on its ratings, and answers.

What a device guarantees against any server: its reports are those of the mechanism, budget and number of
rounds installed on it; a request says at most who is asked. What follows a report is answered for one
question only, and a round for a single row of values (see `clients.memory`). When asked again, a device
repeats what it sent, since it draws the same noise whenever it computes an answer. Gradient perturbation
sends in the clear which items are rated.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from flwr.app import Context

from clients.iterative import profiles_of
from clients.memory import Memory
from clients.population import Partition, Population, device_draws, draws_of_rounds
from dprec import exchange
from dprec.arrays import Bools, Floats, Ints, Pieces, blocks
from dprec.exchange import Refusal, RefusalCode
from dprec.gradients import RoundDraws
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.reports import DrawsFor, FollowUp, ProfileLevels, ReportFamily

_CELLS_AT_ONCE = 1 << 20
"""Bounds the memory of a worker, whatever the size of its partitions and profiles."""


def reports(partition: Partition) -> Pieces:
    """Return the encoded report of every user of a partition, each by random words of the user's own."""
    family = installed_family(partition.population)
    return Pieces.joined(
        (family.crafted if lies else family.encode)(
            *held(replace(users, start=users.start + cells.start, stop=users.start + cells.stop))
        )
        for users, lies in partition.parts_that_lie
        for cells in blocks(family.work(users.counts), _CELLS_AT_ONCE)
    )


def held(partition: Partition) -> tuple[ProfileLevels, DrawsFor]:
    """Return what the devices of a partition compute from: their profiles, and random words by purpose."""
    profiles = ProfileLevels(partition.counts, partition.items, partition.levels, partition.numbers)
    return profiles, partial(device_draws, partition)


def count_reports(partition: Partition, request: exchange.CountRequest, context: Context) -> Sequence[bytes]:
    """Return the encoded answer of every user of a partition to what follows the reports.

    Raises Refusal when the devices answer once, or the question is malformed, or they have answered another.
    """
    follow_up = installed_follow_up(partition.population)
    if not follow_up.accepts(request.groups):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "malformed groups of items")
    Memory.of(partition.population, exchange.COUNT_ROUND, context).answer_once(
        exchange.COUNT_ROUND, request.groups
    )
    profiles, draws = held(partition)
    return follow_up.encode(profiles, request.groups, draws)


@lru_cache(maxsize=4)
def installed_family(population: Population) -> ReportFamily:
    """Return what the devices of a population report once; raises Refusal if they send nothing like that."""
    family = population.protocol.family(population.scale, population.n_items)
    if family is None:
        what = f"the request is not for devices that take part in {population.protocol.kind}"
        raise Refusal(RefusalCode.NOT_SET_UP, what)
    return family


def installed_follow_up(population: Population) -> FollowUp:
    """Return what the devices of a population answer after their reports; raises Refusal if nothing."""
    follow_up = installed_family(population).follow_up
    if follow_up is None:
        raise Refusal(RefusalCode.NOT_SET_UP, "asked to count ratings, of devices that answer once")
    return follow_up


def slope_reports(partition: Partition, request: exchange.SlopesRequest, context: Context) -> list[bytes]:
    """Return the report of every user of a partition.

    If the server does not know the rated items yet and sends no row, the entries count as 0 and the report
    includes the items. Raises Refusal when the rows are malformed, the budget was divided by fewer rounds,
    the round has been answered for other rows, or a later one has been answered; or when there are rows
    before any round was answered: whether a row has the right length says how many items are rated, which the
    first report is to say, at its price.
    """
    population = partition.population
    protocol = population.installed(GradientPerturbationProtocol)
    rows, counts, round_index = request.rows, partition.counts, request.round_index
    if len(rows) != partition.size:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "rows of another partition")
    has_row, memory = Pieces.of(rows).sizes > 0, Memory.of(population, protocol.rounds, context)
    if has_row.any() and not memory.last_answer()[0]:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "rows of items that were not reported")
    entries = _entries(rows, has_row, counts)
    memory.answer_once(round_index, b"".join(len(row).to_bytes(8, "little") + row for row in rows))
    draws = RoundDraws(draws_of_rounds(partition, "slope report"), round_index, population.keys.public_seed)
    return protocol.answer(profiles_of(partition), entries, has_row, draws)


def _entries(rows: list[bytes], has_row: Bools, counts: Ints) -> Floats:
    for row, count in zip(rows, counts.tolist(), strict=True):
        if row and len(row) != count * exchange.ROW_ENTRY.itemsize:
            raise Refusal(RefusalCode.MALFORMED_REQUEST, f"a row of {len(row)} bytes for {count} ratings")
    entries = np.zeros(int(counts.sum()))
    entries[np.repeat(has_row, counts)] = np.frombuffer(b"".join(rows), dtype=exchange.ROW_ENTRY)
    if not np.isfinite(entries).all():
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "a row with numbers that are not finite")
    return entries
