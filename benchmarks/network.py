"""The constants of `dprec/wire/network.py`: what requests between a device and a SuperLink cost on the wire.

    python benchmarks/network.py

Starts a SuperLink with TLS and SuperNode authentication. A device asks it through a proxy that counts bytes:
it joins, polls and leaves, and answers messages of several sizes, with and without a record. What a message
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
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from counting_proxy import Passed, counting_proxy
from superlink import SuperLink, started_superlink

from dprec.wire.network import MEASURED, Contacts, NetworkConstants, Octets, network_bytes
from dprec.wire.traffic import WITH_RECORD, WITHOUT_RECORD, TrafficLedger

SOLVED = (None, 1_000)
"""Bytes of the records from which the constants are solved; None for a message without a record."""

COMPARED = (100, 20_000, 300_000)
"""Bytes of the records with which the model is compared."""

MOST_DIFFERENCE = 0.05
PATIENCE_SECONDS = 60.0

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

PROJECT = """
[project]
name = "wire"
version = "1.0.0"

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "dprec"

[tool.flwr.app.components]
serverapp = "wire_server:app"
clientapp = "wire_server:app"
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
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
        from flwr.supercore.primitives.asymmetric import generate_key_pairs

        self._superlink, self._passed = superlink, passed
        self._private, self._public = generate_key_pairs()
        superlink.register("device", self._public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
        self._client: Any = None
        self._node: Any = None

    def counted(self, act: Callable[[], Any]) -> Octets:
        """Return the bytes that pass while something is done."""
        up, down = self._passed.up, self._passed.down
        act()
        time.sleep(0.2)
        return Octets(self._passed.up - up, self._passed.down - down)

    def connect(self) -> None:
        """Use a connection of its own from the next request on."""
        from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
        from flwr.supernode.fleet_http_client import FleetHttpClient
        from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

        signed = NodeAuthHttpInterceptor(self._private, self._public)
        versioned = RuntimeVersionHttpInterceptor(component_name="SuperNode")
        address, certificate = f"127.0.0.1:{self._passed.port}", self._superlink.certificate
        self._client = FleetHttpClient.from_server_address(address, False, certificate, [versioned, signed])

    def join(self) -> None:
        """Join, without a heartbeat."""
        from flwr.proto.fleet_pb2 import ActivateNodeRequest
        from flwr.proto.node_pb2 import Node
        from flwr.supercore.primitives.asymmetric import public_key_to_bytes

        key = public_key_to_bytes(self._public)
        answer = self._client.ActivateNode(ActivateNodeRequest(public_key=key, heartbeat_interval=1800))
        self._node = Node(node_id=answer.node_id)

    def beat(self) -> None:
        """Send a heartbeat."""
        from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest

        self._client.SendNodeHeartbeat(SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=1800))

    def leave(self) -> None:
        """Leave; the connection stays."""
        from flwr.proto.fleet_pb2 import DeactivateNodeRequest

        self._client.DeactivateNode(DeactivateNodeRequest(node_id=self._node.node_id))

    def poll(self) -> Any:
        """Ask for a message."""
        from flwr.proto.fleet_pb2 import PullMessagesRequest

        return self._client.PullMessages(PullMessagesRequest(node=self._node))

    def exchange(self, size: int | None) -> Exchange:
        """Wait for a message, pull it, and push a reply whose record has as many bytes."""
        from strategies.envelope import message_size

        deadline = time.monotonic() + PATIENCE_SECONDS
        found: list[Any] = []
        while True:
            polled = self.counted(lambda: found.append(self.poll()))
            if found[-1].messages_list:
                break
            if time.monotonic() > deadline:
                raise RuntimeError("no message came from the SuperLink; see superlink.log")
        messages: list[Any] = []
        pulled = self.counted(lambda: messages.append(self._pull(found[-1])))
        sent = self.counted(lambda: messages.append(self._push(messages[0], size)))
        received = Octets(polled.up + pulled.up, polled.down + pulled.down)
        return Exchange(message_size(messages[0]), message_size(messages[1]), received, sent)

    def _pull(self, found: Any) -> Any:
        from flwr.common.serde import message_from_proto
        from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest
        from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
        from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

        metadata = message_from_proto(found.messages_list[0]).metadata
        at = {"node": self._node, "run_id": metadata.run_id}
        trees = iterate_object_tree(found.message_object_trees[0])
        requests = [PullObjectRequest(object_id=tree.object_id, **at) for tree in trees]
        contents = {each.object_id: self._client.PullObject(each).object_content for each in requests}
        identifier = metadata.message_id
        self._client.ConfirmMessageReceived(ConfirmMessageReceivedRequest(message_object_id=identifier, **at))
        message: Any = inflate_object_from_contents(identifier, contents)
        message.metadata.__dict__["_message_id"] = identifier
        return message

    def _push(self, message: Any, size: int | None) -> Any:
        from flwr.app import ConfigRecord, Message, RecordDict
        from flwr.app.message import remove_content_from_message
        from flwr.common.serde import message_to_proto
        from flwr.proto.fleet_pb2 import PushMessagesRequest
        from flwr.proto.message_pb2 import PushObjectRequest
        from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree

        content = RecordDict()
        if size is not None:
            content["reply"] = ConfigRecord({"first": 1, "reports": [bytes(size)]})
        reply = Message(content, reply_to=message)
        reply.metadata.__dict__["_message_id"] = reply.object_id
        pushed = self._client.PushMessages(
            PushMessagesRequest(
                node=self._node,
                messages_list=[message_to_proto(remove_content_from_message(reply))],
                message_object_trees=[get_object_tree(reply)],
                clientapp_runtime_list=[0.1],
            )
        )
        for identifier, nested in get_all_nested_objects(reply).items():
            if identifier in pushed.objects_to_push:
                self._client.PushObject(
                    PushObjectRequest(
                        node=self._node,
                        run_id=message.metadata.run_id,
                        object_id=identifier,
                        object_content=nested.deflate(),
                        session_id=pushed.session_id,
                    )
                )
        return reply


def measured(device: Device) -> tuple[NetworkConstants, list[Exchange]]:
    """Measure the constants, and exchange the messages with which they are compared."""
    device.connect()
    first = device.counted(device.join)
    left = device.counted(device.leave)
    again = device.counted(device.join)
    beat = device.counted(device.beat)
    idle = device.counted(device.poll)
    empty, whole, *compared = [device.exchange(size) for size in SOLVED + COMPARED]
    received = [_beyond(one.received, 0, one.message) for one in (empty, whole)]
    sent = [_beyond(one.sent, one.reply, 0) for one in (empty, whole)]
    pulled, pushed = _beyond(received[1], *received[0]), _beyond(sent[1], *sent[0])
    constants = NetworkConstants(
        handshake=_beyond(first, *again),
        enrolment=Octets(again.up + beat.up + left.up, again.down + beat.down + left.down),
        poll=idle,
        heartbeat=beat,
        received=_beyond(received[0], *(WITHOUT_RECORD * cost for cost in pulled)),
        pulled=pulled,
        sent=_beyond(sent[0], *(WITHOUT_RECORD * cost for cost in pushed)),
        pushed=pushed,
        kept_seconds=MEASURED.kept_seconds,
    )
    return constants, compared


def _beyond(octets: Octets, up: float, down: float) -> Octets:
    """Return the bytes that remain without some."""
    return Octets(octets.up - up, octets.down - down)


def modelled(exchange: Exchange) -> Octets:
    """Return the bytes of an exchange by the model."""
    traffic = TrafficLedger(1)
    traffic.charge_downlink(slice(None), 0, exchange.message, objects=WITH_RECORD)
    traffic.charge_uplink(slice(None), 0, exchange.reply, objects=WITH_RECORD)
    up, down = network_bytes(traffic, Contacts(visits=0, connections=0))
    return Octets(float(up[0]), float(down[0]))


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        app = folder / "app"
        app.mkdir()
        (app / "wire_server.py").write_text(SERVER)
        (app / "pyproject.toml").write_text(PROJECT)
        target = started_superlink(folder)
        with target as superlink, counting_proxy(("127.0.0.1", superlink.port)) as passed:
            device = Device(superlink, passed)
            superlink.flwr("run", str(app), "wire")
            constants, compared = measured(device)
    print(f"{'constant':<14}{'up':>8}{'down':>8}{'here, up':>12}{'here, down':>12}")
    for field in fields(NetworkConstants):
        if field.type != "Octets":
            continue
        here, there = getattr(constants, field.name), getattr(MEASURED, field.name)
        print(f"{field.name:<14}{there.up:>8.0f}{there.down:>8.0f}{here.up:>12.0f}{here.down:>12.0f}")
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
