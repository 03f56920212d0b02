"""The connection to Ray: to the cluster that RAY_ADDRESS names, or to a Ray of our own.

Ray by itself would also join any cluster that it finds on this machine, whose owner may not expect it.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dprec
from dprec.errors import InputError, RunError

ADDRESS = "RAY_ADDRESS"
"""Environment variable that names a cluster, Ray's own."""

_CONNECT_SECONDS = 10.0
_FREE_CPU_SECONDS = 120.0


@contextmanager
def connected_to_ray(workers: int) -> Iterator[int]:
    """Join the cluster that RAY_ADDRESS names, or start a Ray of our own; leave it at the end.

    A process that is connected already stays as it is.

    Parameters
    ----------
    workers : int
        Processors that are wanted; a Ray of our own has as many.

    Yields
    ------
    int
        Processors that can be used: in a cluster, at most those that are free, and at least 1.

    Raises
    ------
    InputError
        When the address is none, or nothing listens there.
    RunError
        When Ray refuses, has no free processor, or runs another version of this project.
    """
    import ray

    if ray.is_initialized():
        yield _usable(workers)
        return
    # Ray, too, takes an empty address for none.
    address = os.environ.get(ADDRESS, "").strip() or "local"
    try:
        if address == "local":
            _connect(address, num_cpus=workers, include_dashboard=False)
            yield workers
        else:
            _check_address(address)
            # Workers of a cluster inherit nothing from this process, not even where its packages are.
            path = os.pathsep.join([*filter(None, sys.path), os.environ.get("PYTHONPATH", "")])
            _connect(address, runtime_env={"env_vars": {"PYTHONPATH": path}})
            usable = _usable(workers)
            _check_workers(address)
            yield usable
    finally:
        ray.shutdown()


def _usable(workers: int) -> int:
    import ray

    free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
    return max(1, min(workers, int(free.get("CPU", 0))))


def _connect(address: str, **options: Any) -> None:
    import ray

    try:
        ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **options)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        raise RunError(f"Ray did not start: {_one_line(error)}") from error


def _check_address(address: str) -> None:
    """Refuse what is no address, and one at which nothing listens; Ray would try for minutes."""
    if address == "auto":
        return  # which Ray looks up
    host, _, port = address.removeprefix("ray://").rpartition(":")
    reason = "no HOST:PORT"
    try:
        if host and port.isdecimal():
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
            return
    except (OSError, OverflowError, UnicodeError) as error:
        reason = _one_line(error)
    accepted = "the address of a running Ray cluster, or nothing, for a Ray of our own"
    raise InputError(ADDRESS, f"{address} ({reason})", accepted)


def _check_workers(address: str) -> None:
    """Check that the cluster has a processor for us, and that this version is installed there."""
    import ray

    remote: Any = ray.remote(num_cpus=1, max_retries=0)(_installed_version)
    try:
        version = ray.get(remote.remote(), timeout=_FREE_CPU_SECONDS)
    except ray.exceptions.GetTimeoutError as error:
        reason = f"no free processor within {_FREE_CPU_SECONDS:g} s"
        raise RunError(f"the Ray cluster at {address} had {reason}") from error
    except ray.exceptions.RayError as error:
        raise RunError(f"the Ray cluster at {address} cannot run dprec: {_one_line(error)}") from error
    if version != dprec.__version__:
        raise RunError(f"the Ray cluster at {address} has dprec {version}, not {dprec.__version__}")


def _installed_version() -> str:
    return dprec.__version__


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
