"""Watches the processes of Ray without which no other one goes on: the head of a cluster, or our own Ray.

Ray waits a minute for a head that is gone, and for its own node for ever, and ends a process that has joined
past all that Python would do, often without a word. So a process looks for itself, and says how to go on.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from dprec.errors import how_to_go_on

PATIENCE_SECONDS = 45.0
"""For how long a head may not be reached: less than Ray waits."""

_LOOK_SECONDS, _LOOK_AT_OWN_SECONDS = 2.0, 0.02
"""Between two looks; when its own node dies, Ray may end a process within a tenth of a second."""

_GRACE_SECONDS = 2.0
"""For how long a process may end by itself, in order."""


@contextmanager
def head_watched(address: str) -> Iterator[None]:
    """End this process, with a line on standard error, when nothing listens at HOST:PORT for long."""
    reason = f"the head of the Ray cluster at {address} is gone"
    with _watched(partial(_listens, address), reason, _LOOK_SECONDS, PATIENCE_SECONDS):
        yield


@contextmanager
def own_node_watched() -> Iterator[None]:
    """End this process, with a line on standard error, when a process of the Ray that it has started dies."""
    from ray._private import worker

    node: Any = worker._global_node
    agents = [
        agent for kind, process in node.live_processes() if kind == "raylet" for agent in _agents(process.pid)
    ]
    reason = "Ray's node process died"
    with _watched(
        lambda: not node.dead_processes() and all(map(_runs, agents)), reason, _LOOK_AT_OWN_SECONDS, 0.0
    ):
        yield


def _agents(raylet: int) -> list[str]:
    """Return the ids of the processes with which the process of a node ends, as far as the system tells."""
    with suppress(OSError):
        children = Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()
        return [child for child in children if "Agent" in Path(f"/proc/{child}/cmdline").read_text()]
    return []


def _runs(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def _watched(lives: Callable[[], bool], reason: str, look: float, patience: float) -> Iterator[None]:
    stopped = threading.Event()

    def watch() -> None:
        last_seen = time.monotonic()
        while not stopped.wait(look):
            if lives():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > patience:
                if not _interrupted():
                    print(f"dprec: {reason}, so this process ends", end="; ", file=sys.stderr, flush=True)
                    on = how_to_go_on() or "with a directory for the result, --resume goes on"
                    print(on, file=sys.stderr, flush=True)
                if not stopped.wait(_GRACE_SECONDS) and not _interrupted():
                    os._exit(1)
                return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        stopped.set()
        watching.join()


def _interrupted() -> bool:
    """Return whether the program ends already (`dprec.start`): what ended it may have ended Ray as well."""
    return signal.getsignal(signal.SIGTERM) == signal.SIG_IGN


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _LOOK_SECONDS).close()
    except OSError:
        return False
    return True
