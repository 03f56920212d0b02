"""The device's part of a federated model: an update in each round that it is asked in, and what it keeps.

What a device keeps stays in its node's context, beside what it has answered. It is asked again only for the
same: it then computes from what it kept before, and repeats what it sent. In a simulation alone, nodes tell
what their devices keep and computed, so that it can be evaluated and watched.
"""

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict

from clients.faults import ABSENT
from clients.iterative import ReportsToSum, device_of, profiles_of
from clients.memory import Memory
from clients.population import Partition, draws_of_rounds
from dprec import exchange
from dprec.arrays import Ints, Pieces, offsets
from dprec.completion import Profiles
from dprec.federated import Devices, State, begun
from dprec.gradients import RoundDraws
from dprec.protocols.federated import FederatedProtocol, ModelDevice, checked_of


def updates(partition: Partition, request: exchange.GradientRequest, context: Context) -> ReportsToSum:
    """Return the reports of those of a partition who are asked and there, and what adds them up.

    Those of all others are empty. Raises Refusal as `clients.iterative.answers`.
    """
    population, number = partition.population, request.round_index
    protocol = population.installed(FederatedProtocol)
    device: ModelDevice = device_of(protocol, request.factors, population, None)
    memory = Memory.of(population, protocol.rounds, context)
    again = memory.last_answer()[0] == number
    memory.answer_once(number, device.question)
    before = _kept(partition, memory, again=again)
    devices = draws_of_rounds(partition, protocol.purpose).asked(device.question)
    draws = RoundDraws(devices, number, population.keys.public_seed)
    learned, spared = _learned_and_spared(partition)
    every = Devices.in_round(learned, before, draws, spared)
    active, reports, sent = _active(partition, request), [], np.zeros(partition.size, dtype=np.int64)
    # Who was asked in this round before others keeps what it computed then.
    told = memory.told() if again else None
    after = tuple(array.copy() for array in (before if told is None else told.kept))
    norms, losses = (
        np.full((2, partition.size), np.nan) if told is None else np.stack([told.norms, told.losses])
    )
    checked = checked_of(active.size, draws)
    for start in range(0, active.size, device.users_at_once):
        users = active[start : start + device.users_at_once]
        own_checked = checked[(checked >= start) & (checked < start + users.size)] - start
        several, senders = every.of_users(users), np.zeros(partition.size, dtype=np.bool_)
        computed = device.computed(several, own_checked)
        senders[users] = True
        holds = np.diff(several.profiles.indptr) > 0
        steps, norms[users] = device.coding.steps(computed.updates, holds)
        losses[users] = computed.losses
        reports.append(device.coding.reports(steps, draws, senders).data)
        sent[users] = device.coding.report_bytes
        for place, state in zip(after, computed.state, strict=True):
            place[users] = state
    memory.keep(exchange.Told(number, after, norms, losses), before)
    pieces = Pieces(b"".join(reports), offsets(sent))
    return ReportsToSum([(partition, False)], lambda part, lies: pieces, device.reading.decode)


def tell(message: Message, partition: Partition, context: Context) -> Message:
    """Return what the devices of a simulation keep, and what they computed last."""
    population = partition.population
    memory = Memory.of(population, population.installed(FederatedProtocol).rounds, context)
    if (told := memory.told()) is None:
        nothing = np.full(partition.size, np.nan)
        told = exchange.Told(0, _kept(partition, memory), nothing, nothing)
        memory.keep(told, told.kept)
    return Message(RecordDict({exchange.REPLY: ConfigRecord(told.entries())}), reply_to=message)


def _kept(partition: Partition, memory: Memory, *, again: bool = False) -> State:
    """Return what the devices of a partition keep; ``again``: what they kept before their last answer."""
    state = memory.kept(slice(partition.start, partition.stop), again=again)
    if state is not None:
        return state
    population = partition.population
    draws = draws_of_rounds(partition, "what a device keeps")
    keys = np.stack([draws.per_user(index, 0) for index in (0, 1)], axis=1)
    return begun(population.installed(FederatedProtocol).model, population.n_items, population.scale, keys)


def _learned_and_spared(partition: Partition) -> tuple[Profiles, Profiles | None]:
    """Return what devices learn from, and what they never draw: ratings of which they know nothing else."""
    profiles, answered = profiles_of(partition), partition.levels > 0
    if answered.all():
        return profiles, None
    return profiles.select(answered), profiles.select(~answered)


def _active(partition: Partition, request: exchange.GradientRequest) -> Ints:
    """Return the places of those who are asked, and there."""
    with exchange.refusing_malformed():
        asked = exchange.asked_users(request.asked, partition.size)
    fates = partition.population.fates(request.round_index, partition.start, partition.size)
    return np.flatnonzero(asked & ~partition.refuses & (fates != ABSENT))
