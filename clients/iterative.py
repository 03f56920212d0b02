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
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict

from clients.faults import ABSENT, DAMAGED, LATE, PUNCTUAL, UserReplies
from clients.memory import Memory
from clients.population import Partition, Population, draws_of_rounds, lasting_draws
from dprec import exchange
from dprec.arrays import Bools, Ints, Pieces, Uint64s, offsets
from dprec.completion import Profiles
from dprec.errors import SettingError
from dprec.exchange import Refusal, RefusalCode
from dprec.gradients import Aggregate, RoundDraws
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.rounds import BroadcastProtocol
from dprec.protocols.sums import REPORTS_AT_ONCE, SumsProtocol
from dprec.sums import Aggregation, PartOfContributions

AddUp = Callable[[Sequence[bytes]], tuple[Bools, Aggregate]]
"""Validates and adds up reports; see `GradientReport.decode`."""


@dataclass(frozen=True, eq=False)
class ReportsToSum:
    """The reports of the users of a partition in a round of which the sum is needed."""

    parts: Sequence[tuple[Partition, bool]]
    """Consecutive users whose reports are held together, and whether they choose them."""
    reports_of: Callable[[Partition, bool], Sequence[bytes]]
    """Returns the reports of such a part."""
    add_up: AddUp

    def reports(self) -> Pieces:
        """Return all of them."""
        return Pieces.joined(self.reports_of(*part) for part in self.parts)

    def summed(self, replies: UserReplies) -> tuple[Ints, Aggregate]:
        """Return the bytes of the reports of who is asked, and the sum of those a server would accept."""
        first, sizes, total = self.parts[0][0].start, [], None
        for part, lies in self.parts:
            part_replies = replies.of(slice(part.start - first, part.stop - first))
            sent, aggregate = self.sum_of(part, lies, part_replies)
            sizes.append(sent)
            total = aggregate if total is None else total + aggregate
        assert total is not None
        return np.concatenate(sizes), total

    def sum_of(self, part: Partition, lies: bool, replies: UserReplies) -> tuple[Ints, Aggregate]:
        """Return `summed` of one part."""
        sent = replies.arriving(self.reports_of(part, lies))
        _, aggregate = self.add_up(sent.chosen(np.flatnonzero(replies.have(DAMAGED, PUNCTUAL))))
        return sent.sizes, aggregate


def reply_with_reports(
    message: Message,
    partition: Partition,
    reports: Sequence[bytes],
    *,
    round_index: int,
    asked: Bools | None = None,
) -> Message:
    """Return the reply that carries one report per user who was asked, by default everybody.

    Faults are drawn here: an absent user's report is empty and marked, a late one is marked.
    """
    replies = _replies(partition, round_index, asked)
    places = (tuple(np.flatnonzero(replies.have(fate)).tolist()) for fate in (ABSENT, LATE))
    sent = exchange.Reports(partition.start, replies.arriving(reports), *places)
    return _reply(message, sent.entries())


def reply_with_sum(
    message: Message, partition: Partition, answers: ReportsToSum, round_index: int, asked: Bools
) -> Message:
    """Return the reply that carries the sum of the reports that a server would accept.

    The node does what the server does with reports, so that they need not be carried to it.
    """
    replies = _replies(partition, round_index, asked)
    sizes, aggregate = answers.summed(replies)
    absent, late, numbers = replies.have(ABSENT), replies.have(LATE), aggregate.numbers.ravel()
    places = None if aggregate.places is None else aggregate.places.flat
    total = aggregate.users, numbers, aggregate.raters, aggregate.undrawn, places
    sent = exchange.SummedReports(partition.start, absent, late, sizes, *total)
    return _reply(message, sent.entries())


def _replies(partition: Partition, round_index: int, asked: Bools | None) -> UserReplies:
    """Return what becomes of reports; who refuses to send any is absent."""
    fates = partition.population.fates(round_index, partition.start, partition.size)
    fates[partition.refuses] = ABSENT
    return UserReplies(np.ones(partition.size, dtype=np.bool_) if asked is None else asked, fates)


def _reply(message: Message, entries: exchange.Entries) -> Message:
    return Message(RecordDict({exchange.REPLY: ConfigRecord(entries)}), reply_to=message)


def answers(partition: Partition, request: exchange.GradientRequest, context: Context) -> ReportsToSum:
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

    def encoded(part: Partition, lies: bool) -> Sequence[bytes]:
        devices = draws_of_rounds(part, protocol.purpose).asked(device.question)
        draws = RoundDraws(devices, request.round_index, population.keys.public_seed)
        if lies and population.targets:
            return device.crafted(profiles_of(part), draws, np.array(population.targets))
        return device.answer(profiles_of(part), draws)

    return ReportsToSum(partition.parts_that_lie, encoded, device.reading.decode)


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


@dataclass(frozen=True, eq=False)
class ContributionsToSum(ReportsToSum):
    """What is reported to an aggregation, of which nobody looks at a single report."""

    aggregation: Aggregation
    drawn: Callable[[Partition], tuple[Any, Any, float, RoundDraws]]
    """Returns what a part contributes, as `Aggregation.encode` is given it."""

    def sum_of(self, part: Partition, lies: bool, replies: UserReplies) -> tuple[Ints, Aggregate]:
        """Return the sum without reports, where the aggregation has another way to it."""
        present = replies.asked & (replies.fates == PUNCTUAL)
        sizes, aggregate = self.aggregation.summed(*self.drawn(part), present)
        return sizes[replies.asked], aggregate


def contributions(partition: Partition, request: exchange.GradientRequest, context: Context) -> ReportsToSum:
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
    layout = protocol.asked(device, round_index)
    multiplier = protocol.multipliers[round_index - 1]

    def drawn(part: Partition) -> tuple[Any, Any, float, RoundDraws]:
        devices = draws_of_rounds(part, "contribution").asked(request.factors)
        words = devices.per_cell(np.asarray(part.counts), part.items, round_index)
        contribution = device.contributions(profiles_of(part), layout, words)
        lasting = turns_of(part) if aggregation.by_itself else None
        draws = RoundDraws(devices, round_index, population.keys.public_seed, lasting)
        return contribution, layout, multiplier, draws

    def encoded(part: Partition, lies: bool) -> Sequence[bytes]:
        contribution, _, _, draws = drawn(part)
        if not lies:
            return aggregation.encode(contribution, layout, multiplier, draws)
        if population.targets:
            contribution = PartOfContributions(
                contribution, device.about(np.array(population.targets), layout)
            )
        return aggregation.crafted(contribution, layout, multiplier, draws, population.crafted)

    bits = aggregation.report_bits(layout, int(partition.counts.max(initial=0)), multiplier)
    together = max(8 * REPORTS_AT_ONCE // max(bits, 1), 1)
    parts = [(block, lies) for part, lies in partition.parts_that_lie for block in part.divided(together)]
    add_up = partial(aggregation.decode, layout=layout, multiplier=multiplier)
    if population.unseen:
        return ContributionsToSum(parts, encoded, add_up, aggregation, drawn)
    return ReportsToSum(parts, encoded, add_up)


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
