"""How long the tests wait for another process: only what hangs takes so long, however busy the machine."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 600.0
"""More than the limits of dprec's own, so that a test sees what is said at their end."""

_LOOK_SECONDS = 0.02


def wait_until(
    holds: Callable[[], object],
    *processes: "subprocess.Popen[Any]",
    patience: float = PATIENCE_SECONDS,
    logs: Callable[[], str] = lambda: "",
) -> None:
    """Wait until something holds, which processes bring about; fail with their logs if they end or hang."""
    deadline = time.monotonic() + patience
    while not holds():
        assert all(process.poll() is None for process in processes), logs()
        assert time.monotonic() < deadline, logs()
        time.sleep(_LOOK_SECONDS)
