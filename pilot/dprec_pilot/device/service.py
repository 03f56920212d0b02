"""Serves devices: takes them online, fetches what waits for them, answers it, and sends the answers.

How long an answer takes to compute depends on the profile, so none leaves as soon as it is ready: what was
fetched together is answered a fixed time later (`Service.answer_after`). What a device does for its user
alone is done after that, in a thread for which nothing that the server sees has to wait.
"""

import logging
import math
import os
import signal
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from flwr.app import Message

from dprec.errors import InputError, RunError
from dprec.exchange import Refusal
from dprec_pilot.device.device import LOG, Device, error_reply
from dprec_pilot.device.fleet import Fleet, NodeKey, NotAdmittedError, ServerAwayError, UnknownKeyError
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.node_key import read_node_key
from dprec_pilot.files import check_address

INTERVAL, SHORTEST_INTERVAL, LONGEST_INTERVAL = 30.0, 0.05, 1800.0
"""Seconds from one visit to the next: by default, at least and at most."""

SOONEST_ANSWER, LATEST_ANSWER = 0.01, 600.0
"""Seconds from a question to its answer, at least and at most."""

_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""A device speaks to its server alone."""

LONGEST_ONLINE = 1800.0
"""Seconds between heartbeats at most, by Flower's rule; a device that wakes and leaves asks for as much."""

_SHORTEST_ONLINE = 30.0
_VISIT_SECONDS = 0.25
"""How long a visit may take, before any has been made: on a slow machine, to a busy server."""

_HEARTBEAT_SHARE = 0.8
"""Share of the time between heartbeats after which the next one is sent."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds to wait for a server that is away: the first time, and after doubling again and again."""

_ANSWER_AFTER, _ANSWER_AFTER_EACH = 0.2, 0.05
"""Seconds in which a process answers, and more for each device: several times what it takes on a laptop."""

_FORGOTTEN = "the server no longer knows the key of this device: it was removed, or is to be enrolled anew"

_MOST_VISITS, _ATTEMPTS = 1000, 4
"""Messages that a device that wakes and leaves answers at most, and its attempts to reach the server."""


@dataclass(eq=False)
class Served:
    """A device that is served."""

    device: Device
    key: NodeKey
    """By which the server knows it."""
    next_key: NodeKey | None = None
    """The one that takes its place once the server knows it, if there is one."""
    heartbeat_due: float = 0.0
    """When the next heartbeat is, on the clock of `time.monotonic`."""
    admitted_after: float = 0.0
    """When a device that was not admitted tries again."""
    pause: float = _FIRST_PAUSE
    """How long it then waits."""
    question: tuple[Message, Refusal | None] | None = None
    """What was fetched and is not answered yet; see `Fleet.pull`."""
    reply: Message | None = None
    """The answer, until it has left."""
    work: Callable[[], None] | None = None
    """What the device has to do for its user, until it begins; newer work takes the place of older."""

    def work_latest(self) -> None:
        """Do what the device has to do for its user, unless newer work has been done already."""
        work, self.work = self.work, None
        if work is not None:
            work()


@dataclass(eq=False)
class Service:
    """Serves some devices through one connection."""

    fleet: Fleet
    served: Sequence[Served]
    stopped: threading.Event
    """Set to end the service."""
    answer_after: float | None = None
    """Seconds from when messages were fetched to when all their answers leave. By default 0.2, and 0.05 more
    for each device. Where answering takes longer, answers leave after the next multiple.
    """
    _period: float = field(init=False)
    _worker: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        usual = _ANSWER_AFTER + _ANSWER_AFTER_EACH * len(self.served)
        self._period = usual if self.answer_after is None else self.answer_after
        self._worker = ThreadPoolExecutor(1, initializer=_give_way)

    def run(self, interval: float) -> None:
        """Visit the server for every device every ``interval`` seconds, until the service is stopped.

        Raises InputError when the server's certificate is not signed by the authority.
        """
        took, pause = _VISIT_SECONDS * len(self.served), _FIRST_PAUSE
        try:
            while not self.stopped.is_set():
                started = time.monotonic()
                # The devices take turns: each has to stay online until all others have had theirs.
                online = min(max(2 * interval, 4 * took, _SHORTEST_ONLINE), LONGEST_ONLINE)
                try:
                    self._visit_all(online)
                except ServerAwayError as error:
                    LOG.warning("%s: away (%s); next attempt in %g s", self.fleet.address, error, pause)
                    self.stopped.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                else:
                    pause = _FIRST_PAUSE
                    took = max(0.5 * took, time.monotonic() - started)
                    self.stopped.wait(max(0.0, interval - (time.monotonic() - started)))
        finally:
            with suppress(ServerAwayError):
                for one in self.served:
                    if one.heartbeat_due:
                        with suppress(NotAdmittedError):
                            self.fleet.deactivate(one.key, one.device.node_id)
            self._end()

    def run_once(self) -> None:
        """Visit the server once for every device: take it online, answer what waits, and go.

        The devices stay online, so that the server can leave them messages for the next visit. Raises
        RunError when a device could not be served; the log says why. Raises InputError when the server's
        certificate is not signed by the authority.
        """
        waiting, failed = list(self.served), []
        try:
            for _ in range(_MOST_VISITS):
                reached = [
                    one for one in waiting if self._tried(one, partial(self._fetch, one, LONGEST_ONLINE))
                ]
                asked = [one for one in reached if one.question is not None]
                self._answer()
                told = [one for one in asked if self._tried(one, partial(self._deliver, one))]
                failed += [one for one in waiting if one not in reached or (one in asked and one not in told)]
                waiting = told
                if not waiting:
                    break
                self._rest(time.monotonic() + self._period)
        finally:
            self._end()
        if failed:
            names = ", ".join(one.device.name for one in failed)
            raise RunError(f"{len(failed)} of {len(self.served)} devices were not served: {names}")

    def _tried(self, one: Served, act: Callable[[], None]) -> bool:
        """Do something for a device, again after a pause if the server is away; return whether it is done."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.stopped.wait(_FIRST_PAUSE * 2 ** (attempt - 1))
            try:
                return self._done(one, act)
            except ServerAwayError as error:
                LOG.warning("%s: %s is away (%s)", one.device.name, self.fleet.address, error)
        return False

    def _done(self, one: Served, act: Callable[[], None], what_then: str = "") -> bool:
        """Do something for a device; return whether it is done, after telling its owner if not.

        What concerns all devices rises: that the server is away, or is another one.
        """
        try:
            act()
            return True
        except (ServerAwayError, InputError):
            raise
        except (NotAdmittedError, OSError) as error:
            LOG.error("%s: not served, %s%s", one.device.name, error, what_then)
        except Exception:  # whatever a server has sent, the other devices are served
            LOG.exception("%s: not served%s", one.device.name, what_then)
        return False

    def _visit_all(self, online: float) -> None:
        """Answer the next message that waits for each device that is admitted, also if the server goes."""
        try:
            for one in self.served:
                if not self.stopped.is_set():
                    self._if_admitted(one, partial(self._fetch, one, online))
        finally:
            self._answer()
        for one in self.served:
            if one.reply is not None:
                self._if_admitted(one, partial(self._deliver, one))

    def _if_admitted(self, one: Served, act: Callable[[], None]) -> None:
        """Do something for a device, unless it was not admitted a short time ago."""
        now = time.monotonic()
        if now < one.admitted_after:
            return
        if self._done(one, act, f"; next attempt in {one.pause:g} s"):
            one.pause = _FIRST_PAUSE
            return
        one.heartbeat_due, one.admitted_after = 0.0, now + one.pause
        one.pause = min(2 * one.pause, _LONGEST_PAUSE)

    def _fetch(self, one: Served, online: float) -> None:
        """Take a device online if that is due, send what is left to send, and fetch its next message."""
        if time.monotonic() >= one.heartbeat_due:
            self._go_online(one, online)
        self._deliver(one)
        one.question = self.fleet.pull(one.key, one.device.node_id, one.device.largest_request)

    def _answer(self) -> None:
        """Answer what was fetched, and wait until the answers may leave."""
        asked = [(one, one.question) for one in self.served if one.question is not None]
        due = time.monotonic() + self._period
        for one, (message, refusal) in asked:
            one.question = None
            if refusal is None:
                one.reply = one.device.answer(message)
                continue
            text = "%s: refused a message: %s, %s"
            LOG.warning(text, one.device.name, refusal.code.name, refusal.reason)
            one.reply = error_reply(message, refusal.code)
        if asked:
            self._rest(due)

    def _rest(self, due: float) -> None:
        """Wait until a moment, or if that is past, until an integer of periods after it."""
        late = time.monotonic() - due
        if late > 0:
            due += math.ceil(late / self._period) * self._period
            text = (
                "answers took longer than %g s, which a server can see; from now on, all take twice as long: "
                "start with a larger --answer-after"
            )
            LOG.warning(text, self._period)
            self._period *= 2
        time.sleep(max(0.0, due - time.monotonic()))

    def _deliver(self, one: Served) -> None:
        """Send the reply of a device that has not left yet or may not have arrived, if there is one.

        A reply for which nobody waits any longer is dropped. Then the device may work for its user.
        """
        reply = one.reply or one.device.pending
        if reply is None:
            return
        try:
            self.fleet.push(one.key, one.device.node_id, reply)
        except NotAdmittedError as error:
            LOG.warning("%s: a reply was not taken: %s", one.device.name, error)
        one.reply = None
        if one.device.pending is not None:
            one.device.forget_reply()
        if (work := one.device.take_work()) is not None:
            one.work = work
            self._worker.submit(one.work_latest)

    def _end(self) -> None:
        """Close the connection, then wait for what the devices still do for their users."""
        self.fleet.close()
        self._worker.shutdown()

    def _go_online(self, one: Served, online: float) -> None:
        if not self._rotated(one, online):
            # A server that has lost its memory gives a new number to a key that is registered again.
            known = one.device.node_id != 0
            try:
                if known:
                    self.fleet.heartbeat(one.key, one.device.node_id, online)
            except NotAdmittedError:
                known = False
            if not known:
                # The server does not know it by its number: it has forgotten it, or never knew it.
                try:
                    one.device.remember_node(self.fleet.activate(one.key, online))
                except UnknownKeyError:
                    if one.device.node_id == 0:
                        raise
                    raise UnknownKeyError(_FORGOTTEN) from None
            if not known or not one.heartbeat_due:
                LOG.info("%s: online", one.device.name)
        one.heartbeat_due = time.monotonic() + _HEARTBEAT_SHARE * online

    def _rotated(self, one: Served, online: float) -> bool:
        """Take a device online by its next key, if it has one and the server knows it; return whether."""
        if one.next_key is None:
            return False
        try:
            node_id = self.fleet.activate(one.next_key, online)
        except NotAdmittedError:
            return False
        one.device.folder.take_next_node_key()
        one.key, one.next_key = one.next_key, None
        one.device.remember_node(node_id)
        LOG.info("%s: online, by its next key", one.device.name)
        return True


def _give_way() -> None:
    """Let what is answered go before what is predicted, where a thread can have a priority of its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


@contextmanager
def opened_devices(folders: Sequence[Path], *, seeded: bool) -> Iterator[tuple[list[Served], list[str]]]:
    """Open devices in folders, or folders of such, and let other processes have them afterwards.

    Yields those that can be served, and the names of the others, after telling their owner why.
    Raises InputError when a folder holds no device, or none is one that can be used and that is not in use.
    """
    paths = dict.fromkeys(device.absolute() for folder in folders for device in _devices_in(folder))
    faults: dict[str, InputError] = {}
    with ExitStack() as locks:
        served = []
        for path in paths:
            with ExitStack() as opening:
                try:
                    served.append(_opened(path, opening, seeded=seeded))
                except InputError as error:
                    faults[path.name] = error
                    continue
                locks.push(opening.pop_all())
        if not served:
            raise next(iter(faults.values()))
        for name, fault in faults.items():
            LOG.error("%s: not served, %s", name, fault)
        yield served, [*faults]


def _opened(path: Path, locks: ExitStack, *, seeded: bool) -> Served:
    """Open the device in a folder, which is kept from other processes; raises InputError."""
    folder = DeviceFolder(path)
    try:
        locks.enter_context(folder.locked())
        key, later = read_node_key(folder.node_key_file), folder.next_node_key_file
        following = read_node_key(later) if later.exists() else None
        return Served(Device(folder, seeded=seeded), key, following)
    except OSError as error:
        raise InputError(str(path), str(error.strerror), "a folder that can be read and written") from None


def _devices_in(folder: Path) -> list[Path]:
    """Return a folder if it is that of a device, or else those in it that are."""
    options = DeviceFolder(folder).options_file
    inside = (
        [folder] if options.exists() else sorted(path.parent for path in folder.glob(f"*/{options.name}"))
    )
    if not inside:
        accepted = "the folder of a device, or a folder of such folders"
        raise InputError(str(folder), "no device.json", accepted)
    return inside


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
        When no folder, or the certificate, the address or a time cannot be used; when a device could not be
        served once. Where only some folders can be used, InputError follows once the others were served once.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    check_address(superlink)
    for option, seconds, (least, most) in (
        ("--interval", interval, (SHORTEST_INTERVAL, LONGEST_INTERVAL)),
        ("--answer-after", answer_after, (SOONEST_ANSWER, LATEST_ANSWER)),
    ):
        if seconds is not None and not least <= seconds <= most:
            raise InputError(option, f"{seconds:g}", f"seconds from {least:g} to {most:g}")
    _log_to_standard_error()
    stopped = threading.Event()
    stop_at_termination(stopped)
    with opened_devices(folders, seeded=seeded) as (served, faulty):
        service = Service(Fleet(superlink, ca), served, stopped, answer_after)
        if seeded:
            line = "seeded: the noise of these devices follows from a seed and protects nobody"
            print(line, file=sys.stderr, flush=True)
        if once:
            _serve_once(service, faulty)
        else:
            service.run(interval)


def _serve_once(service: Service, faulty: Sequence[str]) -> None:
    """Serve devices once; then raise InputError if there are faulty ones, by name, that are not served."""
    try:
        service.run_once()
    except RunError as error:
        if not faulty:
            raise
        LOG.error("%s", error)
    if faulty:
        count = len(service.served) + len(faulty)
        found = f"{len(faulty)} of {count} devices not served, for reasons said above"
        raise InputError(", ".join(faulty), found, "folders of devices that can be used")


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
