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

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict

from clients.faults import ABSENT, DAMAGED, LATE, damaged
from clients.memory import Memory
from clients.population import Partition, Population, draws_of_rounds, lasting_draws
from dprec import exchange
from dprec.arrays import Bools, Floats, Ints, Pieces, Uint64s, offsets
from dprec.completion import Profiles, products_of_rows
from dprec.errors import SettingError
from dprec.exchange import Refusal, RefusalCode
from dprec.exchange.setups import FederatedSetup
from dprec.federated import UpdateCode, check_updates, code_of, of_holders
from dprec.gradients import Aggregate, FittedProfiles, RoundDraws
from dprec.personalization import OrdinalProcess
from dprec.protocols.sums import SumsProtocol
from dprec.randomness import uniform_below, words
from dprec.sums import Aggregation, PartOfContributions
from dprec.wire import Factors, decode_broadcast

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


def gradient_reports(
    partition: Partition, request: exchange.GradientRequest, context: Context
) -> tuple[Sequence[bytes], AddUp]:
    """Return the report of every user of a partition, and what validates and adds them up.

    Raises Refusal when the broadcast is malformed, the budget was divided by fewer rounds, the round has been
    answered for other factors, or a later one has been answered.
    """
    population, setup = partition.population, partition.population.installed(exchange.IterativeSetup)
    memory = Memory.of(population, setup.rounds, context)
    broadcast = _decoded(request.factors, setup, memory, population.n_items)
    memory.answer_once(request.round_index, broadcast.tobytes())
    if setup.broadcast.delta:
        memory.hold(broadcast)
    factors, gradient = broadcast.astype(np.float64), setup.gradient
    epsilon = math.inf if setup.epsilon_per_round is None else setup.epsilon_per_round

    def encoded(part: Partition, *, lies: bool) -> Sequence[bytes]:
        profiles = profiles_of(part)
        user_factors = gradient.user_factors(profiles, factors, setup.ridge)
        fitted = FittedProfiles(profiles, user_factors, factors)
        devices = draws_of_rounds(part, "gradient report").asked(broadcast.tobytes())
        draws = RoundDraws(devices, request.round_index, population.keys.public_seed)
        if lies and population.targets:
            return gradient.crafted(fitted, draws, np.array(population.targets))
        return gradient.encode(fitted, epsilon, draws)

    reports = Pieces.joined(encoded(part, lies=lies) for part, lies in partition.parts_that_lie)
    return reports, partial(setup.gradient.decode, shape=(population.n_items, setup.rank))


def receive_factors(partition: Partition, final: exchange.FinalFactors, context: Context) -> None:
    """Receive item factors, to which devices fit those of their users; raises Refusal for malformed ones."""
    population, setup = partition.population, partition.population.installed(exchange.IterativeSetup)
    memory = Memory.of(population, setup.rounds, context)
    factors = _decoded(final.factors, setup, memory, population.n_items)
    if setup.broadcast.delta:
        memory.hold(factors)
    item_factors = factors.astype(np.float64)

    def predictions(process: OrdinalProcess) -> Floats:
        own = setup.gradient.user_factors(profiles_of(partition), item_factors, setup.ridge)
        return products_of_rows(own, item_factors)

    population.show(predictions)


def profiles_of(partition: Partition) -> Profiles:
    """Return the true ratings of a partition."""
    return Profiles(
        offsets(partition.counts), partition.items, partition.values, partition.population.n_items
    )


def _decoded(broadcast: bytes, setup: exchange.IterativeSetup, memory: Memory, n_items: int) -> Factors:
    """Decode a broadcast, which may contain only what has changed since the last one."""
    shape = (n_items, setup.rank)
    with exchange.refusing_malformed():
        return decode_broadcast(broadcast, setup.broadcast, shape, memory.held(setup.broadcast, shape))


_NUMBERS_AT_ONCE = 1 << 22
"""Bounds the memory of a worker, whatever the size of its partitions and of the model."""

_CHECKED_OF = 128
"""Users for whom one or two of them are checked in a round: a twentieth of the work."""


def update_reports(
    partition: Partition, request: exchange.GradientRequest, context: Context
) -> tuple[list[bytes], AddUp]:
    """Return the report of every user of a partition, and what validates and adds them up.

    Raises Refusal when the parameters are malformed, the setup has fewer rounds, the round has been answered
    for other parameters, or a later one has been answered; and ContractError where the model mixes users.
    """
    population, setup = partition.population, partition.population.installed(FederatedSetup)
    code = _code(population)
    with exchange.refusing_malformed():
        parameters = code.unpack(request.factors)
    Memory.of(population, setup.rounds, context).answer_once(request.round_index, request.factors)
    reports: list[bytes] = []
    users = max(1, _NUMBERS_AT_ONCE // code.size)
    for start in range(partition.start, partition.stop, users):
        part = Partition(population, start, min(start + users, partition.stop))
        devices = draws_of_rounds(part, "model update").asked(request.factors)
        draws = RoundDraws(devices, request.round_index, population.keys.public_seed)
        profiles = profiles_of(part)
        updates = setup.model.updates(parameters, profiles)
        if (checked := _checked(part, request.round_index)) is not None:
            check_updates(setup.model, code, parameters, profiles, updates, checked)
        reports += code.encode(of_holders(updates, profiles), draws)
    return reports, code.decode


def _checked(partition: Partition, round_index: int) -> Ints | None:
    """Return up to two users whose updates are also computed alone; None for most small partitions."""
    seed, size = partition.population.keys.public_seed, partition.size
    drawn = words(seed, "whose updates are checked", 3 * partition.start, 3, round_index=round_index)
    if uniform_below(_CHECKED_OF, drawn[:1])[0] >= size:
        return None
    first, further = uniform_below(size, drawn[1:])
    return np.unique([first, further if further != first else (first + 1) % size])


def receive_parameters(partition: Partition, final: exchange.FinalFactors, context: Context) -> None:
    """Receive the parameters with which devices predict; raises Refusal for malformed ones."""
    population = partition.population
    with exchange.refusing_malformed():
        parameters = _code(population).unpack(final.factors)

    def predictions(process: OrdinalProcess) -> Floats:
        model = population.installed(FederatedSetup).model
        predict = model.predictor(parameters, profiles_of(partition))
        users, items = np.indices((partition.size, population.n_items))
        return predict(users.ravel(), items.ravel()).reshape(users.shape)

    population.show(predictions)


@lru_cache(maxsize=4)
def _code(population: Population) -> UpdateCode:
    setup = population.installed(FederatedSetup)
    return code_of(setup.model, population.n_items, population.scale, setup.clip, setup.deviation)


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
    Memory.of(population, protocol.rounds, context).answer_once(round_index, request.factors)
    aggregation, layout = among_all(partition), device.release(round_index)
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


def receive_learned(partition: Partition, final: exchange.FinalFactors, context: Context) -> None:
    """Receive what was learned, from which devices predict; raises Refusal when it is malformed."""
    population = partition.population
    protocol: Any = population.setup
    with exchange.refusing_malformed():
        device = protocol.device(final.factors, population.n_items, population.scale)
    population.show(lambda process: device.predictions(profiles_of(partition)))


def among_all(partition: Partition) -> Aggregation:
    """Return who adds up, among all devices; raises Refusal for too few of them."""
    population = partition.population
    try:
        return population.installed(SumsProtocol).aggregation.among(population.devices)
    except SettingError as error:
        raise Refusal(RefusalCode.NOT_SET_UP, str(error)) from None
