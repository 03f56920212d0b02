"""Flower on Ray: the connection to a cluster.

Ray by itself would also join any cluster that it finds on this machine, whose owner may not expect it.
The same bits need the same sources, libraries and files on every node, so a node that differs is named before
anything is computed.
"""

import hashlib
import logging
import os
import platform
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import dprec
from clients.places import place_of
from dprec.errors import LESS_MEMORY, InputError, RunError, one_line, shown
from dprec.start import NO_LIMIT, PACKAGES, memory_limit
from simulation.engine.grids import START_SECONDS
from simulation.engine.head_watch import head_watched, own_node_watched

TURN = threading.RLock()
"""Held by the thread that has a simulation open, or is connected to Ray."""


_ATTEMPTS = 3
"""How often a node is asked whose workers fail."""

_LIBRARIES = {"NumPy": "numpy", "SciPy": "scipy", "Flower": "flwr"}


def installation() -> dict[str, str]:
    """Return what this process computes with.

    Names and versions, a digest of the packages' sources, and what rounding depends on: the code that the
    linear algebra and NumPy choose for the processor.
    """
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    chosen = {library.get("architecture", library["version"]) for library in libraries}
    extensions = (np.show_config(mode="dicts") or {}).get("SIMD Extensions", {})
    return {
        "dprec": dprec.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(distribution) for name, distribution in _LIBRARIES.items()},
        "sources": _sources(Path(dprec.__file__).parents[1]),
        "linear algebra for": " and ".join(sorted(map(str, chosen))),
        # The widest set that NumPy uses here, of those that it has code for.
        "vector instructions": str([*extensions.get("baseline", []), *extensions.get("found", [])][-1]),
    }


def check_nodes(folder: Path | None, accepted: str) -> None:
    """Check all nodes that have a processor.

    Raises InputError when one does not see the folder, and RunError, naming it, when it runs something else,
    or does not answer. A node that leaves the cluster meanwhile is none.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    remote: Any = ray.remote(num_cpus=0, max_retries=0)(_examine)
    path = None if folder is None else str(folder)

    def ask(node: str) -> Any:
        place = NodeAffinitySchedulingStrategy(node, soft=False)
        return remote.options(scheduling_strategy=place).remote(path)

    ours, nodes = installation(), working_nodes()
    for node, reference in [(node, ask(node)) for node in nodes]:
        name, reason = nodes[node], ""
        for attempt in range(_ATTEMPTS):  # its workers may die first
            try:
                theirs, sees_folder = ray.get(reference if attempt == 0 else ask(node), timeout=START_SECONDS)
            except ray.exceptions.GetTimeoutError as error:
                raise RunError(f"the Ray node {name} did not answer within {START_SECONDS:g} s") from error
            except ray.exceptions.RayError as error:
                reason = one_line(error)
                if node not in working_nodes():
                    break
            else:
                check_same(name, theirs, ours)
                if not sees_folder:
                    raise InputError(str(path), f"not on the Ray node {name}", accepted)
                break
        else:
            raise RunError(f"the Ray node {name} cannot run dprec: {reason}")


def _examine(folder: str | None) -> tuple[dict[str, str], bool]:
    return installation(), folder is None or place_of(folder).is_dir()


def check_same(node: str, theirs: dict[str, str], ours: dict[str, str]) -> None:
    """Refuse a node whose installation differs from this process's, naming both versions."""
    both = [(name, theirs.get(name, "unknown"), our_version) for name, our_version in ours.items()]
    if different := [
        f"{name} {their_version}, not {our_version}"
        for name, their_version, our_version in both
        if their_version != our_version
    ]:
        raise RunError(f"the Ray node {node} has {'; '.join(different)}")


def working_nodes() -> dict[str, str]:
    """Return the names of the nodes that are alive and have a processor, by their ids."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return {
        node["NodeID"]: node["NodeName"]
        for node in nodes
        if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
    }


def why_lost(error: Exception) -> str:
    """Return in one line why Ray has lost workers, and what helps if memory was short.

    Of a process that the system has ended for lack of memory, Ray knows only that it is gone.
    """
    import ray

    short = isinstance(error, ray.exceptions.OutOfMemoryError)
    why = "memory was short;" if short else f"{one_line(error).rstrip('.')}; if memory was short,"
    return f"{why} what helps is {LESS_MEMORY}"


def _sources(home: Path) -> str:
    """Return a digest of the packages' sources, wherever they are installed."""
    digest = hashlib.sha256()
    for path in sorted(path for package in PACKAGES for path in (home / package).rglob("*.py")):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


ADDRESS = "RAY_ADDRESS"
"""Environment variable that names a cluster, Ray's own."""

_ACCEPTED = (
    "HOST:PORT of the Ray cluster that this machine is part of, auto to look it up, or nothing for a Ray of"
    " our own"
)

WITHOUT_RAY = "--set simulation.backend=local"

_FOLDERS = "RAY_TMPDIR", "TMPDIR"
"""Environment variables that name the folder in which Ray puts its own, the first that is set."""

_SOCKET, _LONGEST_SOCKET = "{}/ray/session_2000-01-01_00-00-00_000000_{}/sockets/plasma_store", 107
"""The longest path of a socket of Ray, from this folder and the process; bytes that Linux takes."""

_CONNECT_SECONDS, _SLOW_SECONDS = 10.0, 30.0

_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\S+)")
"""Ray's and Python's version, in what Ray says when a cluster has others."""


def cluster_address() -> str | None:
    """Return the address of the cluster to join; None for a Ray of our own."""
    address = os.environ.get(ADDRESS, "").strip()
    return None if address in ("", "local") else address


@contextmanager
def connected_to_ray(
    workers: int, folder: Path | None = None, accepted: str = "a folder that every node sees"
) -> Iterator[int]:
    """Join the cluster that RAY_ADDRESS names, or start a Ray of our own; leave it at the end.

    A process that is connected already stays as it is; another thread waits until this one has left. Yields
    the processors that can be used: in a cluster, at most those that are free, and at least 1. Raises
    InputError when the address is none, nothing listens there, or a node does not see the folder. Raises
    RunError when Ray refuses, or a node of the cluster has other versions.
    """
    import ray

    with TURN:
        if ray.is_initialized():
            yield _usable(workers)
            return
        check_way_to_ray()
        address = cluster_address()
        try:
            if address is None:
                with _slow_start_told():
                    _connect("local", num_cpus=workers, include_dashboard=False)
                with own_node_watched():
                    yield workers
            else:
                # Workers of a cluster inherit nothing from this process, not even where its packages are.
                path = os.pathsep.join([*filter(None, sys.path), os.environ.get("PYTHONPATH", "")])
                _connect(address, runtime_env={"env_vars": {"PYTHONPATH": path}})
                check_nodes(folder, accepted)
                with head_watched(ray.get_runtime_context().gcs_address):
                    yield _usable(workers)
        finally:
            ray.shutdown()


def check_way_to_ray() -> None:
    """Raise InputError, before anything is written, where Ray cannot be reached, or cannot be started.

    Nothing answers where RAY_ADDRESS says, or the folder for temporary files is too deep for Ray's sockets.
    """
    import ray

    if ray.is_initialized():
        return
    if (address := cluster_address()) is not None:
        _check_address(address)
        return
    name = next((variable for variable in _FOLDERS if variable in os.environ), "")
    folder = os.environ.get(name, "")
    beyond = len(os.fsencode(_SOCKET.format(folder, os.getpid()))) - _LONGEST_SOCKET
    if beyond > 0:
        length = len(os.fsencode(folder))
        accepted = f"a path of at most {length - beyond}, as Ray makes sockets there, or {WITHOUT_RAY}"
        raise InputError(name, f"{shown(folder)}, a path of {length} bytes", accepted)


def _usable(workers: int) -> int:
    import ray

    free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
    return max(1, min(workers, int(free.get("CPU", 0))))


def _connect(address: str, **options: Any) -> None:
    import ray

    try:
        with _sigterm_kept():
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **options)
    except ConnectionError as error:
        raise InputError(ADDRESS, f"{address} ({one_line(error)})", _ACCEPTED) from error
    except Exception as error:  # Ray raises a bare one where its own processes do not start
        match _VERSIONS.findall(str(error)):
            case [(ray_there, python_there), (ray_here, python_here)]:
                there, here = (
                    f"Ray {ray_there} and Python {python_there}",
                    f"Ray {ray_here} and Python {python_here}",
                )
                raise RunError(f"the Ray cluster at {address} has {there}, not {here}") from error
        likely, limit = "", memory_limit()
        if limit is not None:
            likely = f"; likely for the limit on memory of {limit / 1e9:.2g} GB ({NO_LIMIT} lifts it)"
        without = f"{WITHOUT_RAY}, or --jobs 1 of a comparison, does without it"
        raise RunError(f"Ray did not start: {one_line(error).rstrip('.')}{likely}; {without}") from error


@contextmanager
def _slow_start_told() -> Iterator[None]:
    """Say in time how to do without Ray, which tries for minutes where it cannot start."""
    words = f"dprec: Ray has not started within {_SLOW_SECONDS:g} s; {WITHOUT_RAY} does without it"
    timer = threading.Timer(_SLOW_SECONDS, print, [words], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Give SIGTERM back to the function that handles it; Ray's own handlers print a stack trace and exit.

    Until Ray has started, theirs answer: such an exit is an interrupt.
    """
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        if callable(handler) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _check_address(address: str) -> None:
    """Refuse what is no address, and one at which no cluster answers; Ray would try for minutes."""
    import grpc
    from ray._private.grpc_utils import init_grpc_channel

    if address == "auto":
        return  # which Ray looks up
    host, _, port = address.rpartition(":")
    reason = ""
    if address.startswith("ray://"):
        reason = "for machines outside a cluster"
    elif not host or not port.isdecimal():
        reason = "no HOST:PORT"
    else:
        try:
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
            with init_grpc_channel(address) as channel:
                grpc.channel_ready_future(channel).result(timeout=_CONNECT_SECONDS)
        except grpc.FutureTimeoutError:
            reason = "what listens there is no Ray cluster"
        except (OSError, OverflowError, UnicodeError) as error:
            reason = one_line(error)
    if reason:
        raise InputError(ADDRESS, f"{address} ({reason})", _ACCEPTED)
