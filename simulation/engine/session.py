"""A session: one start of Flower, on Ray or in this process, that serves any number of runs.

Everything that depends on how Flower runs a simulation is here. The simulation runtime runs in its own
thread, with a ServerApp that only lends its grid. The caller's thread talks to the nodes, so that one
start of Ray can serve many runs and an exception stays in the run that caused it. What devices hold is in a
folder that lasts as long as this process.
"""

import fcntl
import logging
import os
import re
import shutil
import stat
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.supercore.task_identity import TaskIdentity

from clients.app import client_app
from clients.faults import Attendance, FaultOptions
from clients.places import READABLE_BY_ALL, folder_inside, place_of
from clients.population import (
    NOTHING,
    Brought,
    HeldQuestion,
    Population,
    open_population,
    write_held_question,
    write_population,
)
from dprec.arrays import Bools, Uint8s
from dprec.attacks import MaliciousUsers
from dprec.components import CodeError
from dprec.errors import RunError, one_line
from dprec.protocols.base import Protocol
from dprec.randomness import InstalledKeys
from dprec.ratings import Ratings
from simulation.configuration.models import SimulationOptions
from simulation.engine.grids import START_SECONDS, LocalGrid, SupervisedGrid
from simulation.engine.ray_cluster import TURN, connected_to_ray
from strategies.roster import Roster, identify

_OURS = re.compile(r"dprec-run-\d+-\w+")
"""Names of temporary folders, with the id of the process that made them, for people who look at them."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder that is deleted at the end; first delete those whose owner is gone."""
    clear_abandoned()
    hidden = Path(tempfile.mkdtemp(prefix=".dprec-"))
    opened = os.open(hidden, os.O_RDONLY)
    # Locked before it gets its name. The system releases the lock when the process ends, however it ends.
    fcntl.flock(opened, fcntl.LOCK_EX)
    folder = hidden.rename(hidden.with_name(f"dprec-run-{os.getpid()}-{hidden.name.removeprefix('.dprec-')}"))
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(opened)


def _remove(folder: Path) -> None:
    """Delete a folder; workers of Ray that are killed may write there for a moment."""
    deadline = time.monotonic() + _STOP_SECONDS
    while True:
        try:
            return shutil.rmtree(folder)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)


def clear_abandoned() -> None:
    """Delete the folders whose owner is gone; others may do so at the same time."""
    for folder in Path(tempfile.gettempdir()).iterdir():
        # A problem with a folder that nobody needs must not stop a run.
        with suppress(OSError):
            status = folder.lstat()
            ours = _OURS.fullmatch(folder.name) and status.st_uid == os.getuid()
            if not ours or not stat.S_ISDIR(status.st_mode):
                continue
            opened = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(opened)


os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
os.environ.setdefault("FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_task_oom_retries", "2")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")


_POLL_SECONDS, _STOP_SECONDS = 0.05, 10.0


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
    # Without Ray, nothing waits for what of Flower it needs.
    from simulation.engine.ray_tasks import tasks_of_at_most

    lent: list[Grid] = []
    failures: list[CodeError] = []
    ends: list[BaseException] = []
    finished = threading.Event()
    server = ServerApp()

    @server.main()
    def lend(grid: Grid, _context: Context) -> None:
        lent.append(grid)
        finished.wait()

    def serve() -> None:
        try:
            _run_simulation(server, app, nodes)
        except BaseException as error:
            ends.append(error)

    runtime = threading.Thread(target=serve, name="flower-simulation", daemon=True)

    def check() -> None:
        if not runtime.is_alive():
            # Flower wraps the exception.
            error = ends[0] if ends else RunError("no reason given")
            while error.__cause__ is not None:
                error = error.__cause__
            raise RunError(f"Flower's simulation runtime ended: {one_line(error)}")

    with tasks_of_at_most(workers, failures) as end_tasks:
        runtime.start()
        try:
            deadline = time.monotonic() + START_SECONDS
            # Nodes are registered after the grid is lent.
            while not lent or len(list(lent[0].get_node_ids())) != nodes:
                check()
                if time.monotonic() > deadline:
                    raise RunError(f"Flower's simulation runtime did not start within {START_SECONDS:g} s")
                time.sleep(_POLL_SECONDS)
            yield SupervisedGrid(lent[0], failures, check)
        finally:
            finished.set()
            runtime.join(_STOP_SECONDS)
            if runtime.is_alive():
                end_tasks()
                runtime.join(_STOP_SECONDS)


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
        )


@dataclass
class Session:
    """A started simulation."""

    grid: Grid
    node_ids: tuple[int, ...]
    """Ids of the nodes, in the order of the partitions."""
    root: Path
    """Folder that holds the populations of the runs, from `place_of`."""
    startup_seconds: float
    """How long the start took."""
    individual_reports: bool = False
    """Whether every report is carried to the server, even where it needs no more than their sum."""
    shards: Path | None = None
    """Where the ratings of all runs are, or are to be written; by default, each run has its own."""
    brought: dict[str, Brought] = field(default_factory=dict)
    """What messages bring to the nodes for runs with user-defined classes, by run key."""
    _runs: Iterator[int] = field(default_factory=lambda: count(1))

    def install(
        self,
        train: Ratings,
        *,
        users_per_node: int,
        keys: InstalledKeys,
        faults: FaultOptions,
        protocol: Protocol,
        absent: Bools | None = None,
        attendance: Attendance | None = None,
        epsilons: Uint8s | None = None,
        individual_reports: bool = False,
        crafting: MaliciousUsers | None = None,
    ) -> str:
        """Give the devices their ratings and settings, or raise InputError; return the run key.

        ``epsilons``: the number of each user's own, if they have any. ``individual_reports``: whether nodes
        send each report in this run, as in all runs of a session that says so. ``crafting``: users, the last
        ones, who choose what they report.
        """
        key = f"{next(self._runs):08d}"
        brought = Brought.for_protocol(protocol)
        if brought != NOTHING:
            self.brought[key] = brought
        write_population(
            self.root / key,
            train,
            users_per_node=users_per_node,
            keys=keys,
            faults=faults,
            protocol=protocol if brought.protocol is None else None,
            absent=absent,
            attendance=attendance,
            epsilons=epsilons,
            crafted=0 if crafting is None else crafting.users,
            targets=() if crafting is None else crafting.targets,
            individual_reports=self.individual_reports or individual_reports,
            shards=self.shards,
        )
        return key

    def restore(self, group: str, received: HeldQuestion) -> None:
        """Give the devices what they had received before a run was interrupted."""
        write_held_question(self.root / group, received)

    def roster(self, n_users: int, users_per_node: int) -> Roster:
        """Return which node hosts which of a run's users."""
        nodes = -(-n_users // users_per_node)
        return Roster(self.node_ids[:nodes], n_users, users_per_node, believed=True)


@contextmanager
def open_session(options: SimulationOptions, nodes: int) -> Iterator[Session]:
    """Start a simulation of so many nodes, and stop it afterwards.

    Raises InputError when RAY_ADDRESS names no cluster, or one of its nodes does not see the folder. Raises
    RunError when Ray or Flower's simulation runtime cannot be started.
    """
    started = time.perf_counter()
    shards = None if options.devices_dir is None else place_of(options.devices_dir)
    brought: dict[str, Brought] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder() if shards is None else folder_inside(shards))
        app = client_app(str(folder), brought)
        stack.enter_context(identity_restored())
        if options.backend == "local":
            local = LocalGrid(app, nodes)
            grid: Grid = SupervisedGrid(local, local.failures)
        else:
            joining = connected_to_ray(options.tasks, place_of(str(folder)), READABLE_BY_ALL)
            grid = stack.enter_context(_simulation_runtime(app, nodes, stack.enter_context(joining)))
        node_ids = identify(grid)
        seconds = time.perf_counter() - started
        yield Session(grid, node_ids, folder, seconds, shards=shards, brought=brought)


@dataclass(frozen=True, eq=False)
class Overhearing:
    """What is heard of a session."""

    session: Session
    grid: LocalGrid
    """Its only node answers for everybody."""
    requests: list[Message]
    replies: list[Message]
    """All so far, in order."""

    def population(self, request: Message) -> Population:
        """Return the people whom a request is for."""
        run = request.metadata.group_id
        return open_population(f"{self.session.root}/{run}", self.session.brought.get(run, NOTHING))

    def ask(self, request: Message) -> Message:
        """Return the reply to a further request, which is not recorded."""
        return self.grid.answer(request)


@contextmanager
def open_overheard_session(devices_dir: str | None = None) -> Iterator[Overhearing]:
    """Start a session with one node in this process, and yield it with all that is said."""
    requests: list[Message] = []
    replies: list[Message] = []

    def record(request: Message, reply: Message) -> None:
        requests.append(request)
        replies.append(reply)

    brought: dict[str, Brought] = {}
    place = None if devices_dir is None else place_of(devices_dir)
    with temporary_folder() if place is None else folder_inside(place) as folder, identity_restored():
        grid = LocalGrid(client_app(str(folder), brought), 1, record)
        supervised, nodes = SupervisedGrid(grid, grid.failures), identify(grid)
        session = Session(supervised, nodes, folder, 0.0, individual_reports=True, brought=brought)
        yield Overhearing(session, grid, requests, replies)
