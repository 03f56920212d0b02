"""What `dprec device` and `dprec-device` do: serve the devices in some folders, or as `clients.device.owner`.

The first is of the complete distribution, whose command line is Typer's; the second of the distribution for
devices, which has none of that. Both have these options, and say the same.
"""

import argparse
import logging
import os
import signal
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import dprec
from clients.device import owner
from clients.device.addresses import check_address
from dprec.errors import InputError, RunError

NAME = "dprec-device"
SUMMARY = "Serve one device or many: answer the server within the limits of each user, and fetch predictions."

INTERVAL, SHORTEST_INTERVAL, LONGEST_INTERVAL = 30.0, 0.05, 1800.0
"""Seconds from one visit to the next: by default, at least and at most."""

SOONEST_ANSWER, LATEST_ANSWER = 0.01, 600.0
"""Seconds from a question to its answer, at least and at most."""

HELP = {
    "folders": "Folders of devices, or folders of such folders.",
    "superlink": "The server.",
    "ca": "Certificate of the server's authority, as PEM.",
    "interval": "Seconds from one visit to the next.",
    "answer_after": "Seconds from a question to its answer, always.",
    "once": "Answer what waits, and leave.",
    "seeded": "For tests: noise that follows from the seed in seeded.json.",
}
"""What the arguments mean."""

_OTHERS = f"{NAME} join and {NAME} rotate make a device and its keys; their --help says how."

_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""A device speaks to its server alone."""

_DONE, _FAILED, _INPUT, _INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What is served, and how."""

    folders: Sequence[Path]
    """Of devices, or folders of such."""
    superlink: str
    """HOST:PORT."""
    ca: Path
    """The certificate of the server's authority."""
    interval: float = INTERVAL
    """Seconds from one visit to the next."""
    answer_after: float | None = None
    """Seconds from a question to its answer; see `Service`."""
    once: bool = False
    """Whether to answer what waits, and leave."""
    seeded: bool = False
    """Whether the noise follows from seeds."""

    def run(self) -> None:
        """Serve the devices until SIGTERM, or once.

        Raises InputError when a folder, the certificate or the address cannot be used, and RunError when a
        device could not be served once.
        """
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        check_address(self.superlink)
        from clients.device.fleet import Fleet
        from clients.device.service import Service, opened_devices

        _log_to_standard_error()
        stopped = threading.Event()
        stop_at_termination(stopped)
        with opened_devices(self.folders, seeded=self.seeded) as served:
            service = Service(Fleet(self.superlink, self.ca), served, stopped, self.answer_after)
            if self.seeded:
                _say("seeded: the noise of these devices follows from a seed and protects nobody")
            if self.once:
                service.run_once()
            else:
                service.run(self.interval)


def stop_at_termination(stopped: threading.Event) -> None:
    """Set an event at SIGTERM."""

    def stop(*_: object) -> None:
        # By another thread: the signal may come while this one, about to wait, holds the lock of the event.
        start_new_thread(stopped.set, ())

    signal.signal(signal.SIGTERM, stop)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Print what cannot be used, and end."""
        _say(f"{NAME}: {' '.join(message.split())}; {NAME} --help shows what is accepted")
        sys.exit(_INPUT)


def _seconds(least: float, most: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = float("nan")
        if not least <= seconds <= most:
            raise argparse.ArgumentTypeError(f"{text!r}; accepted: seconds from {least:g} to {most:g}")
        return seconds

    return read


def _user(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= owner.MOST_USERS):
        raise argparse.ArgumentTypeError(f"{text!r}; accepted: the number of the user, from 0")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line of `dprec-device`, where it serves."""
    made = _Parser(NAME, description=SUMMARY, epilog=_OTHERS, allow_abbrev=False)
    made.add_argument("--version", action="version", version=f"{NAME} {dprec.__version__}")
    made.add_argument("folders", type=Path, nargs="+", metavar="DIR", help=HELP["folders"])
    made.add_argument("--superlink", required=True, metavar="HOST:PORT", help=HELP["superlink"])
    made.add_argument("--ca", required=True, type=Path, metavar="FILE", help=HELP["ca"])
    interval = _seconds(SHORTEST_INTERVAL, LONGEST_INTERVAL)
    answers = _seconds(SOONEST_ANSWER, LATEST_ANSWER)
    made.add_argument("--interval", type=interval, default=INTERVAL, metavar="S", help=HELP["interval"])
    made.add_argument("--answer-after", type=answers, metavar="S", help=HELP["answer_after"])
    made.add_argument("--once", action="store_true", help=HELP["once"])
    made.add_argument("--seeded", action="store_true", help=HELP["seeded"])
    return made


def join_parser() -> argparse.ArgumentParser:
    """Return what reads the words after `dprec-device join`."""
    made, says = _Parser(f"{NAME} join", description=owner.JOIN, allow_abbrev=False), owner.HELP
    made.add_argument("invitation", type=Path, metavar="INVITATION", help=says["invitation"])
    made.add_argument("ratings", type=Path, metavar="RATINGS", help=says["ratings"])
    made.add_argument("folder", type=Path, metavar="DIR", help=says["folder"])
    made.add_argument("--user", required=True, type=_user, metavar="N", help=says["user"])
    made.add_argument(
        "--class", action="append", default=[], dest="classes", metavar="M:C", help=says["classes"]
    )
    return made


def rotate_parser() -> argparse.ArgumentParser:
    """Return what reads the words after `dprec-device rotate`."""
    made = _Parser(f"{NAME} rotate", description=owner.ROTATE, allow_abbrev=False)
    made.add_argument("folder", type=Path, metavar="DIR", help=owner.HELP["folder"])
    return made


def read(arguments: Sequence[str]) -> Serving | owner.Joining | owner.Rotating:
    """Return what the words after `dprec-device` ask for; exits with code 2 where they cannot be used."""
    first, rest = arguments[:1], arguments[1:]
    if first == ["join"]:
        return owner.Joining(**vars(join_parser().parse_args(rest)))
    if first == ["rotate"]:
        return owner.Rotating(**vars(rotate_parser().parse_args(rest)))
    return Serving(**vars(parser().parse_args(rest if first == ["serve"] else arguments)))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `dprec-device`, and exit: 0 done, 1 a device could not be served, 2 the input cannot be used."""
    command = read(sys.argv[1:] if arguments is None else list(arguments))
    try:
        command.run()
        code = _DONE
    except InputError as error:
        _say(f"{NAME}: {error}")
        code = _INPUT
    except RunError as error:
        _say(f"{NAME}: {error}")
        code = _FAILED
    except OSError as error:  # of what else of the machine a device needs
        _say(f"{NAME}: {RunError(str(error))}")
        code = _FAILED
    except KeyboardInterrupt:
        _say(f"{NAME}: interrupted")
        code = _INTERRUPTED
    sys.exit(code)
