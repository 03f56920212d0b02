"""The device's part of secure sums: keys, shares, a masked contribution, shares of neighbours' secrets.

What a device guarantees against any server, whatever it is asked and told:

- it accepts keys only with the signature of that neighbour in the directory that all have agreed to, under
  this run, release and number, and shares secrets with nobody else;
- of each neighbour it reveals one secret, once: each step of a release is answered for one question only, and
  never after a later one. With both secrets of a neighbour, its contribution could be read;
- it goes on only with as many neighbours as put a secret together.

It cannot know what others are told. A server that tells devices of different neighbours that they are gone
unmasks the sum of a few devices, or a single one, of whose noise there is then too little for epsilon.

Keys and shares follow from the device's own draws for the run and the release, into which no rating enters,
and from what neighbours have sent. So they can be made again after a restart, and they cost no epsilon. Nor
do the shares that are revealed: all that a server that keeps to the protocol unmasks is the sum, which the
contribution is charged for.

The last step that was answered, and what neighbours have sent for it, is kept in Flower's context, as the
memory of the rounds is (`clients.memory`).
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self, cast

from flwr.app import ConfigRecord, Context, Message

from clients import iterative
from clients.app import Answering, PartitionFor, answer_with_sum, request_in
from clients.iterative import ReportsToSum, reply_with_reports
from clients.memory import Memory
from clients.population import Partition, lasting_draws
from dprec import exchange
from dprec.arrays import Ints
from dprec.exchange import KEYS, SHARES, UNMASK, Refusal, RefusalCode, SecureSumRequest, action_of
from dprec.protocols.sums import SumsProtocol
from dprec.secure_aggregation import device_keys, unpack_vector
from dprec.secure_aggregation.messages import KEYS_BYTES, SIGNED_BYTES
from dprec.sums import SecureAggregation
from dprec_pilot.masks.directory import SigningParty
from dprec_pilot.masks.masking import MaskingDevice, pieces

PartyOf = Callable[[str], SigningParty | None]
"""From a run key to the device in the secure sums of that run; None where there are none."""

_KEYS, _SHARES, _CONTRIBUTION, _UNMASKING = 1, 2, 3, 4
"""The steps of a release."""

_RECORD = "secure-sum-"
"""How the names of records begin that say how far a device is in a run."""

_MOST_RUNS = 4
"""Runs of which a device remembers how far it is: a server can begin any number."""


@dataclass(frozen=True)
class _Progress:
    """How far a device is in the releases of a run."""

    round_index: int = 0
    step: int = 0
    """The last step that was answered."""
    question: bytes = b""
    """Digest of all that its answer depends on."""
    keys: bytes = b""
    shares: bytes = b""
    """What neighbours have sent: their public keys, and what they have encrypted for this device."""

    @classmethod
    def of(cls, run: str, context: Context) -> Self:
        """Return how far a device is; nowhere, if it does not remember the run."""
        record = context.state.get(_RECORD + run)
        return cls(**cast(dict[str, Any], record)) if isinstance(record, ConfigRecord) else cls()

    def keep(self, run: str, context: Context) -> None:
        """Remember this, in place of what was remembered of the run."""
        name, state = _RECORD + run, context.state
        for other in [each for each in state if each.startswith(_RECORD) and each != name][: 1 - _MOST_RUNS]:
            del state[other]
        state[name] = ConfigRecord(dict(vars(self)))

    def at(self, round_index: int, step: int, question: bytes) -> Self:
        """Return the progress with a step that is answered now, or once more for the same question.

        Raises Refusal for a step that was answered for another question, one before the last one, and one
        before which another is to be answered.
        """
        asked, last = (round_index, step), (self.round_index, self.step)
        digest = hashlib.sha256(question).digest()
        said = f"step {step} of the secure sum of round {round_index}"
        if asked == last and digest != self.question:
            raise Refusal(RefusalCode.CHANGED_REQUEST, f"another {said}")
        if asked < last:
            raise Refusal(RefusalCode.ROUND_ANSWERED, f"{said}, after step {last[1]} of round {last[0]}")
        if asked > last and step > _KEYS and last != (round_index, step - 1):
            raise Refusal(RefusalCode.MALFORMED_REQUEST, f"{said} before what comes before it")
        if step == _KEYS:
            return type(self)(round_index, step, digest)
        return replace(self, step=step, question=digest)


@dataclass(frozen=True)
class _Participant:
    """One device in the secure sum of one round."""

    partition: Partition
    context: Context
    round_index: int
    party: SigningParty
    aggregation: SecureAggregation

    @classmethod
    def of(cls, partition: Partition, party: SigningParty | None, round_index: int, context: Context) -> Self:
        """Return the device of a partition; raises Refusal unless it masks."""
        aggregation = iterative.among_all(partition)
        if party is None or not aggregation.masks:
            raise Refusal(RefusalCode.NOT_SET_UP, "a secure sum, in which this device does not take part")
        return cls(partition, context, round_index, party, cast(SecureAggregation, aggregation))

    @property
    def user(self) -> int:
        """Its number in the sum."""
        return self.partition.start

    @cached_property
    def neighbours(self) -> Ints:
        """The numbers of its neighbours, in the order of the graph, shape (degree,)."""
        public_seed = self.partition.population.keys.public_seed
        return self.aggregation.neighbours(self.user, self.round_index, public_seed)

    @cached_property
    def masking(self) -> MaskingDevice:
        """What it says. Its keys are drawn without its ratings, which may change before it contributes."""
        identity = self.party.identity(self.round_index)
        draws = lasting_draws(self.partition, "keys of secure sums").asked(identity)
        (key,) = device_keys(draws, self.round_index)
        return MaskingDevice(key, self.user, self.neighbours, self.aggregation.graph_size, identity)

    def advertise(self, told: bytes) -> bytes:
        """Return the public keys for the secure sum of the round, signed; raises Refusal."""
        self._check_ahead()
        self._keep(self._step(_KEYS, told))
        return self.party.signed(self.masking.advertise(), self.user, self.round_index)

    def share(self, told: bytes) -> bytes:
        """Return a share of each secret for every neighbour, encrypted for it; raises Refusal."""
        self._check_ahead()
        progress = self._step(_SHARES, told)
        with exchange.refusing_malformed():
            public = self._verified(told)
            sealed = self.masking.share(public)
        self._keep(replace(progress, keys=public))
        return sealed

    def contribute(self, request: exchange.GradientRequest) -> ReportsToSum:
        """Return the masked report; see `clients.iterative`."""
        if request.shares is None:
            raise Refusal(RefusalCode.MALFORMED_REQUEST, "a request without shares, in a secure sum")
        progress = self._step(_CONTRIBUTION, hashlib.sha256(request.factors).digest() + request.shares)
        unmasked = iterative.contributions(self.partition, request, self.context)
        (report,) = unmasked.reports()
        population = self.partition.population
        protocol = population.installed(SumsProtocol)
        device = protocol.device(request.factors, population.n_items, population.scale)
        layout = device.release(request.round_index)
        multiplier = protocol.multipliers[request.round_index - 1]
        summed = self.aggregation.sum_of(self.party.identity(request.round_index), layout, multiplier)
        with exchange.refusing_malformed():
            vector = unpack_vector(report, summed.size, summed.bits)
            masked = self.masking.mask(progress.keys, request.shares, vector, summed.bits)
        self._keep(replace(progress, shares=request.shares))
        return replace(unmasked, reports_of=lambda part, lies: [masked])

    def unmask(self, told: bytes) -> bytes:
        """Return of each neighbour a share of its seed if it is present, else of its mask key, or refuse."""
        progress = self._step(_UNMASKING, told)
        with exchange.refusing_malformed():
            revealed = self.masking.unmask(progress.keys, progress.shares, told)
        self._keep(progress)
        return revealed

    def _check_ahead(self) -> None:
        """Refuse keys and shares for a round that was answered, or that there is none of."""
        population = self.partition.population
        memory = Memory.of(population, population.installed(SumsProtocol).rounds, self.context)
        memory.check_round(self.round_index)
        last, _ = memory.last_answer()
        if self.round_index <= last:
            reason = f"round {self.round_index}, after {last} was answered"
            raise Refusal(RefusalCode.ROUND_ANSWERED, reason)

    def _step(self, step: int, question: bytes) -> _Progress:
        """Return the progress with a step that is answered now; see `_Progress.at`."""
        return _Progress.of(self.partition.population.key, self.context).at(self.round_index, step, question)

    def _keep(self, progress: _Progress) -> None:
        """Remember the progress, before the answer leaves."""
        progress.keep(self.partition.population.key, self.context)

    def _verified(self, signed: bytes) -> bytes:
        """Return neighbours' keys without their signatures; raises Refusal for any that is not theirs."""
        found, degree = [], self.aggregation.graph_size.degree
        for neighbour, data in zip(
            self.neighbours.tolist(), pieces(signed, degree, SIGNED_BYTES), strict=True
        ):
            keys = self.party.keys_in(data, neighbour, self.round_index) if any(data) else bytes(KEYS_BYTES)
            if keys is None:
                reason = f"keys that device {neighbour} has not signed for this sum"
                raise Refusal(RefusalCode.MALFORMED_REQUEST, reason)
            found.append(keys)
        return b"".join(found)


def take_part(app: Answering, partition_for: PartitionFor, party_of: PartyOf) -> None:
    """Register with an app how a device that masks answers in secure sums, in place of how others do."""

    def answer(say: Callable[[_Participant, bytes], bytes], message: Message, context: Context) -> Message:
        partition, request = partition_for(message, context), request_in(SecureSumRequest.of, message)
        party = party_of(partition.population.key)
        said = say(_Participant.of(partition, party, request.round_index, context), request.told)
        return reply_with_reports(message, partition, [said], round_index=request.round_index)

    def contribute(partition: Partition, request: exchange.GradientRequest, context: Context) -> ReportsToSum:
        party = party_of(partition.population.key)
        if party is None:
            return iterative.contributions(partition, request, context)
        return _Participant.of(partition, party, request.round_index, context).contribute(request)

    @app.train(action_of(exchange.STATISTICS))
    def statistics(message: Message, context: Context) -> Message:
        """Contribute to a sum."""
        return answer_with_sum(contribute, message, partition_for(message, context), context)

    steps = {KEYS: _Participant.advertise, SHARES: _Participant.share, UNMASK: _Participant.unmask}
    for message_type, say in steps.items():
        app.train(action_of(message_type))(partial(answer, say))
