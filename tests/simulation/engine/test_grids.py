"""How long grids wait: for no failed node, and for no silent one for ever."""

import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import ray
from flwr.app import Message, RecordDict
from ray.exceptions import ActorDiedError, RayTaskError

from clients.app import client_app
from dprec.errors import RunError
from dprec.exchange import IDENTIFY, REPORT
from simulation.engine import grids
from simulation.engine import ray_cluster as actor_pool
from simulation.engine.grids import LocalGrid, SupervisedGrid
from simulation.engine.ray_cluster import ActorPool


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
    monkeypatch.setattr(grids, "START_SECONDS", 0.0)
    monkeypatch.setattr(grids, "_NEXT_ANSWER_SECONDS", 0.01)
    with pytest.raises(RunError, match=f"^{silent} nodes did not answer, and none did for 0"):
        SupervisedGrid(grid).send_and_receive(questions(grid))


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
    monkeypatch.setattr(actor_pool, "START_SECONDS", 0.1)
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


def test_actors_that_die_at_their_start_end_the_wait(pool: Any) -> None:
    made, started = pool(1, *[DIES_AT_ITS_START] * 9)
    for _ in range(2):
        with pytest.raises(RunError, match=r"^3 workers died at their start: The actor died"):
            ask_pool(made)
    assert len(started) == 3


def test_an_exception_names_the_node_and_keeps_the_actor(pool: Any) -> None:
    def fails() -> Any:
        raise RayTaskError("run", "a trace", ValueError("no disk"))

    made, started = pool(1, (on_a_node, fails))
    for _ in range(2):
        with pytest.raises(RunError, match=r"^no disk \(on the Ray node the node\)$"):
            ask_pool(made)
    assert len(started) == 1
