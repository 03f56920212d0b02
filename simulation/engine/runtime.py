"""Starts Flower, on Ray or in this process, and provides the grid that reaches its nodes.

Everything that depends on how Flower runs a simulation is here. The simulation runtime runs in its own
thread, with a ServerApp that only lends its grid. The caller's thread talks to the nodes, so that one
start of Ray can serve many runs and an exception stays in the run that caused it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import Queue
from typing import TypeVar

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
os.environ.setdefault("FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

from flwr.app import Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.supercore.task_identity import TaskIdentity

from clients.app import client_app
from clients.brought import Brought
from clients.places import SEEN_BY_ALL, place_of
from dprec.errors import RunError, one_line
from simulation.engine.actor_pool import pool_of_at_most
from simulation.engine.local_grid import LocalGrid
from simulation.engine.ray_connection import connected_to_ray
from simulation.engine.supervised_grid import SupervisedGrid
from simulation.engine.turns import TURN

_POLL_SECONDS = 0.05

_START_SECONDS = 120.0
_STOP_SECONDS = 10.0

ResultT = TypeVar("ResultT")


@contextmanager
def open_grid(
    backend: str, root: str, nodes: int, workers: int, brought: Mapping[str, Brought]
) -> Iterator[Grid]:
    """Start the nodes and yield the grid that reaches them; stop them afterwards.

    Parameters
    ----------
    backend : {"ray", "local"}
    root : str
        Folder in which the nodes find the populations of the runs.
    nodes : int
        Number of Flower nodes.
    workers : int
        Number of Ray actors that run the nodes.
    brought : mapping
        What runs need from outside dprec, by run key; runs may be added while the grid is open.

    Raises
    ------
    InputError
        When RAY_ADDRESS names no cluster, or one of its nodes does not see the folder.
    RunError
        When Ray or Flower's simulation runtime cannot be started.
    """
    app = client_app(root, brought)
    with identity_restored():
        if backend == "local":
            yield SupervisedGrid(LocalGrid(app, nodes))
            return
        with (
            connected_to_ray(workers, place_of(root), SEEN_BY_ALL) as usable,
            _simulation_runtime(app, nodes, usable) as grid,
        ):
            yield grid


@contextmanager
def identity_restored() -> Iterator[None]:
    """Restore the process's identity, with which Flower stamps messages, on leaving the context.

    There is one identity per process, and each start of a grid sets it. Without this, a run in this process
    would make a simulation that is open at the same time send messages of a run that it does not know.
    A simulation in another thread waits until this one is closed.
    """
    names = ("_task_id", "_run_id", "_node_id")
    with TURN:
        identity = {name: getattr(TaskIdentity, name) for name in names}
        try:
            yield
        finally:
            for name, value in identity.items():
                setattr(TaskIdentity, name, value)


@contextmanager
def _simulation_runtime(app: ClientApp, nodes: int, workers: int) -> Iterator[Grid]:
    lent: Queue[Grid] = Queue()
    failures: Queue[BaseException] = Queue()
    finished = threading.Event()
    server = ServerApp()

    @server.main()
    def lend(grid: Grid, _context: Context) -> None:
        lent.put(grid)
        finished.wait()

    def serve() -> None:
        try:
            _run_simulation(server, app, nodes)
        except BaseException as error:
            failures.put(error)

    runtime = threading.Thread(target=serve, name="flower-simulation", daemon=True)

    def check() -> None:
        if not runtime.is_alive():
            raise RunError(f"Flower's simulation runtime ended: {_reason(failures)}")

    with pool_of_at_most(workers) as kill_actors:
        runtime.start()
        try:
            grid = _awaited(lambda: None if lent.empty() else lent.get(), check)
            # Nodes are registered after the grid is lent.
            _awaited(lambda: len(list(grid.get_node_ids())) == nodes or None, check)
            yield SupervisedGrid(grid, check)
        finally:
            finished.set()
            runtime.join(_STOP_SECONDS)
            if runtime.is_alive():
                kill_actors()
                runtime.join(_STOP_SECONDS)


def _awaited(attempt: Callable[[], ResultT | None], check: Callable[[], None]) -> ResultT:
    """Return the first result that is not None, while the check passes."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if (result := attempt()) is not None:
            return result
        check()
        time.sleep(_POLL_SECONDS)
    raise RunError(f"Flower's simulation runtime did not start within {_START_SECONDS:g} s")


def _reason(failures: Queue[BaseException]) -> str:
    """Return why the runtime ended: the first cause of its exception, which Flower wraps."""
    if failures.empty():
        return "no reason given"
    error = failures.get()
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(error)


def _run_simulation(server: ServerApp, app: ClientApp, nodes: int) -> None:
    from flwr.simulation import run_simulation

    # What goes wrong arrives as an exception or as an error reply; Flower logs it as well, with a traceback.
    logging.getLogger("flwr").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_simulation(
            server_app=server,
            client_app=app,
            num_supernodes=nodes,
            backend_config={"client_resources": {"num_cpus": 1.0, "num_gpus": 0.0}},
        )
