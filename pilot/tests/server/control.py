"""The control API of a SuperLink without a network: the keys that it knows, as Flower's keeps them."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key
from flwr.proto.control_pb2 import (
    ListNodesResponse,
    RegisterNodeResponse,
    UnregisterNodeResponse,
)
from flwr.proto.node_pb2 import NodeInfo

from dprec_pilot.server import superlink

FIRST_NODE = 100


def pem(key: str) -> bytes:
    public = load_ssh_public_key(key.encode())
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass
class FakeControl:
    """A SuperLink's registry."""

    nodes: list[NodeInfo] = field(default_factory=list)
    refused: set[bytes] = field(default_factory=set)
    """Keys that it does not take."""
    fails_after: int | None = None
    """Registrations after which it is gone."""

    def ListNodes(self, request: Any) -> ListNodesResponse:  # noqa: N802
        return ListNodesResponse(nodes_info=self.nodes)

    def RegisterNode(self, request: Any) -> RegisterNodeResponse:  # noqa: N802
        if self.fails_after is not None and len(self.nodes) >= self.fails_after:
            raise httpx.ReadError("gone")
        if request.public_key in {node.public_key for node in self.nodes} | self.refused:
            raise _status(412, '{"code": 23, "detail": "Public key already in use."}')
        node = NodeInfo(
            node_id=FIRST_NODE + len(self.nodes), public_key=request.public_key, status="registered"
        )
        self.nodes.append(node)
        return RegisterNodeResponse(node_id=node.node_id)

    def UnregisterNode(self, request: Any) -> UnregisterNodeResponse:  # noqa: N802
        with suppress(StopIteration):
            found = next(
                node
                for node in self.nodes
                if node.node_id == request.node_id and node.status != "unregistered"
            )
            found.status = "unregistered"
            return UnregisterNodeResponse()
        raise _status(404, '{"code": 24, "detail": "Node ID not found for account."}')

    def status_of(self, key: str) -> str | None:
        """Return Flower's word for a key; None of one that it has never seen."""
        return next((node.status for node in self.nodes if node.public_key == pem(key)), None)

    def close(self) -> None: ...


def _status(status: int, body: str) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "https://superlink.test/v1/control")
    return httpx.HTTPStatusError(
        "refused", request=request, response=httpx.Response(status, text=body, request=request)
    )


def installed(monkeypatch: pytest.MonkeyPatch) -> FakeControl:
    """Let every SuperLink be a new one of these."""
    made = FakeControl()
    monkeypatch.setattr(superlink.ControlHttpClient, "from_server_address", lambda **_: made)
    return made
