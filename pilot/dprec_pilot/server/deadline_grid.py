"""The grid of a deployment: when a round ends, and which devices are asked again.

A round ends when everybody has answered, or when its quorum has and nobody else holds a question: whoever is
missing then is not online. It ends at its deadline at the latest.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from flwr.app import Message
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.serverapp import Grid

from dprec.errors import SettingError
from dprec.exchange import Reports
from simulation.engine.grids import WaitingGrid
from strategies.roster import reply_record

_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 0.5, 5.0
_POLLS = 0.02
"""Time between polls, as a share of the time that a round has lasted."""

_SLACK = 1e-9
"""By what a share of devices may exceed an integer: 0.7 of 10 are 7."""


@dataclass(frozen=True)
class Patience:
    """How long the devices of a round are waited for, in seconds."""

    deadline: float
    """When a round ends at the latest."""
    grace: float
    """For how long after the deadline answers are counted as late."""
    quorum: float = 1.0
    """With how many answers a round may end before: up to 1 a share of those asked, above 1 their number."""
    ask_again: float = math.inf
    """After how long without an answer a device that is online is asked again; each time twice as long."""

    def needed(self, asked: int) -> int:
        """Return how many answers a round may end with, of so many devices."""
        share = math.ceil(self.quorum * asked - _SLACK) if self.quorum <= 1 else int(self.quorum)
        return min(share, asked)


def check_quorum(quorum: float) -> None:
    """Raise SettingError for what is neither a share nor a number."""
    if quorum > 1 and not quorum.is_integer():
        raise SettingError("quorum", f"{quorum:g}", "a share up to 1, or a number of devices")


@dataclass
class _Owed:
    """A question that a device has not answered."""

    question: Message
    identifiers: set[str]
    """Of the messages that ask it."""
    again: float
    """When it is asked again, on the clock of `time.monotonic`."""
    pause: float
    """How long it is waited for after that."""


@dataclass
class _Round:
    """Whom a round still waits for."""

    began: float
    deadline: float
    unasked: dict[int, Message]
    """Questions to devices that are not online, by node."""
    owed: dict[int, _Owed] = field(default_factory=dict)
    """Questions to others that have not answered, by node."""

    @property
    def passed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began


class DeadlineGrid(WaitingGrid):
    """Another grid, that of a SuperLink, whose rounds end by a quorum or at a deadline.

    A device is asked once it is online, until the deadline; one that has been asked may answer for as long as
    the grace lasts, and is marked as late. A question is deleted with its grace, so that no device spends its
    budget on an answer that nobody hears. The SuperLink deletes a question to a device that is lost too: it
    is asked again when it is back. One that is back before that is noticed is asked again after a while; the
    first of its answers counts.

    ``reached`` is told which nodes are asked anything, before they are: one that has paid for an answer must
    be known. ``arrived`` is told the replies, before anything else happens.
    """

    def __init__(
        self,
        grid: Grid,
        patience: Patience,
        reached: Callable[[Sequence[int]], object] = lambda nodes: None,
        arrived: Callable[[Sequence[Message]], object] = lambda replies: None,
    ) -> None:
        super().__init__(grid)
        self._patience, self._reached, self._arrived = patience, reached, arrived

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Ask the devices that are online until the round ends; return the replies, late ones marked."""
        return self.ask(messages, timeout=timeout)

    def ask(
        self, messages: Iterable[Message], *, answered: int = 0, timeout: float | None = None
    ) -> list[Message]:
        """Ask the devices of a round in which so many others have answered; see `send_and_receive`."""
        patience, replies = self._patience, list[Message]()
        deadline = patience.deadline if timeout is None else min(timeout, patience.deadline)
        unasked = {message.metadata.dst_node_id: message for message in messages}
        going, needed = _Round(time.monotonic(), deadline, unasked), patience.needed(answered + len(unasked))
        while going.owed or going.unasked:
            passed = going.passed
            if passed < deadline:
                self._ask(going)
                if not going.owed and answered + len(replies) >= needed:
                    break
            elif not going.owed or passed > deadline + patience.grace:
                break
            if arrived := self._pull(going):
                self._arrived(arrived)
                replies += arrived
            if going.owed or going.unasked:
                time.sleep(min(max(_FIRST_POLL_SECONDS, _POLLS * passed), _LAST_POLL_SECONDS))
        return replies

    def _pull(self, going: _Round) -> list[Message]:
        """Return the replies that have arrived, one of each device; those that were lost are unasked."""
        nodes = {key: node for node, owed in going.owed.items() for key in owed.identifiers}
        pulled, replies = list(self.pull_messages(list(nodes)) if nodes else ()), []
        # An answer counts, whatever the SuperLink says of another message with the same question.
        for reply in sorted(pulled, key=_is_lost):
            node = nodes[reply.metadata.reply_to_message_id]
            owed = going.owed.pop(node, None)
            if owed is None:
                continue
            if _is_lost(reply):
                going.unasked[node] = owed.question
            else:
                replies += [reply] if going.passed <= going.deadline else marked_late(reply)
        return replies

    def _ask(self, going: _Round) -> None:
        """Send the questions that are due to nodes that are online."""
        began = time.monotonic()
        again = [node for node, owed in going.owed.items() if owed.again <= began]
        due = {*going.unasked, *again}
        if not due or not (here := sorted(due & set(self.get_node_ids()))):
            return
        seconds = going.deadline + self._patience.grace - going.passed
        known = [going.owed.get(node) for node in here]
        questions = []
        for node, owed in zip(here, known, strict=True):
            asked = going.unasked[node] if owed is None else owed.question
            kind, group = asked.metadata.message_type, asked.metadata.group_id
            questions.append(Message(asked.content, node, kind, ttl=seconds, group_id=group))
        self._reached(here)
        now, sent = time.monotonic(), list(self.push_messages(questions))
        for node, owed, key, question in zip(here, known, sent, questions, strict=True):
            if not key:
                continue
            pause = self._patience.ask_again if owed is None else owed.pause
            keys = {key} if owed is None else owed.identifiers | {key}
            going.owed[node] = _Owed(question, keys, now + pause, 2 * pause)
            going.unasked.pop(node, None)


def _is_lost(reply: Message) -> bool:
    """Return whether a reply is the SuperLink's own, for a device that will not answer."""
    return bool(reply.metadata.src_node_id == SUPERLINK_NODE_ID)


def marked_late(reply: Message) -> list[Message]:
    """Return a reply whose reports are all marked as late; nothing if it has none to mark."""
    record = reply_record(reply)
    if record is None or "reports" not in record:
        return [reply] if reply.has_error() else []
    # What is malformed is refused wherever it is read.
    with suppress(ValueError):
        record["late"] = list(range(len(Reports.of(record).reports)))
    return [reply]
