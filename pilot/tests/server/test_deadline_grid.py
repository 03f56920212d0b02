"""How long a deployment waits for its devices, and whom it asks again."""

from collections.abc import Callable, Iterable, Iterator

import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.common.constant import ErrorCode

from dprec.exchange import REPLY, REPORT, Reports
from dprec_pilot.server import deadline_grid
from dprec_pilot.server.deadline_grid import DeadlineGrid, Patience
from simulation.engine.grids import LocalGrid, stamped
from strategies.roster import reply_record

DEADLINE, GRACE = 100.0, 20.0
PATIENCE = Patience(DEADLINE, GRACE)
PUNCTUAL, SLOW, LATE, SILENT, LOST = range(1 << 63, (1 << 63) + 5)
SECONDS = {PUNCTUAL: 1.0, SLOW: 90.0, LATE: 110.0, SILENT: 1e9, LOST: 30.0}
"""After how long each device answers."""


class Clock:
    """Stands in for the module time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class SuperLinkGrid(LocalGrid):
    """Devices that answer after a while; one is lost after it was asked, and comes back."""

    def __init__(self, clock: Clock, online: Callable[[int, float], bool]) -> None:
        super().__init__(lambda message, context: self._report(message), len(SECONDS))  # type: ignore[arg-type]
        self.clock, self.online, self.began = clock, online, clock.now
        self.sent: list[tuple[float, Message]] = []
        self.waiting: dict[str, tuple[float, Message]] = {}

    def get_node_ids(self) -> Iterable[int]:
        passed = self.clock.now - self.began
        return [node for node in super().get_node_ids() if self.online(node, passed)]

    def push_messages(self, messages: Iterable[Message]) -> Iterator[str]:
        for message in messages:
            node = message.metadata.dst_node_id
            lost = node == LOST and node not in [sent.metadata.dst_node_id for _, sent in self.sent]
            self.sent.append((self.clock.now - self.began, message))
            stamped(message)
            reply = _gone(message) if lost else self.answer(message)
            at = self.began + max(SECONDS[node], self.clock.now - self.began)
            self.waiting[message.metadata.message_id] = (self.clock.now + 5 if lost else at, reply)
            yield message.metadata.message_id

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        ready = [key for key in message_ids if self.waiting[key][0] <= self.clock.now]
        return [self.waiting.pop(key)[1] for key in ready]

    def _report(self, message: Message) -> Message:
        record = ConfigRecord(Reports(0, [b"report"]).entries())
        return Message(RecordDict({REPLY: record}), reply_to=message)


def _gone(message: Message) -> Message:
    """Return the SuperLink's own answer for a device that it has not heard of for long."""
    reply = Message(Error(ErrorCode.NODE_UNAVAILABLE, "gone"), reply_to=message)
    reply.metadata.__dict__["_src_node_id"] = 1
    return stamped(reply)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(deadline_grid, "time", clock)
    return clock


def ask(grid: DeadlineGrid) -> dict[int, Message]:
    questions = [Message(RecordDict(), node, REPORT, group_id="g") for node in SECONDS]
    return {reply.metadata.src_node_id: reply for reply in grid.send_and_receive(questions)}


def late(reply: Message) -> object:
    record = reply_record(reply)
    assert record is not None
    return record.get("late")


def test_answers_count_until_the_deadline_and_are_late_until_the_grace_ends(clock: Clock) -> None:
    replies = ask(DeadlineGrid(SuperLinkGrid(clock, lambda node, now: True), PATIENCE))
    marks = {node: late(reply) for node, reply in replies.items()}
    assert marks == {PUNCTUAL: None, SLOW: None, LATE: [0], LOST: None}
    assert clock.now - 1000 > DEADLINE + GRACE


def test_a_lost_device_is_asked_again_and_no_question_outlives_its_round(clock: Clock) -> None:
    grid = SuperLinkGrid(clock, lambda node, now: True)
    ask(DeadlineGrid(grid, PATIENCE))
    asked = [(at, message.metadata) for at, message in grid.sent]
    assert [at > 0 for at, metadata in asked if metadata.dst_node_id == LOST] == [False, True]
    assert all(at + metadata.ttl == pytest.approx(DEADLINE + GRACE) for at, metadata in asked)
    assert {(metadata.message_type, metadata.group_id) for _, metadata in asked} == {(REPORT, "g")}


def test_who_is_asked_is_noted_before_a_device_can_pay_for_it(clock: Clock) -> None:
    class Killed(SuperLinkGrid):
        def push_messages(self, messages: Iterable[Message]) -> Iterator[str]:
            list(super().push_messages(messages))
            raise KeyboardInterrupt

    reached = list[int]()
    with pytest.raises(KeyboardInterrupt):
        ask(DeadlineGrid(Killed(clock, lambda node, now: node != SILENT), PATIENCE, reached.extend))
    assert set(reached) == set(SECONDS) - {SILENT}


def test_a_device_is_asked_when_it_comes_and_not_after_the_deadline(clock: Clock) -> None:
    comes = {PUNCTUAL: 50.0, SLOW: 0.0, LATE: 101.0, SILENT: 1e9, LOST: 1e9}
    grid = SuperLinkGrid(clock, lambda node, now: now >= comes[node])
    reached = list[int]()
    assert set(ask(DeadlineGrid(grid, PATIENCE, reached.extend))) == {PUNCTUAL, SLOW}
    assert sorted(reached) == [PUNCTUAL, SLOW]
    # Nobody who was asked is missing, so nobody is waited for beyond the deadline.
    assert clock.now - 1000 < DEADLINE + 10


@pytest.mark.parametrize(
    ("quorum", "lasts"),
    [*((given, SLOW) for given in (0.5, 0.6, 3)), *((given, None) for given in (0.61, 4))],
)
def test_a_round_ends_with_its_quorum_when_nobody_else_is_online(
    clock: Clock, quorum: float, lasts: int | None
) -> None:
    """The slow one is waited for: it is online, and may answer. Without its quorum, the deadline is."""
    grid = SuperLinkGrid(clock, lambda node, now: node not in (LATE, SILENT))
    assert set(ask(DeadlineGrid(grid, Patience(DEADLINE, GRACE, quorum=quorum)))) == {PUNCTUAL, SLOW, LOST}
    expected = DEADLINE if lasts is None else SECONDS[lasts]
    assert expected <= clock.now - 1000 < expected + 5


class ForgetfulGrid(SuperLinkGrid):
    """A device that takes a question, and loses it until it has been asked so many times; nobody notices."""

    def __init__(self, clock: Clock, times: int) -> None:
        super().__init__(clock, lambda node, now: True)
        self.times = times

    def push_messages(self, messages: Iterable[Message]) -> Iterator[str]:
        for message in messages:
            self.sent.append((self.clock.now - self.began, message))
            stamped(message)
            lost = len(self.sent) < self.times
            at = self.clock.now + (1e9 if lost else 1.0)
            self.waiting[message.metadata.message_id] = (at, self.answer(message))
            yield message.metadata.message_id


def test_a_device_that_has_lost_its_question_is_asked_again(clock: Clock) -> None:
    grid, patience = ForgetfulGrid(clock, 3), Patience(DEADLINE, GRACE, ask_again=10.0)
    question, replies = Message(RecordDict(), PUNCTUAL, REPORT, group_id="g"), list[Message]()
    assert len(DeadlineGrid(grid, patience, arrived=replies.extend).ask([question])) == len(replies) == 1
    asked = [at for at, _ in grid.sent]
    assert len(asked) == 3
    assert 10 <= asked[1] < 12 < asked[1] + 20 <= asked[2] < asked[1] + 22
    assert all(at + message.metadata.ttl == pytest.approx(DEADLINE + GRACE) for at, message in grid.sent)
