"""The journal of a run: what its devices have answered, so that a server that was killed can go on.

journal.jsonl in the run directory, only for its owner to read, has a line for each thing that happened: the
run began, with a key and with those who take part; the server asked something; devices were reached; they
answered; the exchange ended. A line is on disk before the server goes on. Every line carries a digest of all
before it, and only the last one can have been cut off: it is dropped.

All that a server computes follows from its folder and from what was answered. So a run that is resumed does
everything again, and is given the answers that are in the journal in place of asking. It asks nobody again
who has answered, and what devices are asked from then on is what they would have been asked.

undelivered.json beside it has the lists of items and the tables from which devices predict that have not
reached those who were away at the end of the run, until they have. They cost users nothing.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from flwr.app import Message
from flwr.serverapp import Grid

from clients.places import sync_folder
from dprec.errors import InputError
from dprec_pilot.device.ledger import DELIVERIES
from dprec_pilot.files import Chain, locked, read_text, unusable, write_durably
from dprec_pilot.groups import is_run_key, new_run_key
from dprec_pilot.records import DecodeError, as_bytes, kept, message_of, records_of
from dprec_pilot.server.deadline_grid import DeadlineGrid, Patience
from dprec_pilot.server.server_folder import Enrolled
from simulation.engine.grids import WaitingGrid
from simulation.storage.directories import SUMMARY

JOURNAL = "journal.jsonl"

_LEAVING_SECONDS = 60.0
"""How long a ServerApp is waited for whose SuperLink was killed: it ends when that is there again."""

_ACCEPTED = "the journal as the server wrote it; without it, start another run"


@dataclass(frozen=True)
class Begun:
    """What a run is bound to from its start."""

    run_key: str
    fingerprint: str
    """Of the protocol."""
    enrolled: tuple[Enrolled, ...]
    """Who takes part; without their keys."""


@dataclass
class Exchange:
    """Something that the server asked, and what was answered so far."""

    questions: str
    """Digest of the messages."""
    reached: set[int] = field(default_factory=set)
    """Nodes that were asked."""
    replies: list[Message] = field(default_factory=list)
    """Those that were read from the file, until somebody has them."""
    ended: bool = False


class Journal:
    """The journal of one run, which no other process may use at the same time."""

    def __init__(self, lines: Chain, begun: Begun, exchanges: list[Exchange]) -> None:
        self._lines, self.begun, self.exchanges = lines, begun, exchanges

    @classmethod
    @contextmanager
    def opened(cls, path: Path, fingerprint: str, enrolled: Iterable[Enrolled]) -> Iterator["Journal"]:
        """Open the journal of a run, or begin one; nobody else can until the end of the context.

        Raises InputError when another process has it, it is damaged, or it is that of another protocol.
        """
        with locked(path, path, "a run that has ended; flwr stop ends one that goes on", _LEAVING_SECONDS):
            yield cls.read(path, fingerprint) or cls._begin(path, fingerprint, enrolled)

    @classmethod
    def _begin(cls, path: Path, fingerprint: str, enrolled: Iterable[Enrolled]) -> "Journal":
        who = tuple(Enrolled(each.user, None, each.node_id) for each in enrolled)
        journal = cls(Chain(path), Begun(new_run_key(), fingerprint, who), [])
        taking_part = [[each.user, each.node_id] for each in who]
        run = {"run": journal.begun.run_key, "protocol": fingerprint, "enrolled": taking_part}
        journal._append({"began": run})
        # A new directory has no name after a power cut until that is on disk.
        sync_folder(path.parent.parent)
        return journal

    @classmethod
    def read(cls, path: Path, fingerprint: str) -> "Journal | None":
        """Return the journal that a file holds; None for one without a whole line."""
        lines, chain = path.read_bytes().splitlines(keepends=True), Chain(path)
        entries = list[dict[str, Any]]()
        for number, line in enumerate(lines, start=1):
            read = chain.after(line)
            if read is None:
                if number < len(lines):
                    raise InputError(f"{path}:{number}", "a line that is damaged", _ACCEPTED)
                break
            entries.append(read[0])
            chain = read[1]
        if not entries:
            if lines and lines[-1].endswith(b"\n"):
                raise InputError(f"{path}:1", "no journal", _ACCEPTED)
            return None
        begun, exchanges = _told(entries, path)
        if begun.fingerprint != fingerprint:
            found = f"a run of the protocol {begun.fingerprint[:8]}"
            raise InputError(str(path), found, f"{fingerprint[:8]}, that of the folder")
        return cls(chain, begun, exchanges)

    @property
    def path(self) -> Path:
        """The file."""
        return self._lines.path

    def begin_exchange(self, questions: str) -> None:
        """Note that something is asked."""
        self._append({"asks": questions})
        self.exchanges.append(Exchange(questions))

    def note_reached(self, nodes: Sequence[int]) -> None:
        """Note which nodes were asked, if that is news."""
        exchange = self.exchanges[-1]
        if new := sorted(set(nodes) - exchange.reached):
            self._append({"reached": new})
            exchange.reached.update(new)

    def note_replies(self, replies: Sequence[Message]) -> None:
        """Note what was answered."""
        self._append({"replies": [b64encode(as_bytes(reply)).decode() for reply in replies]})

    def end_exchange(self) -> None:
        """Note that nobody is waited for any longer."""
        self._append({"ended": True})
        self.exchanges[-1].ended = True

    def delete(self) -> None:
        """Delete the file, when all else in its folder is on disk."""
        sync_folder(self.path.parent)
        self.path.unlink(missing_ok=True)

    def _append(self, entry: dict[str, Any]) -> None:
        try:
            self._lines = self._lines.append(self._lines.line(entry))
        except OSError as error:
            raise unusable(self.path, error) from None


def waited_for(path: Path, fingerprint: str) -> tuple[int, int] | None:
    """Return how many devices have been asked what is open, and how many have answered; None if nothing is.

    Of a journal that a run may be writing; raises InputError as `Journal.opened` does.
    """
    try:
        journal = Journal.read(path, fingerprint)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(path, error) from None
    if journal is None or not journal.exchanges or journal.exchanges[-1].ended:
        return None
    exchange = journal.exchanges[-1]
    return len(exchange.reached), len({reply.metadata.src_node_id for reply in exchange.replies})


def _told(entries: list[dict[str, Any]], path: Path) -> tuple[Begun, list[Exchange]]:
    """Return what whole lines say; raises InputError naming one that says something else."""
    begun, exchanges, number = None, list[Exchange](), 0
    try:
        for number, entry in enumerate(entries, start=1):
            ((kind, said),) = entry.items()
            if number == 1:
                run, fingerprint = str(said["run"]), str(said["protocol"])
                who = tuple(
                    Enrolled(str(user), None, None if node is None else int(node))
                    for user, node in said["enrolled"]
                )
                if kind != "began" or not is_run_key(run):
                    raise ValueError(kind)
                begun = Begun(run, fingerprint, who)
            elif kind == "asks":
                exchanges.append(Exchange(str(said)))
            elif kind == "reached":
                exchanges[-1].reached.update(map(int, said))
            elif kind == "replies":
                exchanges[-1].replies += [message_of(b64decode(text, validate=True)) for text in said]
            elif kind == "ended":
                exchanges[-1].ended = True
            else:
                raise ValueError(kind)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, DecodeError):
        raise InputError(f"{path}:{number}", "something else than a journal says", _ACCEPTED) from None
    assert begun is not None
    return begun, exchanges


def _digest_of(questions: Sequence[Message]) -> str:
    """Return what identifies questions, whatever their order: to whom, of which kind and run, and what."""
    digest = hashlib.sha256()
    for question in sorted(questions, key=lambda each: each.metadata.dst_node_id):
        about = question.metadata
        head = json.dumps([about.dst_node_id, about.message_type, about.group_id])
        content = hashlib.sha256(kept(question.content)).hexdigest()
        digest.update(f"{head} {content}\n".encode())
    return digest.hexdigest()


class JournalGrid(WaitingGrid):
    """The grid of a run with a journal: what is in it is not asked again, and what is asked is noted in it.

    Raises InputError when what is to be asked is not what was asked there.
    """

    def __init__(self, grid: Grid, journal: Journal, patience: Patience) -> None:
        super().__init__(grid)
        self._journal, self._asked = journal, 0
        self._reaching = DeadlineGrid(grid, patience, journal.note_reached, journal.note_replies)
        self.undelivered: list[Message] = []
        """What costs devices nothing, and has not reached them."""

    @property
    def reached(self) -> set[int]:
        """Nodes that were asked anything."""
        return set().union(*(exchange.reached for exchange in self._journal.exchanges))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Return the replies of the journal, and of those who are not in it, until the exchange ends."""
        questions = list(messages)
        number, exchanges, digest = self._asked, self._journal.exchanges, _digest_of(questions)
        self._asked += 1
        if number == len(exchanges):
            self._journal.begin_exchange(digest)
        exchange = exchanges[number]
        if exchange.questions != digest:
            found = f"question {number + 1} is not the one that was asked"
            accepted = "the folder and the version of dprec with which the run began, or another run"
            raise InputError(str(self._journal.path), found, accepted)
        replies, exchange.replies = exchange.replies, []
        if not exchange.ended:
            known = {reply.metadata.src_node_id for reply in replies}
            left = [each for each in questions if each.metadata.dst_node_id not in known]
            replies += self._reaching.ask(left, answered=len(replies), timeout=timeout)
            self._journal.end_exchange()
        heard = {reply.metadata.src_node_id for reply in replies}
        self.undelivered += [
            each
            for each in questions
            if each.metadata.message_type in DELIVERIES and each.metadata.dst_node_id not in heard
        ]
        return replies


UNDELIVERED = "undelivered.json"

_KEPT = "the file as the server wrote it; dprec-pilot resume --forget deletes it"


@dataclass(frozen=True)
class Delivery:
    """The same message to some devices."""

    message_type: str
    group: str
    content: bytes
    """As Flower serialises it."""
    nodes: tuple[int, ...]

    def messages(self) -> Iterator[Message]:
        """Yield the messages."""
        content = records_of(self.content)
        for node in self.nodes:
            yield Message(content, node, self.message_type, group_id=self.group)


def keep_deliveries(run: Path, messages: Sequence[Message]) -> None:
    """Keep messages that have not reached their devices; without any, there is no file."""
    nodes: dict[tuple[str, str, bytes], list[int]] = {}
    for message in messages:
        about = message.metadata
        same = about.message_type, about.group_id, kept(message.content)
        nodes.setdefault(same, []).append(about.dst_node_id)
    _write_deliveries(run, [Delivery(*same, tuple(sorted(to))) for same, to in nodes.items()])


def deliver(grid: Grid, run: Path, patience: Patience) -> tuple[int, int]:
    """Send devices that come what they have not had; return how many have it now, and how many do not.

    Raises InputError when the file is damaged.
    """
    left = _read_deliveries(run)
    before = _without(left)
    for place, delivery in enumerate(left):
        DeadlineGrid(grid, patience, arrived=partial(_arrived, run, left, place)).ask(delivery.messages())
    missing = _without(left)
    return len(before - missing), len(missing)


def _arrived(run: Path, left: list[Delivery], place: int, replies: Sequence[Message]) -> None:
    """Note who has answered to what stands in a place, so has it."""
    have = {reply.metadata.src_node_id for reply in replies}
    nodes = tuple(node for node in left[place].nodes if node not in have)
    left[place] = replace(left[place], nodes=nodes)
    _write_deliveries(run, left)


def forget(run: Path) -> int:
    """Delete what a complete run has for devices, whatever it is; return for how many. Raises InputError."""
    if not (run / SUMMARY).exists():
        raise InputError(str(run), "no complete run", "the directory of a run that has ended")
    try:
        missing = _without(_read_deliveries(run))
    except InputError:
        missing = set()
    (run / UNDELIVERED).unlink(missing_ok=True)
    return len(missing)


def _without(deliveries: Sequence[Delivery]) -> set[int]:
    """Return the devices that lack something."""
    return {node for delivery in deliveries for node in delivery.nodes}


def _write_deliveries(run: Path, deliveries: Sequence[Delivery]) -> None:
    path, left = run / UNDELIVERED, [delivery for delivery in deliveries if delivery.nodes]
    entries = [{**vars(each), "content": b64encode(each.content).decode()} for each in left]
    try:
        if left:
            write_durably(path, json.dumps(entries) + "\n")
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from None


def _read_deliveries(run: Path) -> list[Delivery]:
    path = run / UNDELIVERED
    if not path.exists():
        return []
    try:
        entries = json.loads(read_text(path, _KEPT))
        if not isinstance(entries, list):
            raise TypeError(entries)
        deliveries = [
            Delivery(
                str(entry["message_type"]),
                str(entry["group"]),
                b64decode(entry["content"], validate=True),
                tuple(map(int, entry["nodes"])),
            )
            for entry in entries
        ]
        for delivery in deliveries:
            records_of(delivery.content)
        if not {delivery.message_type for delivery in deliveries} <= DELIVERIES:
            raise ValueError(deliveries)
    except (ValueError, KeyError, TypeError, OverflowError, DecodeError, RecursionError):
        raise InputError(str(path), "damaged", _KEPT) from None
    return deliveries
