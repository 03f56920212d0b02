"""The device's part of rounds: contribute to what the server learns, with its user's factors or for a model.

What a device guarantees against any server: in a run it sends at most one report per round, in no more
rounds than its budget was divided by, each within one round's share. This holds because

- budget, number of rounds and kind of report are installed on the device; no request carries them;
- a node answers a round once (see `clients.memory`), and refusals depend on the requests alone;
- every user has a report whatever is sent down, and its length does not depend on the ratings;
- what a device contributes to sums has a bounded norm whatever its ratings, with its own noise if it adds
  any; how ratings are chosen and clipped is installed on it, too.

Who adds up contributions to sums, and the noise that is added on the way, are those of the installed
aggregation.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict

from clients.faults import ABSENT, DAMAGED, LATE, damaged
from clients.memory import Memory
from clients.population import Partition, Population, draws_of_rounds, lasting_draws
from dprec import exchange
from dprec.arrays import Bools, Pieces, Uint64s, offsets
from dprec.completion import Profiles
from dprec.errors import SettingError
from dprec.exchange import Refusal, RefusalCode
from dprec.gradients import Aggregate, RoundDraws
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.rounds import BroadcastProtocol
from dprec.protocols.sums import SumsProtocol
from dprec.sums import Aggregation, PartOfContributions

AddUp = Callable[[Sequence[bytes]], tuple[Bools, Aggregate]]
"""Validates and adds up reports; see `GradientReport.decode`."""


def reply_with_reports(
    message: Message,
    partition: Partition,
    reports: Sequence[bytes],
    *,
    round_index: int,
    asked: Bools | None = None,
    add_up: AddUp | None = None,
) -> Message:
    """Return the reply that carries one report per user who was asked, by default everybody.

    Faults are drawn here: an absent user's report is empty and marked, a late one is marked. Who refuses to
    send anything is absent. ``add_up``: the reply carries the sum of the reports that a server would accept;
    the node does what the server does with reports, so that they need not be carried to it.
    """
    population, sent = partition.population, Pieces.of(reports)
    users = np.arange(partition.size) if asked is None else np.flatnonzero(asked)
    if users.size < partition.size:
        sent = sent.chosen(users)
    fate = population.fates(round_index, partition.start, partition.size)[users]
    fate[partition.refuses[users]] = ABSENT
    if np.isin(fate, (ABSENT, DAMAGED)).any():
        after = {ABSENT: lambda report: b"", DAMAGED: damaged}
        each = zip(sent, fate.tolist(), strict=True)
        sent = Pieces.of([after[mark](report) if mark in after else report for report, mark in each])
    absent, late = fate == ABSENT, fate == LATE
    if add_up is None:
        places = (tuple(np.flatnonzero(mark).tolist()) for mark in (absent, late))
        entries = exchange.Reports(partition.start, sent, *places).entries()
    else:
        _, aggregate = add_up(sent.chosen(np.flatnonzero(~absent & ~late)))
        total, sizes = aggregate.total.ravel(), sent.sizes
        entries = exchange.SummedReports(
            partition.start, absent, late, sizes, aggregate.users, total, aggregate.raters
        ).entries()
    return Message(RecordDict({exchange.REPLY: ConfigRecord(entries)}), reply_to=message)


def answers(
    partition: Partition, request: exchange.GradientRequest, context: Context
) -> tuple[Sequence[bytes], AddUp]:
    """Return the report of every user of a partition, and what validates and adds them up.

    Raises Refusal when other devices are asked, what was sent is malformed, the budget was divided by fewer
    rounds, the round has been answered for something else, or a later one has been answered.
    """
    population, protocol = partition.population, partition.population.installed(IterativeProtocol)
    memory = Memory.of(population, protocol.rounds, context)
    device = device_of(protocol, request.factors, population, memory if protocol.keeps_last else None)
    memory.answer_once(request.round_index, device.question)
    if protocol.keeps_last:
        memory.hold(device.encode())

    def encoded(part: Partition, *, lies: bool) -> Sequence[bytes]:
        devices = draws_of_rounds(part, protocol.purpose).asked(device.question)
        draws = RoundDraws(devices, request.round_index, population.keys.public_seed)
        if lies and population.targets:
            return device.crafted(profiles_of(part), draws, np.array(population.targets))
        return device.answer(profiles_of(part), draws)

    reports = Pieces.joined(encoded(part, lies=lies) for part, lies in partition.parts_that_lie)
    return reports, device.reading.decode


def receive_learned(partition: Partition, final: exchange.FinalFactors, context: Context) -> None:
    """Receive what was learned, from which devices predict; raises Refusal when it is malformed."""
    population = partition.population
    protocol: Any = population.installed(BroadcastProtocol, SumsProtocol, RandomizedSetsProtocol)
    memory = Memory.of(population, protocol.rounds, context) if protocol.keeps_last else None
    device = device_of(protocol, final.factors, population, memory)
    if memory is not None:
        memory.hold(device.encode())
    population.show(lambda process: device.predictions(profiles_of(partition)))


def device_of(protocol: Any, sent: bytes, population: Population, memory: Memory | None) -> Any:
    """Return what devices hold that were sent some bytes, which may be changes of what they held before.

    ``memory``: None where they keep nothing.
    """
    shape, before = (population.n_items, population.scale), None if memory is None else memory.held()
    with exchange.refusing_malformed():
        if before is None:
            return protocol.device(sent, *shape)
        return protocol.device(sent, *shape, protocol.device(before, *shape))


def profiles_of(partition: Partition) -> Profiles:
    """Return the true ratings of a partition."""
    return Profiles(
        offsets(partition.counts), partition.items, partition.values, partition.population.n_items
    )


def contributions(
    partition: Partition, request: exchange.GradientRequest, context: Context
) -> tuple[Sequence[bytes], AddUp]:
    """Return the report of every user of a partition, and what validates and adds them up.

    Raises Refusal when what was sent is malformed, the protocol has fewer rounds, the round has been answered
    for another model, or a later one has been answered; or when the devices are too few for their
    aggregation, as one that runs alone is for sums with others.
    """
    population, protocol = partition.population, partition.population.installed(SumsProtocol)
    round_index = request.round_index
    with exchange.refusing_malformed():
        device = protocol.device(request.factors, population.n_items, population.scale)
    aggregation = among_all(partition)
    Memory.of(population, protocol.rounds, context).answer_once(round_index, request.factors)
    layout = device.release(round_index)
    multiplier = protocol.multipliers[round_index - 1]

    def encoded(part: Partition, *, lies: bool) -> Pieces:
        devices = draws_of_rounds(part, "contribution").asked(request.factors)
        words = devices.per_cell(np.asarray(part.counts), part.items, round_index)
        own = device.contributions(profiles_of(part), layout, words)
        lasting = turns_of(part) if aggregation.by_itself else None
        draws = RoundDraws(devices, round_index, population.keys.public_seed, lasting)
        if not lies:
            return Pieces.of(aggregation.encode(own, layout, multiplier, draws))
        if population.targets:
            own = PartOfContributions(own, device.about(np.array(population.targets), layout))
        return Pieces.of(aggregation.crafted(own, layout, multiplier, draws, population.crafted))

    reports = Pieces.joined(encoded(part, lies=lies) for part, lies in partition.parts_that_lie)
    return reports, partial(aggregation.decode, layout=layout, multiplier=multiplier)


def turns_of(partition: Partition) -> Uint64s:
    """Return the words from which it follows in which rounds the users of a partition report."""
    return lasting_draws(partition, "round of the only report").per_user(0, 0)


def among_all(partition: Partition) -> Aggregation:
    """Return who adds up, among all devices; raises Refusal for too few of them."""
    population = partition.population
    try:
        return population.installed(SumsProtocol).aggregation.among(population.devices)
    except SettingError as error:
        raise Refusal(RefusalCode.NOT_SET_UP, str(error)) from None
