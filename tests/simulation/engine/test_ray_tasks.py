"""What becomes of a message whose worker fails, dies or is of a node that joined later; Ray is a stand-in."""

import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from ray.exceptions import OutOfMemoryError, RayTaskError, WorkerCrashedError

from clients.refusing import WithheldError
from dprec.components import CodeError
from dprec.errors import LESS_MEMORY, RunError
from simulation.engine import ray_tasks
from simulation.engine.ray_cluster import why_lost
from simulation.engine.ray_tasks import TaskBackend

Answer = Callable[[], Any]


def dies() -> Any:
    raise WorkerCrashedError


def fails(message: object, context: object) -> Any:
    raise ValueError("no\ndisk")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what Ray is asked for: with which options, and what is cancelled."""
    calls: dict[str, Any] = {"cancelled": [], "checked": 0}

    def remote(**options: Any) -> Callable[[Any], Any]:
        calls["options"] = options
        return lambda function: SimpleNamespace(remote=lambda *job: lambda: function(*job))

    monkeypatch.setattr(ray, "remote", remote)
    monkeypatch.setattr(ray, "get", lambda reference: reference())
    monkeypatch.setattr(ray, "cancel", lambda answer, force: calls["cancelled"].append(answer))
    context = SimpleNamespace(get_node_id=lambda: "node")
    monkeypatch.setattr(ray, "get_runtime_context", lambda: context)
    named = [{"NodeID": node, "NodeName": f"the {node}"} for node in ("node", "other")]
    monkeypatch.setattr(ray, "nodes", lambda: named)
    monkeypatch.setattr(ray_tasks, "working_nodes", lambda: {"node": "the node"})
    monkeypatch.setattr(ray_tasks, "check_nodes", lambda *_: calls.update(checked=calls["checked"] + 1))
    return calls


def backend_of(app: Any, failures: list[CodeError] | None = None) -> TaskBackend:
    backend = TaskBackend(3, [] if failures is None else failures)
    backend.build(lambda: app)
    assert backend.num_workers == 3
    return backend


def ask(backend: TaskBackend) -> Any:
    return backend.process_message("message", "context")  # type: ignore[arg-type]


def test_a_task_is_begun_three_times_on_a_processor_of_its_own(asked: dict[str, Any]) -> None:
    assert ask(backend_of(lambda message, context: f"reply to {message}")) == ("reply to message", "context")
    assert (asked["options"]["num_cpus"], asked["options"]["max_retries"]) == (1, 2)
    assert asked["checked"] == 0


def test_work_that_ends_one_worker_after_the_other_fails(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backend_of(None)
    monkeypatch.setattr(ray, "get", lambda reference: dies())
    why = r"^3 workers died over the same work: The worker died .*; if memory was short, what helps is fewer "
    with pytest.raises(RunError, match=why):
        ask(backend)


def test_what_ray_says_of_memory_is_told_in_a_few_words() -> None:
    assert why_lost(OutOfMemoryError("Memory on the node was 21 GB / 23 GB.\n" * 9)) == (
        f"memory was short; what helps is {LESS_MEMORY}"
    )


def test_a_task_that_cannot_even_begin_says_why(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(reference: object) -> Any:
        raise RayTaskError("answer", "a trace", ModuleNotFoundError("No module named 'mine'"))

    backend = backend_of(None)
    monkeypatch.setattr(ray, "get", unknown)
    with pytest.raises(RunError, match=r"^No module named 'mine'$"):
        ask(backend)


def test_an_exception_names_the_node(asked: dict[str, Any]) -> None:
    with pytest.raises(RunError, match=r"^no disk \(on the Ray node the node\)$"):
        ask(backend_of(fails))


def test_why_code_on_a_device_has_failed_goes_beside_the_reply(asked: dict[str, Any]) -> None:
    failures: list[CodeError] = []
    told = CodeError("ValueError: user 7 (mine.py, line 3)", "own frames", "all frames")

    def fails(message: object, context: object) -> Any:
        raise pickle.loads(pickle.dumps(WithheldError(told)))

    with pytest.raises(WithheldError, match=r"^INTERNAL_FAILURE$"):
        ask(backend_of(fails, failures))
    assert [failure.args for failure in failures] == [told.args]


def test_a_node_that_has_joined_since_is_checked_once(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_tasks, "working_nodes", dict)
    backend = backend_of(lambda message, context: "reply")
    monkeypatch.setattr(ray_tasks, "working_nodes", lambda: {"node": "the node"})
    assert [ask(backend), ask(backend)] == [("reply", "context")] * 2
    assert asked["checked"] == 1


def test_what_is_still_asked_in_the_end_is_cancelled(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backend_of(None)

    def ending(reference: object) -> Any:
        backend.terminate()
        assert asked["cancelled"] == [reference]
        raise ray.exceptions.TaskCancelledError

    monkeypatch.setattr(ray, "get", ending)
    with pytest.raises(RunError):
        ask(backend)
    backend.terminate()
    assert len(asked["cancelled"]) == 1
