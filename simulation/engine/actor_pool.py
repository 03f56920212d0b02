"""The actors of Flower's simulation: no more than asked for, replaced when they die, gone with their run.

Flower's own pool gives up a message whose actor died, and counts on an actor that has no processor yet. Here
an actor takes part once it runs. A message whose actor died goes to another one: what devices remember is in
the message's context, which stays in this process, and their draws depend on whose they are alone, so the
answer has the same bits.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dprec.errors import RunError, one_line
from simulation.engine.ray_cluster import check_nodes, working_nodes

_ATTEMPTS = 3
"""How often a message is asked, and how many actors may die in a row before they run."""

_IDLE_POLL_SECONDS = 0.05

_PROCESSOR_SECONDS = 120.0
"""Longest wait for an actor while none runs."""


@contextmanager
def pool_of_at_most(workers: int) -> Iterator[Callable[[], None]]:
    """Replace the pool of the simulation that starts meanwhile; yield what kills its actors.

    Flower would fill a cluster that others use, and waits for actors without end.
    """
    from flwr.server.superlink.fleet.vce.backend import raybackend

    pools: list[ActorPool] = []
    names = vars(raybackend)
    unlimited: Any = names["BasicActorPool"]

    def limited(*arguments: Any, **options: Any) -> ActorPool:
        pool = unlimited(*arguments, **options)
        pools.append(ActorPool(pool.create_actor_fn, min(pool.actors_capacity, workers)))
        return pools[-1]

    def kill() -> None:
        for pool in pools:
            pool.terminate_all_actors()

    names["BasicActorPool"] = limited
    try:
        yield kill
    finally:
        names["BasicActorPool"] = unlimited


@dataclass(eq=False)
class Asked:
    """A message that an actor was asked to answer."""

    ask: Callable[..., Any]
    """Given an actor and the parts of the job, asks and returns the reference of the answer."""
    job: tuple[Any, ...]
    actor: Any
    """The actor that was asked last."""
    answer: Any
    """The reference of its answer."""
    deaths: int = 0
    """How many actors have died over it."""


class ActorPool:
    """A pool with the interface of Flower's `BasicActorPool`, used by several threads."""

    def __init__(self, start: Callable[[], Any], capacity: int) -> None:
        self._start, self.actors_capacity = start, capacity
        self.num_actors = 0
        self._lock = threading.Lock()
        self._starting: dict[Any, Any] = {}
        self._idle: list[Any] = []
        self._busy: set[Any] = set()
        self._nodes: dict[Any, str] = {}
        self._checked = set(working_nodes())
        self._failed_starts = 0
        self._closed = False
        self._reason = "the simulation has ended"

    def add_actors_to_pool(self, num_actors: int) -> None:
        """Start actors."""
        with self._lock:
            for _ in range(num_actors):
                self._add()
            self.num_actors += num_actors

    def is_actor_available(self) -> bool:
        """Return whether there is an idle actor."""
        return bool(self._idle)

    def submit(self, actor_fn: Callable[..., Any], job: tuple[Any, ...]) -> Asked:
        """Ask an actor, once one is idle; raises RunError if none runs for too long, or the pool ended."""
        actor = self._take()
        return Asked(actor_fn, job, actor, actor_fn(actor, *job))

    def fetch_result_and_return_actor_to_pool(self, asked: Asked) -> tuple[Any, Any]:
        """Wait for an answer, from another actor if the one that was asked dies.

        Raises RunError when it is an exception, naming the node, or one actor after the other died.
        """
        import ray

        while True:
            try:
                _, reply, context = ray.get(asked.answer)
            except ray.exceptions.RayTaskError as error:
                raise RunError(f"{error.cause or error}{self._place(asked.actor)}") from error
            except ray.exceptions.RayError as error:
                self._discard(asked.actor)
                asked.deaths += 1
                if asked.deaths == _ATTEMPTS:
                    raise RunError(
                        f"{_ATTEMPTS} workers died over the same work: {one_line(error)}"
                    ) from error
                asked.actor = self._take()
                asked.answer = asked.ask(asked.actor, *asked.job)
            else:
                self.add_actor_back_to_pool(asked)
                return reply, context

    def add_actor_back_to_pool(self, asked: Asked) -> None:
        """Let an actor that has answered be asked again, unless it is back already or died."""
        with self._lock:
            if asked.actor in self._busy:
                self._busy.remove(asked.actor)
                self._idle.append(asked.actor)

    def terminate_all_actors(self) -> None:
        """Kill the actors, also those that work or wait for a processor; nothing can be asked any more."""
        import ray

        with self._lock:
            self._closed = True
            actors = [*self._starting.values(), *self._idle, *self._busy]
            self._starting.clear()
            self._idle.clear()
        for actor in actors:
            ray.kill(actor)

    def _add(self) -> None:
        actor = self._start()

        def node(_: Any) -> str:
            import ray

            return str(ray.get_runtime_context().get_node_id())

        self._starting[actor.__ray_call__.remote(node)] = actor

    def _take(self) -> Any:
        since = time.monotonic()
        while True:
            with self._lock:
                self._admit()
                if self._closed or not (self._idle or self._busy or self._starting):
                    raise RunError(self._reason)
                if self._idle:
                    actor = self._idle.pop()
                    self._busy.add(actor)
                    return actor
                if self._busy:
                    since = time.monotonic()
            if time.monotonic() - since > _PROCESSOR_SECONDS:
                raise RunError(f"Ray had no free processor within {_PROCESSOR_SECONDS:g} s")
            time.sleep(_IDLE_POLL_SECONDS)

    def _admit(self) -> None:
        """Make the actors that have started idle; refuse nodes with other versions."""
        import ray

        if not self._starting:
            return
        started, _ = ray.wait(list(self._starting), num_returns=len(self._starting), timeout=0)
        for reference in started:
            actor = self._starting[reference]
            try:
                self._nodes[actor] = ray.get(reference)
            except ray.exceptions.RayError as error:
                del self._starting[reference]
                self._failed_starts += 1
                self._reason = f"{self._failed_starts} workers died at their start: {one_line(error)}"
                if self._failed_starts < _ATTEMPTS:
                    self._add()
            else:
                if self._nodes[actor] not in self._checked:
                    check_nodes(None, "")  # it has joined the cluster since
                    self._checked.update(working_nodes())
                del self._starting[reference]
                self._failed_starts = 0
                self._idle.append(actor)

    def _discard(self, actor: Any) -> None:
        """Replace an actor that died, or that cannot be reached."""
        import ray

        with self._lock:
            self._busy.discard(actor)
            if not self._closed:
                ray.kill(actor)
                self._add()

    def _place(self, actor: Any) -> str:
        """Return on which node an actor runs, for a message; nothing if there is one node."""
        import ray

        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        names = {node["NodeID"]: node["NodeName"] for node in nodes}
        return f" (on the Ray node {names.get(self._nodes[actor])})" if len(nodes) > 1 else ""
