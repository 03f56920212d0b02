"""The actors of Flower's simulation: no more than were asked for, and none that outlives its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def pool_of_at_most(workers: int) -> Iterator[Callable[[], None]]:
    """Limit the actors of the simulation that starts meanwhile; Flower would fill a cluster that others use.

    Yields
    ------
    callable
        Kills the actors. Flower waits for them without end, even for one that never gets a processor.
    """
    import ray
    from flwr.server.superlink.fleet.vce.backend import raybackend

    pools: list[Any] = []
    names = vars(raybackend)
    unlimited: Any = names["BasicActorPool"]

    def limited(*arguments: Any, **options: Any) -> Any:
        pool = unlimited(*arguments, **options)
        pool.actors_capacity = min(pool.actors_capacity, workers)
        pools.append(pool)
        return pool

    def kill() -> None:
        for pool in pools:
            for actor in [*pool.pool, *pool._future_to_actor.values()]:
                ray.kill(actor)

    names["BasicActorPool"] = limited
    try:
        yield kill
    finally:
        names["BasicActorPool"] = unlimited
