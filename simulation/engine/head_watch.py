"""Watches the head of a Ray cluster, without which no process of the cluster goes on.

Ray waits a minute for a head that is gone, and then ends every process that has joined, past all that Python
would do at its end. So a process looks for itself, and says in time how to go on.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dprec.errors import how_to_go_on

PATIENCE_SECONDS = 45.0
"""For how long a head may not be reached: less than Ray waits."""

_LOOK_SECONDS = 2.0


@contextmanager
def head_watched(address: str) -> Iterator[None]:
    """End this process, with a line on standard error, when nothing listens at HOST:PORT for long."""
    stopped = threading.Event()
    watch = threading.Thread(target=_watch, args=(address, stopped), daemon=True)
    watch.start()
    try:
        yield
    finally:
        stopped.set()
        watch.join()


def _watch(address: str, stopped: threading.Event) -> None:
    seen = time.monotonic()
    while not stopped.wait(_LOOK_SECONDS):
        if _listens(address):
            seen = time.monotonic()
        elif time.monotonic() - seen > PATIENCE_SECONDS:
            on = how_to_go_on() or "with a directory for the result, --resume goes on"
            found = f"the head of the Ray cluster at {address} is gone, so this process ends"
            print(f"dprec: {found}; {on}", file=sys.stderr, flush=True)
            os._exit(1)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _LOOK_SECONDS).close()
    except OSError:
        return False
    return True
