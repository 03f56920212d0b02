"""One device: answers requests from its folder, and trusts nobody who sends them.

A reply depends on the profile through the installed mechanism alone. What is refused is decided by what is no
secret: the request, the agreement, what was answered, and what any profile could lose. What the device
computes for its user (`Device.take_work`) begins once the reply has left, and nothing of it is sent.

The handlers compute an answer. It leaves only after

- the request has been found to be for this user and protocol;
- what it costs keeps to the limits of the user, or was charged for the same answer before;
- its memory (`dprec_pilot.device.profile`) and then its ledger (`dprec_pilot.device.ledger`) are on disk.

A run is answered to its end from the profile with which it began. The handlers refuse another question in a
round that was answered, and draw the same noise for the same one. So one charge for each run, type of message
and round covers every answer that can leave.
"""

import hashlib
import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from flwr.app import ConfigRecord, Context, Error, Message, Metadata, RecordDict

from clients.app import Answer, answering
from clients.faults import FaultOptions
from clients.population import Partition, Population, Received, device_draws
from clients.prices import PRICES, Price
from dprec import exchange
from dprec.accounting import Loss
from dprec.arrays import Uint64s
from dprec.errors import InputError
from dprec.exchange import Refusal, RefusalCode
from dprec.randomness import Keys
from dprec.reports import REPORT_ROUND
from dprec_pilot import computing
from dprec_pilot.device import ledger
from dprec_pilot.device import profile as profiles
from dprec_pilot.device.folder import DeviceFolder, SecretKeys
from dprec_pilot.device.ledger import Charge, Ledger, most_lost, price_of
from dprec_pilot.device.profile import Profile, State, emptied
from dprec_pilot.device.repeated import Repetition
from dprec_pilot.groups import run_key_in
from dprec_pilot.masks.device import take_part
from dprec_pilot.records import as_bytes, kept

_LONGEST = 1e7
"""Seconds that a request may live, and from now to when it was made, at most: about four months."""

_DELIVERED = "delivered-"
"""How the names of records begin that say what was delivered to a device."""

_MOST_RUNS = 64
"""Runs of which a device remembers what was delivered: a server can begin any number."""


def usual_times(request: Metadata) -> bool:
    """Return whether a request was made, and expires, at times that a server would give it.

    Larger numbers are less exact: how their sums with the present time are rounded would tell of it.
    """
    return 0 < request.ttl < _LONGEST and abs(request.created_at - time.time()) < _LONGEST


def expiring_with(request: Metadata, reply: Message) -> None:
    """Let a reply expire when its request does."""
    reply.metadata.created_at, reply.metadata.ttl = request.created_at, request.ttl


def error_reply(request: Message, code: RefusalCode) -> Message:
    """Return the reply that says no more than a code."""
    metadata = request.metadata
    if not usual_times(metadata):
        metadata.created_at, metadata.ttl = 0.0, _LONGEST
    reply = Message(Error(int(code), code.name), reply_to=request)
    expiring_with(metadata, reply)
    return reply


LOG = logging.getLogger("dprec.device")
"""What the owner of a device reads: a line for each event."""

_LARGEST_HEAD, _LARGEST_PER_ITEM = 1 << 20, 1 << 12
"""Bytes of a request at most: in any case, and more for each item, as of a pair of 4,096."""

_ALONE = b"\x80"
"""How a request says that the first of its users is asked, which is all that a device has."""


class _Handlers(dict[str, Answer]):
    """The handlers, by the type of the message."""

    def query(self, action: str, /) -> Callable[[Answer], Answer]:
        """Register the handler of a query."""
        return partial(self._registered, f"query.{action}")

    def train(self, action: str, /) -> Callable[[Answer], Answer]:
        """Register the handler of a question in rounds."""
        return partial(self._registered, f"train.{action}")

    def _registered(self, kind: str, handler: Answer) -> Answer:
        self[kind] = handler
        return handler

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer a message of a type that is registered."""
        kind = message.metadata.message_type
        return self[f"{kind.partition('.')[0]}.{exchange.action_of(kind)}"](message, context)


class Device:
    """A device, whose folder nobody else uses.

    ``seeded``: whether the noise follows from a seed, as in the simulation: for tests only. Raises InputError
    when the folder cannot be used, or is for other use, and OSError when the last line of the ledger was cut
    off, and cannot be written.
    """

    def __init__(self, folder: DeviceFolder, *, seeded: bool = False) -> None:
        if seeded is not (folder.seeded is not None):
            found = "a device that draws from its secret" if seeded else "a device of a test"
            raise InputError(
                str(folder.path), found, "--seeded for devices with a seeded.json, and no others"
            )
        self.folder = folder
        self._options, self._agreement, self._secret = folder.options, folder.agreement, folder.secret
        self._app = answering(_Handlers(), self._partition_for)
        take_part(self._app, self._partition_for, folder.party)
        self._profile = self._latest = folder.profile()
        self._partition = self._partition_of("", self._profile)
        self._received: Received | None = None
        self._work: Callable[[], None] | None = None
        self._open()

    def _open(self) -> None:
        self._state = profiles.read_state(self.folder.state_file)
        last = self._state.last_charge
        self._ledger = Ledger.open(self.folder.ledger_file, self._state.charges, last)
        if (lines := len(self._ledger.charges)) > self._state.charges:
            # A memory of an earlier time: what it lacks is in the ledger.
            self._remember(replace(self._state, charges=lines, last_charge=self._ledger.last))

    @property
    def name(self) -> str:
        """How the owner is told of which device a line is."""
        return self.folder.path.name

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What was spent."""
        return self._ledger.charges

    @property
    def cost_of_report(self) -> Loss | None:
        """What one report costs the present profile; None where rounds are answered instead."""
        if self._agreement.protocol.family(self._agreement.scale, self._agreement.items) is None:
            return None
        return price_of(exchange.REPORT, self._partition, ConfigRecord(), self.name).paid

    @property
    def largest_request(self) -> int:
        """Bytes that a request may have: ample room for what is said of the items of the catalogue."""
        return _LARGEST_HEAD + _LARGEST_PER_ITEM * self._agreement.items

    @property
    def pending(self) -> Message | None:
        """The last reply, if it is not known to have arrived."""
        return self._state.pending

    @property
    def node_id(self) -> int:
        """Under which the server knows the device; 0 before it does."""
        return self._state.node_id

    def remember_node(self, node_id: int) -> None:
        """Keep the number under which the server knows the device."""
        self._remember(replace(self._state, node_id=node_id))

    def forget_reply(self) -> None:
        """Note that the last reply has arrived, or that nobody waits for it."""
        self._remember(replace(self._state, reply=b""))

    def answer(self, message: Message) -> Message:
        """Return the reply to a message.

        Everything that the reply says is charged and remembered when it returns. A refusal says no more than
        its code; the owner reads the reason.
        """
        self._received = self._work = None
        try:
            return self._answer(message)
        except Refusal as refusal:
            code, reason = refusal.code, refusal.reason
        except InputError as error:  # what the owner has to correct
            code, reason = RefusalCode.INTERNAL_FAILURE, str(error)
        except OSError as error:
            code, reason = RefusalCode.INTERNAL_FAILURE, f"{self.folder.path}: {error.strerror}"
        except Exception:  # whatever it is, the server must not read it
            code, reason = RefusalCode.INTERNAL_FAILURE, "a defect"
            LOG.exception("%s: %s", self.name, code.name)
        LOG.warning("%s: refused a request: %s, %s", self.name, code.name, reason)
        return error_reply(message, code)

    def take_work(self) -> Callable[[], None] | None:
        """Return what is left to do for the user after the last answer, if anything is: to predict.

        It is to be called once the reply has left. It raises nothing, and may run beside further answers.
        """
        work, self._work = self._work, None
        return work

    def _answer(self, message: Message) -> Message:
        request, kind = message.metadata, message.metadata.message_type
        if len(self._ledger.charges) != self._state.charges:
            # The disk did not take the last line.
            self._open()
        record, agreed = self._checked(message), self._agreement.fingerprint
        run = "" if kind == exchange.IDENTIFY else run_key_in(request.group_id, agreed)
        profile = self._profile_of(run)
        self._check_paid(run, kind)
        charge, repeats = None, kind == exchange.REPORT and self._agreement.memory
        if repeats:
            profile, charge = self._repeated(run, profile, record)
        if (run, profile.digest) != (self._partition.population.key, self._profile.digest):
            self._partition, self._profile = self._partition_of(run, profile), profile
        # The handlers write to a copy, which counts only if the answer is to leave.
        records = self._state.records
        context = Context(
            run_id=message.metadata.run_id,
            node_id=message.metadata.dst_node_id,
            node_config={"partition-id": self._options.user},
            state=records,
            run_config={},
        )
        reply = self._computed(message, context)
        expiring_with(request, reply)
        if kind in ledger.DELIVERIES:
            deliver_once(context, run, kind, kept(message.content))
        state = replace(self._state, answers=kept(records), reply=as_bytes(reply))
        if kind in ledger.LEADING_TO:
            self._charge_for(run, ledger.LEADING_TO[kind], record)
        if kind in PRICES and not repeats:
            charge = self._charge_for(run, kind, record)
        if charge is not None:
            self._charge(state, charge)
        elif kind in PRICES or state.answers != self._state.answers:
            self._remember(state)
        self._prepare_work()
        LOG.info("%s: answered %s in run %s", self.name, kind, run)
        return reply

    def _computed(self, message: Message, context: Context) -> Message:
        """Return the answer of the handlers, or raise their Refusal.

        The handlers compute an answer for any request that is not refused. Should a defect break that for
        some profiles, this must not be seen: the device answers as one whose user has rated nothing.
        """
        try:
            return self._app(message, context)
        except Refusal:
            raise
        except Exception:
            LOG.exception("%s: a defect; answered as if nothing were rated", self.name)
        partition, self._received = self._partition, None
        try:
            self._partition = emptied(partition)
            return self._app(message, context)
        finally:
            self._partition, self._received = partition, None

    def _checked(self, message: Message) -> exchange.Record:
        """Return what a message asks for, after checking that it is for this device; raises a Refusal."""
        kind = message.metadata.message_type
        if kind not in ledger.FREE and kind not in PRICES:
            raise Refusal(RefusalCode.MALFORMED_REQUEST, "an unknown kind of request")
        if kind == exchange.REPLACE:
            reason = "replacements carry ratings in the clear, and the server says by what"
            raise Refusal(RefusalCode.NOT_SET_UP, reason)
        if kind != exchange.IDENTIFY and (agreed := self._agreement.computes) != computing.COMPUTES:
            reason = f"agreed: version {agreed} of what devices compute; installed: {computing.COMPUTES}"
            raise Refusal(RefusalCode.OTHER_VERSION, reason)
        if not usual_times(message.metadata):
            raise Refusal(RefusalCode.MALFORMED_REQUEST, "a request of no usual time")
        parts = message.content if message.has_content() else RecordDict()
        # Many names of one part would be many copies of it.
        if len(parts) > 1:
            raise Refusal(RefusalCode.MALFORMED_REQUEST, f"a request of {len(parts)} parts")
        record = parts.get(exchange.REQUEST, ConfigRecord())
        if not isinstance(record, ConfigRecord):
            raise Refusal(RefusalCode.MALFORMED_REQUEST, "a request without a record")
        if record.get("asked", _ALONE) != _ALONE:
            raise Refusal(RefusalCode.WRONG_USER, "a request for other users")
        return record

    def _profile_of(self, run: str) -> Profile:
        """Return the profile with which a run is answered: that of its first charge, or the present one.

        A profile that cannot be read is the owner's business: until it can be, the device answers from the
        last one that could.
        """
        charges = self._ledger.of_run(run)
        if any(charge.protocol != self._agreement.fingerprint for charge in charges):
            reason = "protocol.json has changed since the first answer of this run"
            raise Refusal(RefusalCode.CHANGED_SETUP, reason)
        if charges and charges[0].profile == self._profile.digest:
            return self._profile
        if charges:
            return self.folder.kept_profile(charges[0].profile)
        try:
            self._latest = self.folder.profile()
        except InputError as error:
            LOG.warning("%s: answering from the ratings that were read before: %s", self.name, error)
        return self._latest

    def _check_paid(self, run: str, kind: str) -> None:
        """Refuse an answer of which a part is charged with another one that was not given in this run."""
        before = ledger.CHARGED_WITH.get(kind)
        if before is not None and all(charge.question != before for charge in self._ledger.of_run(run)):
            raise Refusal(RefusalCode.MALFORMED_REQUEST, f"asked for {kind} before {before}")

    def _charge_for(self, run: str, kind: str, record: exchange.Record) -> Charge | None:
        """Return the charge for an answer; None if it was charged before.

        Refuses the answer where any profile could exceed a limit by it.
        """
        answered = {charge.round for charge in self._ledger.of_run(run) if charge.question == kind}
        price = price_of(kind, self._partition, record, self.name, answered)
        if price.round_index in answered:
            return None
        charge = Charge.of(run, kind, price, self._agreement.fingerprint, self._profile.digest)
        if (exceeded := self._exceeded(charge)) is not None:
            raise Refusal(RefusalCode.BUDGET_SPENT, exceeded)
        return charge

    def _exceeded(self, charge: Charge) -> str | None:
        """Return which limit any profile could exceed by a charge, in words; None if none."""
        lifetime = [*self._ledger.charges, charge]
        return self._options.limits.exceeded([*self._ledger.of_run(charge.run), charge], lifetime)

    def _charge(self, state: State, charge: Charge) -> None:
        """Charge an answer; its memory and the ledger are on disk afterwards."""
        line = self._ledger.line(charge)
        if not charge.memory:
            self.folder.keep_profile(self._profile)
        self._remember(replace(state, charges=len(self._ledger.charges) + 1, last_charge=line))
        self._ledger = self._ledger.append(line)
        costs = charge.loss.per_rating, charge.loss.per_user
        if math.isinf(charge.loss.per_user):
            LOG.info("%s: charged an answer that has no epsilon of its own", self.name)
        else:
            delta = f", delta {charge.delta:.4g}" if charge.delta else ""
            LOG.info("%s: charged epsilon %.4g per rating, %.4g per user%s", self.name, *costs, delta)

    def _repeated(self, run: str, profile: Profile, record: exchange.Record) -> tuple[Profile, Charge | None]:
        """Return a profile as every run is answered from it, and the charge for what is new, if anything is.

        The first answer of all is refused where any profile could exceed a limit by it.
        """
        agreement, charges = self._agreement, self._ledger.charges
        assert agreement.repeated is not None, "an agreement that repeats nothing"
        repetition = Repetition(agreement, agreement.repeated, self._options.limits, charges)

        def charge(held: Profile, paid: Loss, answered: tuple[tuple[str, int], ...] = ()) -> Charge:
            price, said = Price(1, paid, repetition.most), {"memory": agreement.memory, "answered": answered}
            return Charge.of(run, exchange.REPORT, price, agreement.fingerprint, held.digest, **said)

        nothing = charge(profile, Loss(0.0, 0.0))
        if (exceeded := self._exceeded(nothing)) is not None:
            if not repetition.begun:
                raise Refusal(RefusalCode.BUDGET_SPENT, exceeded)
            LOG.warning("%s: what was answered before is repeated, and nothing else: %s", self.name, exceeded)

        def drawn(unanswered: Profile) -> Uint64s:
            """Return words that choose ratings to be answered about, whatever their values are."""
            alike = self._partition_of(run, unanswered.with_levels(np.ones_like(unanswered.levels)))
            words = device_draws(alike, "ratings answered about")
            return words.per_cell(alike.counts, alike.items, REPORT_ROUND)

        answers = repetition.answers(profile, self.folder.item_ids, drawn, room=exceeded is None)
        rises = not repetition.begun or most_lost([*charges, nothing]) != most_lost(charges)
        if not answers.levels and (exceeded is not None or not rises):
            return answers.profile, None
        paid = price_of(exchange.REPORT, self._partition_of(run, answers.new), record, self.name).paid
        return answers.profile, charge(answers.profile, paid, answers.levels)

    def _remember(self, state: State) -> None:
        profiles.write_state(self.folder.state_file, state)
        self._state = state

    def _partition_for(self, message: Message, context: Context) -> Partition:
        return self._partition

    def _partition_of(self, run: str, profile: Profile) -> Partition:
        agreement, user, party = self._agreement, self._options.user, self.folder.party(run)
        public_seed = int(agreement.public, 16)
        keys: Keys = SecretKeys(self._secret, run, agreement.fingerprint, public_seed, self.folder.item_ids)
        population = Population(
            ratings=profile,
            users_per_node=1,
            individual_reports=True,
            keys=self.folder.seeded or keys,
            faults=FaultOptions(),
            protocol=agreement.protocol,
            key=run,
            devices_of_sums=None if party is None else len(party.directory.keys),
            show=self._receive,
        )
        return Partition(population, user, user + 1)

    def _receive(self, received: Received) -> None:
        """Keep what the device has received for its predictions until its message is answered."""
        self._received = received

    def _prepare_work(self) -> None:
        """Leave to be done what the device has received something for: its predictions."""
        received, rated, folder = self._received, self._partition.items, self.folder
        if received is None:
            return

        def predict() -> None:
            try:
                predicted = received(self._agreement.process)[0]
                profiles.write_predictions(folder.predictions_file, folder.item_ids, predicted, rated)
                LOG.info("%s: wrote %s", self.name, folder.predictions_file)
            except Exception:  # whatever it is, it concerns the owner alone
                LOG.exception("%s: no predictions", self.name)

        self._work = predict


def deliver_once(context: Context, run: str, kind: str, delivery: bytes) -> None:
    """Record what is delivered to a device for its predictions, once for each run and type of message.

    The same again is taken again, as after a reply that was lost. Raises Refusal when something else was
    delivered before.
    """
    name, digest, state = f"{_DELIVERED}{run}", hashlib.sha256(delivery).digest(), context.state
    record = state.get(name)
    known = record if isinstance(record, ConfigRecord) else ConfigRecord()
    if known.get(kind, digest) != digest:
        raise Refusal(RefusalCode.CHANGED_REQUEST, f"a second {kind} in the same run")
    if kind in known:
        return
    for other in [each for each in state if each.startswith(_DELIVERED) and each != name][: 1 - _MOST_RUNS]:
        del state[other]
    state[name] = ConfigRecord({**known, kind: digest})
