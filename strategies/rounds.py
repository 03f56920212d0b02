"""Rounds under any protocol: what their messages cost, and what is recorded.

A partition's reports travel in one message, but each user is charged for the message that would carry its
payload if it were alone on its node. The identifiers that Flower draws at random are counted at full width,
so that sizes do not change from run to run.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.app.message import make_message
from flwr.app.metadata import Metadata
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.common.serde import message_to_proto
from flwr.serverapp import Grid

from dprec.arrays import Ints, different
from dprec.exchange import DELIVER, REPLY, REQUEST, FinalFactors, Reports, Request
from dprec.wire import WITH_RECORD, WITHOUT_RECORD, TrafficLedger, Users
from strategies.participation import RoundRecord
from strategies.roster import Replies, Roster


def traffic_totals(ledger: TrafficLedger) -> dict[str, int]:
    """Return the sums over all users, under the names that a `RoundRecord` uses."""
    names = ("uplink_payload", "uplink_message", "downlink_payload", "downlink_message")
    return {f"{name}_bytes": int(getattr(ledger, name).sum()) for name in names}


@dataclass(eq=False)
class RoundAccount:
    """Charges the messages of one round to the users who receive or send them.

    Every user is charged in full, although a partition shares its messages. Traffic and time are counted
    from when the account is created.
    """

    message_type: str
    group: str
    """Run key."""
    traffic: TrafficLedger
    """Charged in place."""
    sealed: Callable[[Ints], Ints] = field(default=lambda sizes: sizes)
    """From the sizes of reports to those with which they leave the devices."""
    kind: str = ""
    """What the messages are listed as; by default their type."""
    _started: float = field(default_factory=time.perf_counter, init=False)
    _before: dict[str, int] = field(init=False)
    causes: Counter[str] = field(default_factory=Counter, init=False)
    """Why users who were asked do not report, as far as it is known."""
    punctual: int = field(default=0, init=False)
    """Users whose report arrived in time."""

    def __post_init__(self) -> None:
        self._before = traffic_totals(self.traffic)
        self.kind = self.kind or self.message_type

    def of_further(self, message_type: str) -> "RoundAccount":
        """Return the account of what is exchanged in the same round around its reports, listed as further."""
        return RoundAccount(message_type, self.group, self.traffic, kind="further")

    def charge_request(self, users: Users, content: RecordDict, payload: int) -> None:
        """Charge the same request to all these users, with ``payload`` bytes of payload."""
        objects, values = (WITH_RECORD, content[REQUEST].values()) if content else (WITHOUT_RECORD, ())
        size, kind = self._request_size(content), self.kind
        example = b"".join(value for value in values if isinstance(value, bytes))
        self.traffic.charge_downlink(users, payload, size, objects=objects, kind=kind, example=example)

    def charge_requests(self, users: Ints, payloads: Ints, content_of: Callable[[bytes], RecordDict]) -> None:
        """Charge each user for a request of its own, whose content is made of its payload's size."""
        lengths, of_user = different(payloads)
        sizes = _sizes(lengths, lambda length: self._request_size(content_of(bytes(length))))
        self.traffic.charge_downlink(users, payloads, sizes[of_user], kind=self.kind)

    def charge_reports(self, arrivals: Replies) -> None:
        """Charge everybody who sent a report, even if it is not used."""
        senders, payloads = arrivals.senders, arrivals.payloads
        self.punctual += int(arrivals.punctual.sum())
        self.causes["late"] += int((arrivals.arrived & ~arrivals.punctual).sum())
        if arrivals.refused:
            self.causes[arrivals.refused] += arrivals.users.size
        sizes = report_sizes(self.message_type, self.group, senders, self.sealed(payloads))
        kind, example = self.kind, arrivals.first_report
        self.traffic.charge_uplink(senders, payloads, sizes, kind=kind, example=example)

    def charge_exchange(self, users: Ints, content: RecordDict, downlink: int, uplink: int) -> None:
        """Charge all these users for a question, and for answers with so many bytes of payload."""
        self.charge_request(users, content, downlink)
        payloads = np.full(users.size, uplink, dtype=np.int64)
        sizes = report_sizes(self.message_type, self.group, users, payloads)
        self.traffic.charge_uplink(users, payloads, sizes, kind=self.kind)

    def charge_acknowledgements(self, users: Users) -> None:
        """Charge a reply without content."""
        size = message_size(reply_message(self.message_type, RecordDict(), self.group))
        self.traffic.charge_uplink(users, 0, size, objects=WITHOUT_RECORD, kind=self.kind)

    def deliver(self, grid: Grid, roster: Roster, contents: dict[int, RecordDict]) -> None:
        """Send what asks for no report, and charge the acknowledgements that arrive."""
        for partition_id, answer in roster.ask(grid, self.message_type, contents, self.group).items():
            if answer.has_error():
                continue
            self.charge_acknowledgements(roster.there(partition_id))

    def spent(self) -> dict[str, int]:
        """Return the bytes charged since the account was created, as `traffic_totals` does."""
        after = traffic_totals(self.traffic)
        return {name: after[name] - self._before[name] for name in after}

    def record(self, round_index: int, *, asked: int, accepted: int) -> RoundRecord:
        """Return the record of the round, which ends here, of those asked and those accepted."""
        failures = asked - accepted
        causes = self.causes + Counter(malformed=self.punctual - accepted)
        # Who is not heard of at all is absent.
        causes += Counter(absent=failures - causes.total())
        return RoundRecord(
            round=round_index,
            replies=accepted,
            failures=failures,
            accuracy=None,
            seconds=time.perf_counter() - self._started,
            causes=dict(sorted(causes.items())),
            **self.spent(),  # type: ignore[arg-type]
        )

    def _request_size(self, content: RecordDict) -> int:
        return message_size(request_message(self.message_type, content, self.group))


def broadcast_parameters(
    grid: Grid, roster: Roster, group: str, payload: bytes, traffic: TrafficLedger
) -> dict[str, int]:
    """Send everybody what was learned; return the bytes charged, as `RoundAccount.spent` does."""
    content = request_content(FinalFactors(payload))
    account = RoundAccount(DELIVER, group, traffic)
    account.charge_request(slice(None), content, len(payload))
    account.deliver(grid, roster, dict.fromkeys(range(len(roster.node_ids)), content))
    return account.spent()


_WIDEST_ID = 2**64 - 1
_MESSAGE_ID = "0" * 36
_TASK_ID = 1


def reply_content(first_user: int, reports: Sequence[bytes]) -> RecordDict:
    """Return the content of a reply with the reports of consecutive users from ``first_user`` on."""
    return RecordDict({REPLY: ConfigRecord(Reports(first_user, reports).entries())})


def request_content(request: Request) -> RecordDict:
    """Return the content of a message that carries a request."""
    return RecordDict({REQUEST: ConfigRecord(request.entries())})


def message_size(message: Message) -> int:
    """Return the bytes of a message as Flower serialises it, with random identifiers at full width."""
    metadata = message.metadata
    source, target = (
        node if node in (SUPERLINK_NODE_ID, 0) else _WIDEST_ID
        for node in (metadata.src_node_id, metadata.dst_node_id)
    )
    widest = _message(
        message.content,
        metadata.message_type,
        metadata.group_id,
        nodes=(source, target),
        reply=bool(metadata.reply_to_message_id),
        times=(metadata.created_at, metadata.ttl),
        tasks=(metadata.src_task_id, metadata.dst_task_id),
    )
    return int(message_to_proto(widest).ByteSize())


def _sizes(lengths: Ints, size_of: Callable[[int], int]) -> Ints:
    """Return the sizes of messages with payloads of some lengths, which ascend; few of them are measured."""
    sizes, stretches = lengths.copy(), [(0, lengths.size)]
    while stretches:
        start, stop = stretches.pop()
        if start == stop:
            continue
        first, last = (size_of(length) - length for length in lengths[[start, stop - 1]].tolist())
        # What is added never shrinks as payloads grow: if it is the same at both ends, so it is in between.
        if first == last:
            sizes[start:stop] += first
        else:
            middle = (start + stop) // 2
            stretches += [(start, middle), (middle, stop)]
    return sizes


def reply_message(message_type: str, content: RecordDict, group: str) -> Message:
    """Return the message in which a user alone on its node would send some content."""
    nodes, tasks = (_WIDEST_ID, SUPERLINK_NODE_ID), (None, _TASK_ID)
    return _message(content, message_type, group, nodes=nodes, reply=True, tasks=tasks)


def request_message(message_type: str, content: RecordDict, group: str) -> Message:
    """Return the message in which a user alone on its node would be sent some content."""
    nodes, tasks = (SUPERLINK_NODE_ID, _WIDEST_ID), (_TASK_ID, None)
    return _message(content, message_type, group, nodes=nodes, reply=False, tasks=tasks)


def report_sizes(message_type: str, group: str, users: Ints, payloads: Ints) -> Ints:
    """Return the size of every user's own reply message with a payload, shape (users,)."""
    # A size depends on the payload's length and on how many groups of 7 bits the user's number has.
    widths = np.ceil(np.log2(2 * users + 2) / 7).astype(np.int64)
    sizes = np.empty(users.size, dtype=np.int64)
    for width in np.unique(widths).tolist():
        of_width = widths == width
        lengths, of_user = different(payloads[of_width])
        sizes[of_width] = _sizes(lengths, partial(_reply_size, message_type, len(group), width))[of_user]
    return sizes


@lru_cache(maxsize=1 << 12)
def _reply_size(message_type: str, group_length: int, user_width: int, payload: int) -> int:
    """Return the size of a reply; cached, since rounds and runs repeat the same lengths."""
    first_of_the_width = 1 << (7 * (user_width - 1)) >> 1
    content = reply_content(first_of_the_width, [bytes(payload)])
    return message_size(reply_message(message_type, content, "0" * group_length))


def _message(
    content: RecordDict,
    message_type: str,
    group: str,
    *,
    nodes: tuple[int, int],
    reply: bool,
    tasks: tuple[int | None, int | None],
    times: tuple[float, float] = (1.0, 1.0),
) -> Message:
    metadata = Metadata(
        run_id=_WIDEST_ID,
        message_id=_MESSAGE_ID,
        src_node_id=nodes[0],
        dst_node_id=nodes[1],
        reply_to_message_id=_MESSAGE_ID if reply else "",
        group_id=group,
        created_at=times[0],
        ttl=times[1],
        message_type=message_type,
        src_task_id=tasks[0],
        dst_task_id=tasks[1],
    )
    return make_message(metadata=metadata, content=content)
