"""What `dprec-pilot device` does: serve the devices in some folders."""

import logging
import os
import signal
import sys
import threading
from _thread import start_new_thread
from collections.abc import Sequence
from pathlib import Path

from dprec.errors import InputError
from dprec_pilot.addresses import check_address
from dprec_pilot.device.fleet import Fleet
from dprec_pilot.device.service import Service, opened_devices

INTERVAL, SHORTEST_INTERVAL, LONGEST_INTERVAL = 30.0, 0.05, 1800.0
"""Seconds from one visit to the next: by default, at least and at most."""

SOONEST_ANSWER, LATEST_ANSWER = 0.01, 600.0
"""Seconds from a question to its answer, at least and at most."""

_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""A device speaks to its server alone."""


def serve(
    folders: Sequence[Path],
    superlink: str,
    ca: Path,
    *,
    interval: float = INTERVAL,
    answer_after: float | None = None,
    once: bool = False,
    seeded: bool = False,
) -> None:
    """Serve devices until SIGTERM, or once.

    ``folders``: of devices, or folders of such; ``superlink``: HOST:PORT; ``ca``: the certificate of the
    server's authority; ``interval``: seconds from one visit to the next; ``answer_after``: see `Service`;
    ``once``: whether to answer what waits, and leave; ``seeded``: whether the noise follows from seeds.

    Raises
    ------
    InputError, RunError
        When a folder, the certificate, the address or a time cannot be used; when a device could not be
        served once.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    check_address(superlink)
    _check_seconds("--interval", interval, SHORTEST_INTERVAL, LONGEST_INTERVAL)
    if answer_after is not None:
        _check_seconds("--answer-after", answer_after, SOONEST_ANSWER, LATEST_ANSWER)
    _log_to_standard_error()
    stopped = threading.Event()
    stop_at_termination(stopped)
    with opened_devices(folders, seeded=seeded) as served:
        service = Service(Fleet(superlink, ca), served, stopped, answer_after)
        if seeded:
            line = "seeded: the noise of these devices follows from a seed and protects nobody"
            print(line, file=sys.stderr, flush=True)
        if once:
            service.run_once()
        else:
            service.run(interval)


def _check_seconds(option: str, seconds: float, least: float, most: float) -> None:
    if not least <= seconds <= most:
        raise InputError(option, f"{seconds:g}", f"seconds from {least:g} to {most:g}")


def stop_at_termination(stopped: threading.Event) -> None:
    """Set an event at SIGTERM."""

    def stop(*_: object) -> None:
        # By another thread: the signal may come while this one, about to wait, holds the lock of the event.
        start_new_thread(stopped.set, ())

    signal.signal(signal.SIGTERM, stop)


def _log_to_standard_error() -> None:
    """Give the owner of the devices a line for each event."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    log = logging.getLogger("dprec.device")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    # What Flower and its HTTP client say is said by the devices, in their own words.
    for name in ("flwr", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


class OneLine(logging.Formatter):
    """Escapes what a server might have a terminal obey."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
        line = super().format(record)
        return "".join(mark if mark.isprintable() or mark == "\n" else repr(mark)[1:-1] for mark in line)
