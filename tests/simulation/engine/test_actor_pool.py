"""What the pool of actors does when actors die, or get no processor; Ray is a stand-in."""

from collections.abc import Callable
from typing import Any

import pytest
import ray
from ray.exceptions import ActorDiedError, RayTaskError

from dprec.errors import RunError
from simulation.engine import actor_pool
from simulation.engine.actor_pool import ActorPool

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


def ask(pool: ActorPool) -> Any:
    """Ask as Flower's backend does."""
    asked = pool.submit(lambda actor, *_: actor.answers, ("message",))
    try:
        return pool.fetch_result_and_return_actor_to_pool(asked)
    except Exception:
        pool.add_actor_back_to_pool(asked)
        raise


def test_an_actor_that_has_answered_is_asked_again(pool: Any) -> None:
    made, started = pool(1)
    assert [ask(made) for _ in range(3)] == [("reply", "context")] * 3
    assert len(started) == made.num_actors == made.actors_capacity == 1


def test_a_message_whose_actor_died_goes_to_another_and_the_actor_is_replaced(pool: Any) -> None:
    made, started = pool(1, DYING, DYING)
    assert ask(made) == ("reply", "context")
    assert [actor.killed for actor in started] == [True, True, False]
    assert made.is_actor_available()


def test_work_that_ends_one_worker_after_the_other_fails(pool: Any) -> None:
    made, _ = pool(1, DYING, DYING, DYING)
    with pytest.raises(RunError, match=r"^3 workers died over the same work: The actor died"):
        ask(made)
    assert ask(made) == ("reply", "context")


def test_an_actor_without_a_processor_delays_no_message(pool: Any) -> None:
    made, started = pool(2, NEVER_STARTS)
    assert [ask(made) for _ in range(3)] == [("reply", "context")] * 3
    assert len(started) == 2


def test_no_free_processor_ends_the_wait(pool: Any) -> None:
    made, _ = pool(1, NEVER_STARTS)
    with pytest.raises(RunError, match=r"^Ray had no free processor within 0\.1 s$"):
        ask(made)


def test_actors_that_die_at_their_start_end_the_wait(pool: Any) -> None:
    made, started = pool(1, *[DIES_AT_ITS_START] * 9)
    for _ in range(2):
        with pytest.raises(RunError, match=r"^3 workers died at their start: The actor died"):
            ask(made)
    assert len(started) == 3


def test_a_failed_start_is_made_up_for(pool: Any) -> None:
    made, started = pool(1, DIES_AT_ITS_START, DIES_AT_ITS_START)
    assert ask(made) == ("reply", "context")
    assert len(started) == 3


def test_an_exception_names_the_node_and_keeps_the_actor(pool: Any) -> None:
    def fails() -> Any:
        raise RayTaskError("run", "a trace", ValueError("no disk"))

    made, started = pool(1, (on_a_node, fails))
    for _ in range(2):
        with pytest.raises(RunError, match=r"^no disk \(on the Ray node the node\)$"):
            ask(made)
    assert len(started) == 1


def test_a_node_that_joins_later_is_checked(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RunError("the Ray node late has other versions")

    monkeypatch.setattr(actor_pool, "check_nodes", refuse)
    made, _ = pool(1)
    assert ask(made) == ("reply", "context")
    late, _ = pool(1, (lambda: "late", answers))
    for _ in range(2):
        with pytest.raises(RunError, match=r"^the Ray node late has other versions$"):
            ask(late)


def test_nothing_is_asked_after_the_end(pool: Any) -> None:
    made, started = pool(2, GOOD, NEVER_STARTS)
    ask(made)
    made.terminate_all_actors()
    assert [actor.killed for actor in started] == [True, True]
    with pytest.raises(RunError, match=r"^the simulation has ended$"):
        ask(made)
