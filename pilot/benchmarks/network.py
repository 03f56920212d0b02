"""The constants of `dprec/wire/traffic.py`: what requests between a device and a SuperLink cost on the wire.

    python benchmarks/network.py

Starts a SuperLink with TLS and SuperNode authentication. A device asks it through a proxy that counts bytes:
it goes online, polls, and answers messages of several sizes, with and without a record. What a message
costs beyond its own bytes is solved for a part per message and a part per object. The last lines compare the
model with what the proxy counted for messages of other sizes; the exit code is 1 if they differ by more than
5 %.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counting_proxy import Passed, counting_proxy
from flwr.app import ConfigRecord, Message, RecordDict
from superlink import SuperLink, started_superlink, write_app

from dprec.wire import WITH_RECORD, WITHOUT_RECORD, TrafficLedger, network_bytes
from dprec.wire.traffic import MEASURED, Contacts, NetworkConstants, Octets
from dprec_pilot.device.fleet import LARGEST_BODY, Fleet, NodeKey
from strategies.rounds import message_size

SOLVED = (None, 1_000)
"""Bytes of the records from which the constants are solved; None for a message without a record."""

COMPARED = (100, 20_000, 300_000)
"""Bytes of the records with which the model is compared."""

MOST_DIFFERENCE = 0.05
ONLINE_SECONDS = 1800.0
PATIENCE_SECONDS = 300.0

SERVER = f"""
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp

app = ServerApp()

@app.main()
def main(grid, context):
    (node,) = grid.get_node_ids()
    for size in {SOLVED + COMPARED}:
        record = {{}} if size is None else {{"request": ConfigRecord({{"factors": bytes(size)}})}}
        list(grid.send_and_receive([Message(RecordDict(record), node, "train", group_id="0" * 8)]))
"""


@dataclass(frozen=True)
class Exchange:
    """A message and its reply: their own bytes, and those that the proxy counted."""

    message: int
    reply: int
    received: Octets
    sent: Octets


class Device:
    """A device that asks through a proxy, one request at a time.

    Parameters
    ----------
    superlink : SuperLink
    passed : Passed
    """

    def __init__(self, superlink: SuperLink, passed: Passed) -> None:
        from cryptography.hazmat.primitives import serialization
        from flwr.supercore.primitives.asymmetric import generate_key_pairs

        private, public = generate_key_pairs()
        ssh = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        superlink.register("device", public.public_bytes(*ssh))
        pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        path = superlink.folder / "device.key"
        path.write_bytes(private.private_bytes(*pem))
        self._key, self._passed, self._node = NodeKey.read(path), passed, 0
        self._fleet = Fleet(f"127.0.0.1:{passed.port}", superlink.folder / "ca.crt")

    def counted(self, act: Callable[[], Any]) -> Octets:
        """Return the bytes that pass while something is done."""
        up, down = self._passed.up, self._passed.down
        act()
        time.sleep(0.2)
        return Octets(self._passed.up - up, self._passed.down - down)

    def join(self) -> None:
        """Go online for the first time."""
        self._node = self._fleet.activate(self._key, ONLINE_SECONDS)

    def beat(self) -> None:
        """Send a heartbeat."""
        self._fleet.heartbeat(self._key, self._node, ONLINE_SECONDS)

    def fetch(self) -> Message | None:
        """Return the message that waits, if there is one."""
        pulled = self._fleet.pull(self._key, self._node, LARGEST_BODY)
        return None if pulled is None else pulled[0]

    def exchange(self, size: int | None) -> Exchange:
        """Wait for a message, and send a reply whose record has as many bytes."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        found: list[Message | None] = [None]
        while (message := found[-1]) is None:
            if time.monotonic() > deadline:
                raise RuntimeError("no message came from the SuperLink; see superlink.log")
            received = self.counted(lambda: found.append(self.fetch()))
        content = RecordDict()
        if size is not None:
            content["reply"] = ConfigRecord({"first": 1, "reports": [bytes(size)]})
        reply = Message(content, reply_to=message)
        sent = self.counted(lambda: self._fleet.push(self._key, self._node, reply))
        return Exchange(message_size(message), message_size(reply), received, sent)


def measured(device: Device, run: Callable[[], None]) -> tuple[NetworkConstants, list[Exchange]]:
    """Measure the constants, and exchange the messages of a run with which they are compared."""
    device.join()
    beat = device.counted(device.beat)
    # By then the connection is given up, and the next request opens another one.
    time.sleep(MEASURED.kept_seconds + 1)
    anew = device.counted(device.beat)
    idle = device.counted(device.fetch)
    run()
    empty, whole, *compared = [device.exchange(size) for size in SOLVED + COMPARED]
    received = [_beyond(one.received, 0, one.message) for one in (empty, whole)]
    sent = [_beyond(one.sent, one.reply, 0) for one in (empty, whole)]
    pulled, pushed = _beyond(received[1], *received[0]), _beyond(sent[1], *sent[0])
    constants = NetworkConstants(
        handshake=_beyond(anew, *beat),
        poll=idle,
        heartbeat=beat,
        received=_beyond(received[0], *(WITHOUT_RECORD * cost for cost in pulled)),
        pulled=pulled,
        sent=_beyond(sent[0], *(WITHOUT_RECORD * cost for cost in pushed)),
        pushed=pushed,
        kept_seconds=MEASURED.kept_seconds,
        heartbeat_seconds=MEASURED.heartbeat_seconds,
    )
    return constants, compared


def _beyond(octets: Octets, up: float, down: float) -> Octets:
    """Return the bytes that remain without some."""
    return Octets(octets.up - up, octets.down - down)


def modelled(exchange: Exchange) -> Octets:
    """Return the bytes of an exchange by the model, on a connection that is open."""
    traffic = TrafficLedger(1)
    traffic.charge_downlink(slice(None), 0, exchange.message, objects=WITH_RECORD)
    traffic.charge_uplink(slice(None), 0, exchange.reply, objects=WITH_RECORD)
    up, down = network_bytes(traffic, Contacts(connections=0, polls=0, heartbeats=0))
    return Octets(float(up[0]), float(down[0]))


def metric() -> tuple[NetworkConstants, list[Exchange]]:
    """Start a SuperLink, a run and a device, and measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        app = write_app(folder / "app", SERVER)
        target = started_superlink(folder)
        with target as superlink, counting_proxy(("127.0.0.1", superlink.port)) as passed:
            device = Device(superlink, passed)
            return measured(device, lambda: superlink.flwr("run", str(app), "wire"))


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    constants, compared = metric()
    print(f"{'constant':<12}{'up':>8}{'down':>8}{'measured, up':>14}{'down':>8}")
    for name, there in vars(MEASURED).items():
        if isinstance(there, Octets):
            here = getattr(constants, name)
            print(f"{name:<12}{there.up:>8.0f}{there.down:>8.0f}{here.up:>14.0f}{here.down:>8.0f}")
    worst = 0.0
    for size, exchange in zip(COMPARED, compared, strict=True):
        counted = [exchange.received[way] + exchange.sent[way] for way in (0, 1)]
        off = [model / count - 1 for model, count in zip(modelled(exchange), counted, strict=True)]
        worst = max(worst, *map(abs, off))
        figures = f"{counted[0]:,.0f} up, {counted[1]:,.0f} down"
        print(f"record of {size:,} bytes: {figures}; the model differs by {off[0]:+.2%} and {off[1]:+.2%}")
    return int(worst > MOST_DIFFERENCE)


if __name__ == "__main__":
    sys.exit(main())
