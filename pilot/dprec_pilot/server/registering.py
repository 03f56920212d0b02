"""What a SuperLink's control API is asked for: to register, take off and list keys of devices."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from flwr.common.constant import HEARTBEAT_PATIENCE
from flwr.proto.control_pb2 import (
    ListNodesRequest,
    ListRunsRequest,
    RegisterNodeRequest,
    UnregisterNodeRequest,
)
from flwr.proto.node_pb2 import NodeInfo
from flwr.supercore.constant import NodeStatus
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

from dprec.errors import RunError, one_line
from dprec_pilot.addresses import check_address
from dprec_pilot.device.fleet import certificate_error

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")


class NotRegisteredError(Exception):
    """Why the key of one device is not registered; others may be."""


def answer_of(method: Callable[[RequestT], AnswerT], request: RequestT) -> AnswerT:
    """Ask a SuperLink; raises RunError for an answer that is none of a SuperLink, and what httpx raises."""
    try:
        return method(request)
    except ValueError:
        raise RunError("what answers there is no SuperLink; another port, or a proxy?") from None


class Registry:
    """The keys that a SuperLink knows."""

    def __init__(self, client: ControlHttpClient) -> None:
        self._client = client
        self._listed = answer_of(client.ListNodes, ListNodesRequest()).nodes_info
        self._nodes = {node.public_key: int(node.node_id) for node in self._listed}
        self._off = {node.public_key for node in self._listed if node.status == NodeStatus.UNREGISTERED}

    def node_of(self, key: str) -> int | None:
        """Return the node id of a public key, a line of OpenSSH; None of one that is not registered."""
        public = _pem(key)
        return None if public in self._off else self._nodes.get(public)

    def register(self, key: str) -> int:
        """Register a public key, unless it is already; return its node id, or raise NotRegisteredError."""
        public = _pem(key)
        if public in self._off:
            reason = "its key was unregistered, and a SuperLink takes none back; the device needs another one"
            raise NotRegisteredError(f"{reason}: dprec-pilot rotate, then dprec-pilot admit")
        if public not in self._nodes:
            try:
                answer = answer_of(self._client.RegisterNode, RegisterNodeRequest(public_key=public))
            except httpx.HTTPStatusError as error:
                if error.response.status_code != httpx.codes.PRECONDITION_FAILED:
                    raise
                raise NotRegisteredError(
                    f"the SuperLink refuses its key: {_detail(error.response)}"
                ) from None
            self._nodes[public] = int(answer.node_id)
        return self._nodes[public]

    def seen(self) -> list["NodeSeen"]:
        """Return what is known of every device."""
        return [_seen(node) for node in self._listed]

    def unregister(self, node_id: int) -> None:
        """Take a device off, unless the SuperLink does not know it."""
        try:
            answer_of(self._client.UnregisterNode, UnregisterNodeRequest(node_id=node_id))
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise


@dataclass(frozen=True)
class NodeSeen:
    """A device as the SuperLink knows it."""

    node_id: int
    status: str
    """registered, online, offline or unregistered."""
    last_seen: datetime | None
    """When it was heard of; None for one that never came."""


def seen_nodes(address: str, certificate: bytes) -> list[NodeSeen]:
    """Return the devices that a SuperLink knows; see `registry`."""
    with registry(address, certificate) as registered:
        return registered.seen()


def seen_runs(address: str, certificate: bytes) -> list[int]:
    """Return the ids of the runs of a SuperLink, which deletes the messages of those that have ended."""
    with connected(address, certificate) as client:
        return [int(run) for run in answer_of(client.ListRuns, ListRunsRequest()).run_dict]


def _seen(node: NodeInfo) -> NodeSeen:
    """Return what is known of a node; one that was lost was seen up to two heartbeats before."""
    at = None
    with suppress(ValueError, OverflowError, OSError):  # of a time that is none
        if node.status == NodeStatus.ONLINE:
            beats = HEARTBEAT_PATIENCE * node.heartbeat_interval
            at = datetime.fromtimestamp(node.online_until - beats, UTC)
        elif node.last_deactivated_at:
            at = datetime.fromisoformat(node.last_deactivated_at)
    return NodeSeen(node.node_id, node.status, at)


@contextmanager
def registry(address: str, certificate: bytes) -> Iterator[Registry]:
    """Open the registry of a SuperLink.

    ``certificate``: of the authority that signed the SuperLink's, as PEM. Raises InputError when the address
    is none, and RunError when the SuperLink cannot be reached, or refuses.
    """
    with connected(address, certificate) as client:
        yield Registry(client)


@contextmanager
def connected(
    address: str, certificate: bytes, *, where: str = "--superlink", fails: str = "refuses"
) -> Iterator[ControlHttpClient]:
    """Open a connection to a SuperLink's control API; see `registry`.

    ``where``: what has named the address; ``fails``: what the SuperLink does when it answers with an error.
    """
    check_address(address, where)
    client = ControlHttpClient.from_server_address(
        server_address=address,
        insecure=False,
        root_certificates=certificate,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr CLI")],
    )
    try:
        yield client
    except httpx.ConnectError as error:
        raise RunError(f"the SuperLink at {address} cannot be reached: {_unreached(error)}") from None
    except (httpx.HTTPError, OSError) as error:
        raise RunError(f"the SuperLink at {address} {fails}: {one_line(error)}") from None
    finally:
        client.close()


def _unreached(error: httpx.ConnectError) -> str:
    """Say why a SuperLink cannot be reached, and what to do."""
    refused = certificate_error(error)
    if isinstance(refused, ssl.SSLCertVerificationError):
        return f"its certificate is refused, {refused.verify_message}; dprec-pilot renew makes another one"
    return f"{one_line(error)}; started, it takes some seconds until it answers"


def _detail(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"


def _pem(key: str) -> bytes:
    """Return a public key, a line of OpenSSH, as PEM; raises NotRegisteredError."""
    try:
        public = serialization.load_ssh_public_key(key.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise NotRegisteredError("its public key is none, as a line of OpenSSH") from None
    return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
