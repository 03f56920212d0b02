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
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue

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
from dprec.errors import RunError
from simulation.engine.local_grid import LocalGrid

_POLL_SECONDS = 0.05


@contextmanager
def open_grid(backend: str, root: str, nodes: int, workers: int) -> Iterator[Grid]:
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

    Raises
    ------
    RunError
        When Flower's simulation runtime cannot be started.
    """
    app = client_app(root)
    with identity_restored():
        if backend == "local":
            yield LocalGrid(app, nodes)
            return
        with _simulation_runtime(app, nodes, workers) as grid:
            yield grid


@contextmanager
def identity_restored() -> Iterator[None]:
    """Restore the process's identity, with which Flower stamps messages, on leaving the context.

    There is one identity per process, and each start of a grid sets it. Without this, a run in this process
    would make a simulation that is open at the same time send messages of a run that it does not know.
    """
    names = ("_task_id", "_run_id", "_node_id")
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
            _run_simulation(server, app, nodes, workers)
        except BaseException as error:
            failures.put(error)

    runtime = threading.Thread(target=serve, name="flower-simulation", daemon=True)
    runtime.start()
    try:
        yield _wait_for_nodes(_wait_for_grid(lent, failures, runtime), nodes, failures, runtime)
    finally:
        finished.set()
        runtime.join()


def _wait_for_grid(lent: Queue[Grid], failures: Queue[BaseException], runtime: threading.Thread) -> Grid:
    while runtime.is_alive():
        try:
            return lent.get(timeout=_POLL_SECONDS)
        except Empty:
            continue
    raise _not_started(failures)


def _wait_for_nodes(
    grid: Grid, nodes: int, failures: Queue[BaseException], runtime: threading.Thread
) -> Grid:
    """Return the grid once its nodes are registered, which happens after it is lent."""
    while runtime.is_alive():
        if len(list(grid.get_node_ids())) == nodes:
            return grid
        time.sleep(_POLL_SECONDS)
    raise _not_started(failures)


def _not_started(failures: Queue[BaseException]) -> RunError:
    reason = "it ended at once" if failures.empty() else str(failures.get())
    return RunError(f"Flower's simulation runtime did not start: {reason}")


def _run_simulation(server: ServerApp, app: ClientApp, nodes: int, workers: int) -> None:
    from flwr.simulation import run_simulation

    logging.getLogger("flwr").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_simulation(
            server_app=server,
            client_app=app,
            num_supernodes=nodes,
            backend_config={
                "client_resources": {"num_cpus": 1.0, "num_gpus": 0.0},
                "init_args": {
                    "num_cpus": workers,
                    "logging_level": logging.ERROR,
                    "log_to_driver": False,
                    "include_dashboard": False,
                },
            },
        )
