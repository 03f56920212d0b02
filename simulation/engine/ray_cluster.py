"""The connection to Ray: to the cluster that RAY_ADDRESS names, or to a Ray of our own.

Ray by itself would also join any cluster that it finds on this machine, whose owner may not expect it.
The same bits need the same sources, libraries and files on every node: one that differs is named before
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dprec
from clients.places import place_of
from dprec.errors import InputError, RunError, one_line
from dprec.start import PACKAGES

TURN = threading.RLock()
"""Held by the thread that has a simulation open, or is connected to Ray."""


_NODE_SECONDS = 120.0
"""Longest wait for a node to start a worker and answer."""

_ATTEMPTS = 3
"""How often a node is asked whose workers fail."""

_LIBRARIES = {"NumPy": "numpy", "SciPy": "scipy", "Flower": "flwr"}


def installation() -> dict[str, str]:
    """Return what this process computes with: names and versions, and a digest of the packages' sources."""
    return {
        "dprec": dprec.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(distribution) for name, distribution in _LIBRARIES.items()},
        "sources": _sources(Path(dprec.__file__).parents[1]),
    }


def check_nodes(folder: Path | None, accepted: str) -> None:
    """Check all nodes that have a processor.

    Raises InputError when one does not see the folder, and RunError, naming it, when it runs something else.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    remote: Any = ray.remote(num_cpus=0, max_retries=0)(_examine)
    path = None if folder is None else str(folder)

    def ask(node: str) -> Any:
        place = NodeAffinitySchedulingStrategy(node, soft=False)
        return remote.options(scheduling_strategy=place).remote(path)

    ours, nodes = installation(), working_nodes()
    for node, first in [(node, ask(node)) for node in nodes]:
        answer = _answer(node, nodes[node], first, ask)
        if answer is None:
            continue
        theirs, seen = answer
        check_same(nodes[node], theirs, ours)
        if not seen:
            raise InputError(str(path), f"not on the Ray node {nodes[node]}", accepted)


def check_same(node: str, theirs: dict[str, str], ours: dict[str, str]) -> None:
    """Refuse a node whose installation differs from this process's, naming both versions."""
    different = [
        f"{name} {theirs.get(name, 'unknown')}, not {own}"
        for name, own in ours.items()
        if theirs.get(name) != own
    ]
    if different:
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


def _answer(
    node: str, name: str, reference: Any, ask: Callable[[str], Any]
) -> tuple[dict[str, str], bool] | None:
    """Return a node's answer, or None if it leaves the cluster; its workers may die first."""
    import ray

    for attempt in range(_ATTEMPTS):
        try:
            answer: tuple[dict[str, str], bool] = ray.get(
                reference if attempt == 0 else ask(node), timeout=_NODE_SECONDS
            )
        except ray.exceptions.GetTimeoutError as error:
            raise RunError(f"the Ray node {name} did not answer within {_NODE_SECONDS:g} s") from error
        except ray.exceptions.RayError as error:
            if node not in working_nodes():
                return None
            reason = one_line(error)
        else:
            return answer
    raise RunError(f"the Ray node {name} cannot run dprec: {reason}")


def _examine(folder: str | None) -> tuple[dict[str, str], bool]:
    return installation(), folder is None or place_of(folder).is_dir()


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

_CONNECT_SECONDS = 10.0

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
        address = cluster_address()
        try:
            if address is None:
                _connect("local", num_cpus=workers, include_dashboard=False)
                yield workers
            else:
                _check_address(address)
                # Workers of a cluster inherit nothing from this process, not even where its packages are.
                path = os.pathsep.join([*filter(None, sys.path), os.environ.get("PYTHONPATH", "")])
                _connect(address, runtime_env={"env_vars": {"PYTHONPATH": path}})
                check_nodes(folder, accepted)
                yield _usable(workers)
        finally:
            ray.shutdown()


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
        raise RunError(f"Ray did not start: {one_line(error)}") from error


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
    if address == "auto":
        return  # which Ray looks up
    if address.startswith("ray://"):
        raise InputError(ADDRESS, f"{address} (for machines outside a cluster)", _ACCEPTED)
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(ADDRESS, f"{address} (no HOST:PORT)", _ACCEPTED)
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(ADDRESS, f"{address} ({one_line(error)})", _ACCEPTED) from error
    if not _speaks_grpc(address):
        raise InputError(ADDRESS, f"{address} (what listens there is no Ray cluster)", _ACCEPTED)


def _speaks_grpc(address: str) -> bool:
    """Return whether a server answers as Ray's does."""
    import grpc
    from ray._private.grpc_utils import init_grpc_channel

    with init_grpc_channel(address) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_CONNECT_SECONDS)
        except grpc.FutureTimeoutError:
            return False
    return True
