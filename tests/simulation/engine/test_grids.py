"""How long grids wait: for no failed node, for no silent one for ever, and for devices until a deadline."""

import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from ray.exceptions import ActorDiedError, RayTaskError

from clients.app import client_app
from dprec.errors import RunError
from dprec.exchange import IDENTIFY, REPLY, REPORT, Reports
from simulation import run
from simulation.engine import grids
from simulation.engine import ray_cluster as actor_pool
from simulation.engine.grids import DeadlineGrid, LocalGrid, SupervisedGrid, marked_late, stamped
from simulation.engine.ray_cluster import ActorPool
from simulation.engine.session import Session
from strategies.roster import reply_record


class Silent(LocalGrid):
    """A grid that loses the replies of all nodes but the first ``heard``."""

    def __init__(self, heard: int = 0) -> None:
        super().__init__(client_app(""), 3)
        self._heard = list(self.get_node_ids())[:heard]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies = super().pull_messages(message_ids)
        return [reply for reply in replies if reply.metadata.src_node_id in self._heard]


def questions(grid: LocalGrid, kind: str = IDENTIFY) -> list[Message]:
    return [Message(RecordDict(), node, kind, group_id="run") for node in grid.get_node_ids()]


def test_replies_pass_through() -> None:
    grid = LocalGrid(client_app(""), 3)
    replies = SupervisedGrid(grid).send_and_receive(questions(grid))
    assert sorted(reply.metadata.src_node_id for reply in replies) == list(grid.get_node_ids())


def test_a_failed_node_ends_the_wait_with_its_reason(tmp_path: Path) -> None:
    grid = LocalGrid(client_app(str(tmp_path)), 3)
    message = rf"^a node \(and 2 more\) failed: .*run/population.json: not on {platform.node()}; accepted: "
    with pytest.raises(RunError, match=message):
        SupervisedGrid(grid).send_and_receive(questions(grid, REPORT))


@pytest.mark.parametrize(("heard", "silent"), [(0, 3), (1, 2)])
def test_nodes_that_do_not_answer_end_the_wait(
    monkeypatch: pytest.MonkeyPatch, heard: int, silent: int
) -> None:
    grid = Silent(heard)
    monkeypatch.setattr(grids, "_FIRST_ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(grids, "_NEXT_ANSWER_SECONDS", 0.01)
    with pytest.raises(RunError, match=f"^{silent} nodes did not answer, and none did for 0"):
        SupervisedGrid(grid).send_and_receive(questions(grid))


def test_a_runtime_that_ends_ends_the_wait() -> None:
    def ended() -> None:
        raise RunError("the runtime ended")

    grid = Silent()
    with pytest.raises(RunError, match="the runtime ended"):
        SupervisedGrid(grid, ended).send_and_receive(questions(grid))


def test_a_given_timeout_returns_what_has_arrived() -> None:
    grid = Silent(1)
    assert len(list(SupervisedGrid(grid).send_and_receive(questions(grid), timeout=0.0))) == 1


@pytest.mark.parametrize(
    "protocol",
    [
        None,
        {"kind": "iterative", "gradient": {"kind": "full"}, "rounds": 2, "rank": 2},
    ],
    ids=["one shot", "in rounds"],
)
def test_a_run_whose_disk_is_missing_fails(
    tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch, protocol: dict[str, Any] | None
) -> None:
    install = Session.install

    def lost(session: Session, *arguments: Any, **options: Any) -> str:
        group = install(session, *arguments, **options)
        shutil.rmtree(session.root / group)
        return group

    monkeypatch.setattr(Session, "install", lost)
    tiny["simulation"]["users_per_node"] = 10
    tiny["protocol"] = protocol or tiny["protocol"]
    with pytest.raises(RunError, match=r"a node \(and 3 more\) failed: .*population.json: not on"):
        run(tiny)


DEADLINE, GRACE = 100.0, 20.0
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
    monkeypatch.setattr(grids, "time", clock)
    return clock


def ask(grid: DeadlineGrid) -> dict[int, Message]:
    questions = [Message(RecordDict(), node, REPORT, group_id="g") for node in SECONDS]
    return {reply.metadata.src_node_id: reply for reply in grid.send_and_receive(questions)}


def late(reply: Message) -> object:
    record = reply_record(reply)
    assert record is not None
    return record.get("late")


def test_answers_count_until_the_deadline_and_are_late_until_the_grace_ends(clock: Clock) -> None:
    replies = ask(DeadlineGrid(SuperLinkGrid(clock, lambda node, now: True), DEADLINE, GRACE))
    assert set(replies) == {PUNCTUAL, SLOW, LATE, LOST}
    assert {node: late(reply) for node, reply in replies.items()} == {
        PUNCTUAL: None,
        SLOW: None,
        LATE: [0],
        LOST: None,
    }
    assert clock.now - 1000 > DEADLINE + GRACE


def test_a_lost_device_is_asked_again_and_no_question_outlives_its_round(clock: Clock) -> None:
    grid = SuperLinkGrid(clock, lambda node, now: True)
    ask(DeadlineGrid(grid, DEADLINE, GRACE))
    asked = [(at, message.metadata) for at, message in grid.sent]
    assert [at > 0 for at, metadata in asked if metadata.dst_node_id == LOST] == [False, True]
    assert all(at + metadata.ttl == pytest.approx(DEADLINE + GRACE) for at, metadata in asked)
    assert {(metadata.message_type, metadata.group_id) for _, metadata in asked} == {(REPORT, "g")}


def test_a_device_is_asked_when_it_comes_and_not_after_the_deadline(clock: Clock) -> None:
    comes = {PUNCTUAL: 50.0, SLOW: 0.0, LATE: 101.0, SILENT: 1e9, LOST: 1e9}
    grid = SuperLinkGrid(clock, lambda node, now: now >= comes[node])
    reaching = DeadlineGrid(grid, DEADLINE, GRACE)
    assert set(ask(reaching)) == {PUNCTUAL, SLOW}
    assert reaching.reached == {PUNCTUAL, SLOW}
    # Nobody who was asked is missing, so nobody is waited for beyond the deadline.
    assert clock.now - 1000 < DEADLINE + 10


def test_a_round_ends_when_everybody_has_answered(clock: Clock) -> None:
    grid = SuperLinkGrid(clock, lambda node, now: True)
    question = Message(RecordDict(), PUNCTUAL, REPORT)
    assert len(list(DeadlineGrid(grid, DEADLINE, GRACE).send_and_receive([question]))) == 1
    assert clock.now - 1000 < 2


def test_a_late_reply_without_reports_to_mark_is_dropped(clock: Clock) -> None:
    question = stamped(Message(RecordDict(), PUNCTUAL, REPORT))
    total = ConfigRecord({"first": 0, "total": b""})
    assert marked_late(Message(RecordDict({REPLY: total}), reply_to=question)) == []
    refused = Message(Error(105, "BUDGET_SPENT"), reply_to=question)
    assert marked_late(refused) == [refused]


Answer = Callable[[], Any]


class Actor:
    """An actor of the stand-in: does it start, and what does it answer?"""

    def __init__(self, starts: Answer | None, answers: Answer) -> None:
        self.starts, self.answers = starts, answers
        self.killed = False
        self.__ray_call__ = self

    def remote(self, *_: Any) -> Any:
        return self.start

    def start(self) -> Any:
        assert self.starts is not None
        return self.starts()


def dies() -> Any:
    raise ActorDiedError


def answers() -> Any:
    return "0", "reply", "context"


def on_a_node() -> str:
    return "node"


GOOD = (on_a_node, answers)
DYING = (on_a_node, dies)
NEVER_STARTS = (None, answers)
DIES_AT_ITS_START = (dies, answers)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[ActorPool, list[Actor]]]:
    """Return a function that makes a pool whose actors behave as given, and good ones after these."""
    ready = lambda references, **_: ([one for one in references if one.__self__.starts], [])  # noqa: E731
    monkeypatch.setattr(ray, "wait", ready)
    monkeypatch.setattr(ray, "get", lambda reference: reference())
    monkeypatch.setattr(ray, "kill", lambda actor: setattr(actor, "killed", True))
    monkeypatch.setattr(
        ray, "nodes", lambda: [{"NodeID": n, "NodeName": f"the {n}"} for n in ("node", "other")]
    )
    monkeypatch.setattr(actor_pool, "working_nodes", lambda: {"node": "the node"})
    monkeypatch.setattr(actor_pool, "_PROCESSOR_SECONDS", 0.1)
    monkeypatch.setattr(actor_pool, "_IDLE_POLL_SECONDS", 0.01)

    def make(size: int, *behaviours: tuple[Answer | None, Answer]) -> tuple[ActorPool, list[Actor]]:
        waiting, started = list(behaviours), []

        def start() -> Actor:
            started.append(Actor(*(waiting.pop(0) if waiting else GOOD)))
            return started[-1]

        made = ActorPool(start, size)
        made.add_actors_to_pool(size)
        return made, started

    return make


def ask_pool(pool: ActorPool) -> Any:
    """Ask as Flower's backend does."""
    asked = pool.submit(lambda actor, *_: actor.answers, ("message",))
    try:
        return pool.fetch_result_and_return_actor_to_pool(asked)
    except Exception:
        pool.add_actor_back_to_pool(asked)
        raise


def test_an_actor_that_has_answered_is_asked_again(pool: Any) -> None:
    made, started = pool(1)
    assert [ask_pool(made) for _ in range(3)] == [("reply", "context")] * 3
    assert len(started) == made.num_actors == made.actors_capacity == 1


def test_a_message_whose_actor_died_goes_to_another_and_the_actor_is_replaced(pool: Any) -> None:
    made, started = pool(1, DYING, DYING)
    assert ask_pool(made) == ("reply", "context")
    assert [actor.killed for actor in started] == [True, True, False]
    assert made.is_actor_available()


def test_work_that_ends_one_worker_after_the_other_fails(pool: Any) -> None:
    made, _ = pool(1, DYING, DYING, DYING)
    with pytest.raises(RunError, match=r"^3 workers died over the same work: The actor died"):
        ask_pool(made)
    assert ask_pool(made) == ("reply", "context")


def test_an_actor_without_a_processor_delays_no_message(pool: Any) -> None:
    made, started = pool(2, NEVER_STARTS)
    assert [ask_pool(made) for _ in range(3)] == [("reply", "context")] * 3
    assert len(started) == 2


def test_no_free_processor_ends_the_wait(pool: Any) -> None:
    made, _ = pool(1, NEVER_STARTS)
    with pytest.raises(RunError, match=r"^Ray had no free processor within 0\.1 s$"):
        ask_pool(made)


def test_actors_that_die_at_their_start_end_the_wait(pool: Any) -> None:
    made, started = pool(1, *[DIES_AT_ITS_START] * 9)
    for _ in range(2):
        with pytest.raises(RunError, match=r"^3 workers died at their start: The actor died"):
            ask_pool(made)
    assert len(started) == 3


def test_a_failed_start_is_made_up_for(pool: Any) -> None:
    made, started = pool(1, DIES_AT_ITS_START, DIES_AT_ITS_START)
    assert ask_pool(made) == ("reply", "context")
    assert len(started) == 3


def test_an_exception_names_the_node_and_keeps_the_actor(pool: Any) -> None:
    def fails() -> Any:
        raise RayTaskError("run", "a trace", ValueError("no disk"))

    made, started = pool(1, (on_a_node, fails))
    for _ in range(2):
        with pytest.raises(RunError, match=r"^no disk \(on the Ray node the node\)$"):
            ask_pool(made)
    assert len(started) == 1


def test_a_node_that_joins_later_is_checked(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RunError("the Ray node late has other versions")

    monkeypatch.setattr(actor_pool, "check_nodes", refuse)
    made, _ = pool(1)
    assert ask_pool(made) == ("reply", "context")
    late, _ = pool(1, (lambda: "late", answers))
    for _ in range(2):
        with pytest.raises(RunError, match=r"^the Ray node late has other versions$"):
            ask_pool(late)


def test_nothing_is_asked_after_the_end(pool: Any) -> None:
    made, started = pool(2, GOOD, NEVER_STARTS)
    ask_pool(made)
    made.terminate_all_actors()
    assert [actor.killed for actor in started] == [True, True]
    with pytest.raises(RunError, match=r"^the simulation has ended$"):
        ask_pool(made)
