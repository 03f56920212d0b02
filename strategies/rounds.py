"""What a round costs and what is recorded about it, under any protocol."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.exchange import FinalFactors
from dprec.wire import WITH_RECORD, WITHOUT_RECORD, TrafficLedger, Users
from strategies.arrivals import Attendance
from strategies.envelope import (
    message_size,
    reply_message,
    report_sizes,
    request_content,
    request_message,
)
from strategies.roster import Roster
from strategies.round_record import RoundRecord


def traffic_totals(ledger: TrafficLedger) -> dict[str, int]:
    """Return the sums over all users, under the names that a `RoundRecord` uses."""
    return {
        "uplink_payload_bytes": int(ledger.uplink_payload.sum()),
        "uplink_message_bytes": int(ledger.uplink_message.sum()),
        "downlink_payload_bytes": int(ledger.downlink_payload.sum()),
        "downlink_message_bytes": int(ledger.downlink_message.sum()),
    }


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
    _started: float = field(default_factory=time.perf_counter, init=False)
    _before: dict[str, int] = field(init=False)
    _causes: Counter[str] = field(default_factory=Counter, init=False)
    _punctual: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._before = traffic_totals(self.traffic)

    def charge_request(self, users: Users, content: RecordDict, payload: int) -> None:
        """Charge the same request to all these users, with ``payload`` bytes of payload."""
        objects = WITH_RECORD if content else WITHOUT_RECORD
        self.traffic.charge_downlink(users, payload, self._request_size(content), objects=objects)

    def charge_requests(
        self,
        users: NDArray[np.int64],
        payloads: NDArray[np.int64],
        content_of: Callable[[bytes], RecordDict],
    ) -> None:
        """Charge each user for a request of its own.

        Parameters
        ----------
        users, payloads : ndarray of int64, shape (users,)
            Bytes of each user's payload.
        content_of : callable
            From a payload to the content of the message to a user alone on its node.
        """
        lengths, of_user = np.unique(payloads, return_inverse=True)
        sizes = [self._request_size(content_of(bytes(length))) for length in lengths.tolist()]
        self.traffic.charge_downlink(users, payloads, np.array(sizes, dtype=np.int64)[of_user])

    def charge_reports(self, arrivals: Attendance) -> None:
        """Charge everybody who sent a report, even if it is not used."""
        senders, payloads = arrivals.senders, arrivals.payloads
        self._punctual += int(arrivals.punctual.sum())
        self._causes["late"] += int((arrivals.arrived & ~arrivals.punctual).sum())
        if arrivals.refused:
            self._causes[arrivals.refused] += arrivals.users.size
        sizes = report_sizes(self.message_type, self.group, senders, payloads)
        self.traffic.charge_uplink(senders, payloads, sizes)

    def charge_exchange(
        self, users: NDArray[np.int64], downlink: Sequence[int], uplink: Sequence[int]
    ) -> None:
        """Charge messages that hold so many bytes of payload each to all these users."""
        for payload in downlink:
            content = request_content(FinalFactors(bytes(payload))) if payload else RecordDict()
            self.charge_request(users, content, payload)
        for payload in uplink:
            payloads = np.full(users.size, payload, dtype=np.int64)
            self.traffic.charge_uplink(
                users, payloads, report_sizes(self.message_type, self.group, users, payloads)
            )

    def charge_acknowledgements(self, users: Users) -> None:
        """Charge a reply without content."""
        size = message_size(reply_message(self.message_type, RecordDict(), self.group))
        self.traffic.charge_uplink(users, 0, size, objects=WITHOUT_RECORD)

    def deliver(self, grid: Grid, roster: Roster, contents: dict[int, RecordDict]) -> None:
        """Send what asks for no report, and charge the acknowledgements that arrive.

        Parameters
        ----------
        contents : dict
            What the node of each partition is sent; charged apart.
        """
        for partition_id, answer in roster.ask(grid, self.message_type, contents, self.group).items():
            if answer.has_error():
                continue
            partition = roster.partition(partition_id)
            self.charge_acknowledgements(slice(partition.start, partition.stop))

    def spent(self) -> dict[str, int]:
        """Return the bytes charged since the account was created, as `traffic_totals` does."""
        after = traffic_totals(self.traffic)
        return {name: after[name] - self._before[name] for name in after}

    def record(self, round_index: int, *, asked: int, accepted: int) -> RoundRecord:
        """Return the record of the round, which ends here.

        Parameters
        ----------
        round_index : int
            From 1.
        asked, accepted : int
            Users who were asked, and those whose report was accepted.
        """
        return RoundRecord(
            round=round_index,
            replies=accepted,
            failures=asked - accepted,
            accuracy=None,
            seconds=time.perf_counter() - self._started,
            causes=self._all_causes(asked - accepted, self._punctual - accepted),
            **self.spent(),
        )

    def _all_causes(self, failures: int, malformed: int) -> dict[str, int]:
        """Return why so many have failed; who is not heard of at all is absent."""
        causes = self._causes + Counter(malformed=malformed)
        return dict(sorted((causes + Counter(absent=failures - causes.total())).items()))

    def _request_size(self, content: RecordDict) -> int:
        return message_size(request_message(self.message_type, content, self.group))
