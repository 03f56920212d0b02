"""Serves devices: takes them online, fetches what waits for them, answers it, and sends the answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from flwr.app import Message

from clients.device.device import LOG, Device
from clients.device.fleet import Fleet, NodeKey, NotAdmittedError, ServerAwayError, error_reply
from dprec.errors import RunError

LONGEST_ONLINE = 1800.0
"""Seconds between heartbeats at most, by Flower's rule; a device that wakes and leaves asks for as much."""

_SHORTEST_ONLINE = 30.0
_VISIT_SECONDS = 0.25
"""How long a visit may take, before any has been made: on a slow machine, to a busy server."""

_HEARTBEAT_SHARE = 0.8
"""Share of the time between heartbeats after which the next one is sent."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds to wait for a server that is away: the first time, and after doubling again and again."""

_ATTEMPTS = 4
"""Attempts of a device that wakes and leaves."""


@dataclass(eq=False)
class Served:
    """A device that is served.

    Parameters
    ----------
    device : Device
    key : NodeKey
        By which the server knows it.
    heartbeat_due : float
        When the next heartbeat is, on the clock of `time.monotonic`.
    admitted_after : float
        When a device that was not admitted tries again.
    pause : float
        How long it then waits.
    """

    device: Device
    key: NodeKey
    heartbeat_due: float = 0.0
    admitted_after: float = 0.0
    pause: float = _FIRST_PAUSE


@dataclass(eq=False)
class Service:
    """Serves some devices through one connection.

    Parameters
    ----------
    fleet : Fleet
    served : sequence of Served
    stopped : threading.Event
        Set to end the service.
    """

    fleet: Fleet
    served: Sequence[Served]
    stopped: threading.Event

    def run(self, interval: float) -> None:
        """Visit the server for every device again and again, until the service is stopped.

        Parameters
        ----------
        interval : float
            Seconds from one visit to the next.

        Raises
        ------
        InputError
            When the server's certificate is not signed by the authority.
        """
        took, pause = _VISIT_SECONDS * len(self.served), _FIRST_PAUSE
        try:
            while not self.stopped.is_set():
                started = time.monotonic()
                # The devices take turns: each has to stay online until all others have had theirs.
                online = min(max(2 * interval, 4 * took, _SHORTEST_ONLINE), LONGEST_ONLINE)
                try:
                    for one in self.served:
                        if not self.stopped.is_set():
                            self._visit_if_admitted(one, online)
                except ServerAwayError as error:
                    LOG.warning("%s: away (%s); next attempt in %g s", self.fleet.address, error, pause)
                    self.stopped.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                else:
                    pause = _FIRST_PAUSE
                    took = max(0.5 * took, time.monotonic() - started)
                    self.stopped.wait(max(0.0, interval - (time.monotonic() - started)))
        finally:
            self._leave()

    def run_once(self) -> None:
        """Visit the server once for every device: take it online, answer what waits, and go.

        The devices stay online, so that the server can leave them messages for the next visit.

        Raises
        ------
        RunError
            When a device could not be served; the log says why.
        InputError
            When the server's certificate is not signed by the authority.
        """
        failed = [one.device.name for one in self.served if not self._visited(one)]
        if failed:
            raise RunError(
                f"{len(failed)} of {len(self.served)} devices were not served: {', '.join(failed)}"
            )

    def _visited(self, one: Served) -> bool:
        """Visit the server for a device, again after a pause if it is away; return whether it was served."""
        pause = _FIRST_PAUSE
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.stopped.wait(pause)
                pause *= 2
            try:
                while self._visit(one, LONGEST_ONLINE):
                    pass
                return True
            except (NotAdmittedError, OSError) as error:
                LOG.error("%s: not served, %s", one.device.name, error)
                return False
            except ServerAwayError as error:
                LOG.warning("%s: %s is away (%s)", one.device.name, self.fleet.address, error)
        return False

    def _visit_if_admitted(self, one: Served, online: float) -> None:
        """Visit the server for a device, unless it was not admitted a short time ago."""
        now = time.monotonic()
        if now < one.admitted_after:
            return
        try:
            self._visit(one, online)
            one.pause = _FIRST_PAUSE
        except (NotAdmittedError, OSError) as error:
            LOG.error("%s: not served, %s; next attempt in %g s", one.device.name, error, one.pause)
            one.heartbeat_due, one.admitted_after = 0.0, now + one.pause
            one.pause = min(2 * one.pause, _LONGEST_PAUSE)

    def _visit(self, one: Served, online: float) -> bool:
        """Answer the next message that waits for a device, if there is one; return whether there was."""
        device, key = one.device, one.key
        if time.monotonic() >= one.heartbeat_due:
            self._go_online(one, online)
        self._send_pending(one)
        pulled = self.fleet.pull(key, device.node_id)
        if pulled is None:
            return False
        message, refusal = pulled
        if refusal is not None:
            LOG.warning("%s: refused a message: %s, %s", device.name, refusal.code.name, refusal.reason)
        reply = device.answer(message) if refusal is None else error_reply(message, refusal)
        self._send(one, reply)
        return True

    def _go_online(self, one: Served, online: float) -> None:
        device, key = one.device, one.key
        known = device.node_id != 0
        if known:
            try:
                self.fleet.heartbeat(key, device.node_id, online)
            except NotAdmittedError:
                # A server that has lost its memory gives a new number to a key that is registered again.
                known = False
        if not known:
            device.remember_node(self.fleet.activate(key, online))
            LOG.info("%s: online", device.name)
        one.heartbeat_due = time.monotonic() + _HEARTBEAT_SHARE * online

    def _send_pending(self, one: Served) -> None:
        """Send the reply that may not have arrived, if there is one."""
        if (pending := one.device.pending) is not None:
            self._send(one, pending)

    def _send(self, one: Served, reply: Message) -> None:
        """Send a reply, unless nobody waits for it any longer."""
        try:
            self.fleet.push(one.key, one.device.node_id, reply)
        except NotAdmittedError as error:
            run = reply.metadata.run_id
            LOG.warning("%s: a reply in run %d was not taken: %s", one.device.name, run, error)
        if one.device.pending is not None:
            one.device.forget_reply()

    def _leave(self) -> None:
        """Take the devices offline, as far as the server can be reached."""
        for one in self.served:
            try:
                if one.heartbeat_due:
                    self.fleet.deactivate(one.key, one.device.node_id)
            except NotAdmittedError:
                pass
            except ServerAwayError:
                return
