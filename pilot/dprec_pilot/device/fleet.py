"""The connection of devices to Flower's SuperLink: all that dprec uses of Flower's own node.

It replaces a SuperNode and runs no code of the server. No answer is read beyond a bound, so a server cannot
fill the memory of a device. The imports are internal: Flower's version is pinned.
"""

import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeAlias, TypeVar

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Message
from flwr.app.message import make_message, remove_content_from_message
from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_HEADER, TIMESTAMP_TOLERANCE
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto import fleet_pb2, message_pb2
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore import constant
from flwr.supercore.inflatable import inflatable_object as objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message
from flwr.supercore.version import package_name, package_version
from flwr.supernode.fleet_http_client import FleetHttpClient

from dprec.errors import InputError
from dprec.exchange import Refusal, RefusalCode

LARGEST_BODY = 64 << 20
"""Bytes of the largest answer that is read."""


class TooLargeError(httpx.TransportError):
    """An answer that is larger than a device reads, or compressed, so that nobody knows how large it is."""


class BoundedTransport(httpx.HTTPTransport):
    """Reads no answer beyond `LARGEST_BODY`, from those whose certificates are trusted."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        super().__init__(verify=verify)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        request.headers["accept-encoding"] = "identity"
        response = super().handle_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            response.close()
            raise TooLargeError("a compressed answer")
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > LARGEST_BODY:
                raise TooLargeError(f"an answer of more than {LARGEST_BODY} bytes")
            yield chunk

    def close(self) -> None:
        self._stream.close()


_SECONDS = 30.0
"""Longest wait for the server to go on with an answer."""

_PASSING = frozenset({429, 502, 503, 504})
"""What proxies and servers answer that have too much to do. With 500, a SuperLink refuses a reply in a run
that it has forgotten."""

_PAUSES = tuple(0.05 * 2**attempt for attempt in range(8))
"""Seconds to wait for the part of a message that is not there yet, each time; 13 s in all."""

_MOST_OBJECTS = 3
"""Objects of a request: the message, its records, and one record."""

_OBJECTS = frozenset({"Message", "RecordDict", "ConfigRecord"})
"""What a request consists of."""

AnswerT = TypeVar("AnswerT")

NodeKey: TypeAlias = ec.EllipticCurvePrivateKey
"""The key by which the server knows a device."""


_EXPIRED, _NOT_YET_VALID, _OTHER_HOST, _OTHER_ADDRESS = 10, 9, 62, 64
"""Why OpenSSL does not accept a certificate that the right authority has signed: its X509_V_ERR codes."""


class ServerAwayError(Exception):
    """The server does not answer, or cannot at the moment; later it may."""


class NotAdmittedError(Exception):
    """The server does not take the device for one that is registered."""


class UnknownKeyError(NotAdmittedError):
    """The server knows nobody by the key of the device."""


class _RefusedError(NotAdmittedError):
    """Another answer that is none, and its status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the server refuses (status {status})")
        self.status = status


_VERSION: Mapping[str, str] = {
    constant.FLWR_PACKAGE_NAME_METADATA_KEY: package_name,
    constant.FLWR_PACKAGE_VERSION_METADATA_KEY: package_version,
    constant.FLWR_COMPONENT_NAME_METADATA_KEY: "SuperNode",
}
"""What a request says of the version of Flower. Flower's own way to do so imports a web server, and ends the
process if a server asks for it.
"""


class Fleet:
    """A connection to a SuperLink at HOST:PORT, for the devices of one process.

    ``ca``: the certificate that the server's has to be signed with. Raises InputError when it cannot be read.

    A server of another authority is a mistake at first, and raises InputError. Once the server has been
    reached, somebody is between it and the devices, who may go again: then it counts as away.
    """

    def __init__(self, address: str, ca: Path) -> None:
        self.address, self._ca = address, ca
        self._reached = False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cafile=ca)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            raise InputError(str(ca), reason, "the certificate of the server's authority, as PEM") from None
        self._key: NodeKey | None = None
        self._client = FleetHttpClient(f"https://{address}", verify=context)
        self._client.close()
        self._client._client = httpx.Client(
            transport=BoundedTransport(context), timeout=_SECONDS, event_hooks={"request": [self._sign]}
        )

    def _sign(self, request: httpx.Request) -> None:
        """Say of a request which device makes it, as a SuperNode would: a process has one connection."""
        assert self._key is not None
        now = datetime.now(UTC).isoformat()
        public, signature = public_key_to_bytes(self._key.public_key()), sign_message(self._key, now.encode())
        request.headers[constant.FLEET_HTTP_PUBLIC_KEY_HEADER] = b64encode(public).decode()
        request.headers[TIMESTAMP_HEADER] = now
        request.headers[constant.FLEET_HTTP_SIGNATURE_HEADER] = b64encode(signature).decode()
        request.headers.update(_VERSION)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def activate(self, key: NodeKey, interval: float) -> int:
        """Take a device online until two intervals pass without a heartbeat; return its number.

        Raises UnknownKeyError when the server knows nobody by its key.
        """
        request = fleet_pb2.ActivateNodeRequest(
            public_key=public_key_to_bytes(key.public_key()), heartbeat_interval=interval
        )
        try:
            return int(self._call(key, self._client.ActivateNode, request).node_id)
        except _RefusedError as error:
            if error.status != httpx.codes.PRECONDITION_FAILED:
                raise
            # So a SuperLink answers for a key that is not registered, and for a device that is online.
            reason = "the server does not know the key of this device, or takes it for one that is online"
            raise UnknownKeyError(reason) from None

    def heartbeat(self, key: NodeKey, node_id: int, interval: float) -> None:
        """Take a device online, or keep it online, for some time; see `activate`."""
        request = SendNodeHeartbeatRequest(node=Node(node_id=node_id), heartbeat_interval=interval)
        if not self._call(key, self._client.SendNodeHeartbeat, request).success:
            raise NotAdmittedError("the server does not know this device")

    def deactivate(self, key: NodeKey, node_id: int) -> None:
        """Take a device offline."""
        self._call(key, self._client.DeactivateNode, fleet_pb2.DeactivateNodeRequest(node_id=node_id))

    def pull(self, key: NodeKey, node_id: int, largest: int) -> tuple[Message, Refusal | None] | None:
        """Return the next message that waits for a device, if there is one.

        One that is larger, or no request of dprec, comes without content, with the refusal to answer it.
        """
        node = Node(node_id=node_id)
        answer = self._call(key, self._client.PullMessages, fleet_pb2.PullMessagesRequest(node=node))
        if not answer.messages_list or not answer.message_object_trees:
            return None
        try:
            envelope = message_from_proto(answer.messages_list[0])
        except Exception as error:  # whatever the server sent, the device goes on
            raise ServerAwayError(f"a message that cannot be read ({type(error).__name__})") from None
        try:
            content = self._content(key, node, envelope, answer.message_object_trees[0], largest)
        except Refusal as refusal:
            return envelope, refusal
        message = make_message(metadata=envelope.metadata, content=content.content)
        confirmed = message_pb2.ConfirmMessageReceivedRequest(
            node=node, run_id=envelope.metadata.run_id, message_object_id=envelope.metadata.message_id
        )
        self._call(key, self._client.ConfirmMessageReceived, confirmed)
        return message, None

    def _content(
        self, key: NodeKey, node: Node, envelope: Message, tree: message_pb2.ObjectTree, largest: int
    ) -> Message:
        """Return a message from its objects, none of which is read unless all may be."""
        identifiers = list(dict.fromkeys(part.object_id for part in objects.iterate_object_tree(tree)))
        contents: dict[str, bytes] = {}
        if len(identifiers) > _MOST_OBJECTS:
            raise Refusal(RefusalCode.MALFORMED_REQUEST, f"a message of {len(identifiers)} objects")
        for identifier in identifiers:
            contents[identifier] = self._object(key, node, envelope.metadata.run_id, identifier)
            if sum(map(len, contents.values())) > min(largest, LARGEST_BODY):
                raise Refusal(RefusalCode.MALFORMED_REQUEST, f"a message of more than {largest} bytes")
        try:
            return _inflated(tree.object_id, contents)
        except Exception as error:  # whatever the server sent, the device goes on
            reason = f"a message that cannot be read ({type(error).__name__})"
            known = error if isinstance(error, Refusal) else Refusal(RefusalCode.MALFORMED_REQUEST, reason)
            raise known from None

    def _object(self, key: NodeKey, node: Node, run: int, identifier: str) -> bytes:
        """Return an object of a message; its server may still be sending it to the SuperLink."""
        request = message_pb2.PullObjectRequest(node=node, run_id=run, object_id=identifier)
        for pause in _PAUSES:
            answer = self._call(key, self._client.PullObject, request)
            if not answer.object_found or answer.object_available:
                break
            time.sleep(pause)
        if not answer.object_found or not answer.object_available:
            raise Refusal(RefusalCode.MALFORMED_REQUEST, "a message with a part missing")
        return bytes(answer.object_content)

    def push(self, key: NodeKey, node_id: int, reply: Message) -> None:
        """Send a reply, which is dated by when it leaves: how long it took depends on the profile."""
        times, now = reply.metadata, time.time()
        # When it expires stays the same.
        times.created_at, times.ttl = now, times.created_at + times.ttl - now
        reply.metadata.__dict__["_message_id"] = reply.object_id
        parts = objects.get_all_nested_objects(reply)
        envelope = remove_content_from_message(reply) if reply.has_content() else reply
        node = Node(node_id=node_id)
        request = fleet_pb2.PushMessagesRequest(
            node=node,
            messages_list=[message_to_proto(envelope)],
            message_object_trees=[objects.get_object_tree(reply)],
            clientapp_runtime_list=[0.0],
        )
        answer = self._call(key, self._client.PushMessages, request)
        for identifier in answer.objects_to_push:
            if identifier not in parts:
                raise ServerAwayError("an answer that asks for a part of another reply")
            part = message_pb2.PushObjectRequest(
                node=node,
                run_id=reply.metadata.run_id,
                session_id=answer.session_id,
                object_id=identifier,
                object_content=parts[identifier].deflate(),
            )
            self._call(key, self._client.PushObject, part)

    def _call(self, key: NodeKey, method: Callable[..., AnswerT], request: object) -> AnswerT:
        """Make a request in the name of a device; whatever goes wrong is one of this module's errors."""
        self._key = key
        try:
            answer = method(request)
            self._reached = True
            return answer
        except httpx.HTTPStatusError as error:
            self._reached = True
            raise self._refused(error.response) from None
        except TooLargeError as error:
            raise ServerAwayError(f"refused {error}") from None
        except httpx.TransportError as error:
            if (refused := certificate_error(error)) is not None:
                raise self._untrusted(refused) from None
            raise ServerAwayError(str(error) or type(error).__name__) from None
        except (ValueError, KeyError, OverflowError) as error:
            raise ServerAwayError(f"an answer that cannot be read ({type(error).__name__})") from None

    def _untrusted(self, error: ssl.SSLCertVerificationError) -> Exception:
        """Return what a certificate that was not accepted means: a date and a host may be mended."""
        clock = f"by this clock, it is {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        host = self.address.rpartition(":")[0]
        reasons = {
            _EXPIRED: f"has expired; {clock}",
            _NOT_YET_VALID: f"is not valid yet; {clock}",
            _OTHER_HOST: f"is not for {host}, but for another name",
            _OTHER_ADDRESS: f"is not for {host}, but for another address",
        }
        if (reason := reasons.get(error.verify_code)) is not None:
            return ServerAwayError(f"its certificate {reason}")
        if self._reached:
            return ServerAwayError("its certificate is now of another authority: somebody else answers")
        found = f"not the authority of {self.address} ({error.verify_message})"
        return InputError(str(self._ca), found, "the certificate of the server's authority")

    def _refused(self, response: httpx.Response) -> Exception:
        status = response.status_code
        if status == httpx.codes.UNAUTHORIZED:
            ahead = 0.0  # if the server does not say
            with suppress(ValueError, TypeError, OverflowError):
                date = parsedate_to_datetime(response.headers.get("date", ""))
                ahead = (date - datetime.now(UTC)).total_seconds()
            if not -SYSTEM_TIME_TOLERANCE < ahead < TIMESTAMP_TOLERANCE:
                direction = "behind" if ahead > 0 else "ahead of"
                return NotAdmittedError(f"this clock is {abs(ahead):.0f} s {direction} the server's")
            return UnknownKeyError("the server does not know the key of this device")
        if status in _PASSING:
            return ServerAwayError(f"status {status}")
        return _RefusedError(status)


def _inflated(identifier: str, contents: dict[str, bytes]) -> Message:
    for named, content in contents.items():
        kind = objects.get_object_type_from_object_content(content)
        if kind not in _OBJECTS:
            raise Refusal(RefusalCode.MALFORMED_REQUEST, f"a message with a part of type {kind!r}")
        if objects.get_object_id(content) != named:
            raise Refusal(RefusalCode.MALFORMED_REQUEST, "a message with a part that is another")
    message = inflate_object_from_contents(identifier, contents)
    if not isinstance(message, Message) or not message.has_content():
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "no message with content")
    return message


def certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Return why a certificate was not accepted, if that is what an error comes from."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error
