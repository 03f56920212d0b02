"""How long the tests wait for another process: only what hangs takes so long, however busy the machine."""

import socket
import subprocess
import time
from collections.abc import Callable

PATIENCE_SECONDS = 600.0


def wait_until(
    holds: Callable[[], object], *processes: "subprocess.Popen[str] | subprocess.Popen[bytes]"
) -> None:
    """Wait until something holds, which processes that must not end meanwhile bring about."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert all(process.poll() is None for process in processes), "a process has ended"
        assert time.monotonic() < deadline, f"waited for {PATIENCE_SECONDS:g} seconds"
        time.sleep(0.01)


def listens(port: int) -> bool:
    """Return whether somebody listens to a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
