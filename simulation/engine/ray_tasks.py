"""Runs the nodes of Flower's simulation runtime in tasks of Ray, which begin again where a worker dies.

Flower's own backend gives up a message whose actor died, and would fill a cluster that others use. What
devices remember is in the context of a message, which stays in this process, and their draws depend on whose
they are alone, so that a task which begins again has the same bits.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.server.superlink.fleet.vce.backend import Backend

from clients.refusing import WithheldError
from dprec.components import CodeError
from dprec.errors import RunError, one_line
from simulation.engine.ray_cluster import check_nodes, why_lost, working_nodes

_ATTEMPTS = 3
"""How often a task is begun."""


class TaskBackend(Backend):
    """A backend of Flower's simulation runtime, used by several threads.

    ``workers``: tasks at a time; ``failures``: to which it adds why devices have failed.
    """

    def __init__(self, workers: int, failures: list[CodeError]) -> None:
        self._workers, self._failures = workers, failures
        self._checked = set(working_nodes())
        self._open: set[Any] = set()

    def build(self, app_fn: Callable[[], ClientApp]) -> None:
        """Take the app."""
        import ray

        # What runs bring is in the app, so that it travels with every message.
        self._app = app_fn
        remote: Any = ray.remote(num_cpus=1, max_retries=_ATTEMPTS - 1, scheduling_strategy="SPREAD")
        self._task = remote(_answer)

    @property
    def num_workers(self) -> int:
        """Tasks at a time."""
        return self._workers

    def is_worker_idle(self) -> bool:
        """Return whether a task can begin: Ray lets those wait for which no processor is free."""
        return True

    def process_message(self, message: Message, context: Context) -> tuple[Message, Context]:
        """Return the reply of a node, and what it remembers.

        Raises RunError when it is an exception, naming the node of Ray, or one worker after the other died.
        """
        import ray

        answer = self._task.remote(self._app, message, context)
        self._open.add(answer)
        try:
            node, reply, remembered, failure = ray.get(answer)
        except ray.exceptions.RayTaskError as error:
            raise RunError(one_line(error.cause or error)) from error
        except ray.exceptions.RayError as error:
            raise RunError(f"{_ATTEMPTS} workers died over the same work: {why_lost(error)}") from error
        finally:
            self._open.discard(answer)
        if isinstance(failure, WithheldError):
            self._failures.append(failure.failure)
            raise failure
        if failure:
            nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
            name = {ray_node["NodeID"]: ray_node["NodeName"] for ray_node in nodes}.get(node)
            raise RunError(failure + (f" (on the Ray node {name})" if len(nodes) > 1 else ""))
        if node not in self._checked:
            check_nodes(None, "")  # it has joined the cluster since
            self._checked.update(working_nodes())
        return reply, remembered

    def terminate(self) -> None:
        """End the tasks that work or wait for a processor."""
        import ray

        for answer in list(self._open):
            ray.cancel(answer, force=True)


def _answer(
    app: Callable[[], ClientApp], message: Message, context: Context
) -> tuple[str, Message | None, Context, WithheldError | str]:
    """Return the node of Ray, the reply, what is remembered, and why there is no reply."""
    import ray

    node = str(ray.get_runtime_context().get_node_id())
    try:
        return node, app()(message, context), context, ""
    except WithheldError as withheld:
        return node, None, context, withheld
    except Exception as error:
        return node, None, context, one_line(error)


@contextmanager
def tasks_of_at_most(workers: int, failures: list[CodeError]) -> Iterator[Callable[[], None]]:
    """Let the simulation that starts meanwhile run in so many tasks at a time; yield what ends them.

    ``failures``: see `TaskBackend`.
    """
    from flwr.server.superlink.fleet.vce.backend import raybackend

    backends: list[TaskBackend] = []
    names = vars(raybackend)
    original: Any = names["RayBackend"]

    def made(_config: object) -> TaskBackend:
        backends.append(TaskBackend(workers, failures))
        return backends[-1]

    def end() -> None:
        for backend in backends:
            backend.terminate()

    names["RayBackend"] = made
    try:
        yield end
    finally:
        names["RayBackend"] = original
