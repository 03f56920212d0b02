"""A SuperLink without a network: what Flower's would do with the requests of devices, and what it might."""

from base64 import b64decode
from collections.abc import Callable

import httpx
from flwr.app import Message
from flwr.app.message import remove_content_from_message
from flwr.common.constant import TIMESTAMP_HEADER
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto import fleet_pb2, heartbeat_pb2, message_pb2
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.primitives.asymmetric import bytes_to_public_key, public_key_to_bytes, verify_signature

NODE = 2**63 + 5
"""Wider than the numbers of Flower's records."""


class FakeSuperLink(httpx.BaseTransport):
    """Answers the requests of one device, whose key is registered by its first signature.

    Where keys are `known`, no others are, and the device has the number `node`.

    `faults` are called in turn, each with a request and in place of an answer, before anything else.
    """

    def __init__(self) -> None:
        self.waiting: list[Message] = []
        self.replies: list[Message] = []
        self.paths: list[str] = []
        self.intervals: list[float] = []
        self.faults: list[Callable[[httpx.Request], httpx.Response]] = []
        self.status: dict[str, int] = {}
        self.known: set[bytes] | None = None
        self.node = NODE
        self.objects: dict[str, bytes] = {}
        self.tree: message_pb2.ObjectTree | None = None
        self._pushed: dict[str, bytes] = {}
        self._wanted: list[str] = []

    def put(self, message: Message) -> None:
        """Let a message wait for the device."""
        message.metadata.__dict__["_dst_node_id"] = NODE
        message.metadata.__dict__["_message_id"] = message.object_id
        self.objects.update({name: part.deflate() for name, part in get_all_nested_objects(message).items()})
        self.waiting.append(message)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request, after checking its signature."""
        key = bytes_to_public_key(b64decode(request.headers[FLEET_HTTP_PUBLIC_KEY_HEADER]))
        signature = b64decode(request.headers[FLEET_HTTP_SIGNATURE_HEADER])
        assert verify_signature(key, request.headers[TIMESTAMP_HEADER].encode(), signature)
        path = request.url.path.rpartition("/")[2]
        self.paths.append(path)
        if self.faults:
            return self.faults.pop(0)(request)
        if path in self.status:
            return httpx.Response(self.status[path], request=request)
        if self.known is not None and public_key_to_bytes(key) not in self.known:
            return httpx.Response(412 if path == "activate-node" else 401, request=request)
        answer = getattr(self, f"_{path.replace('-', '_')}")(request.read())
        return httpx.Response(200, content=answer.SerializeToString(), request=request)

    def _activate_node(self, data: bytes) -> fleet_pb2.ActivateNodeResponse:
        self.intervals.append(fleet_pb2.ActivateNodeRequest.FromString(data).heartbeat_interval)
        return fleet_pb2.ActivateNodeResponse(node_id=self.node)

    def _send_node_heartbeat(self, data: bytes) -> heartbeat_pb2.SendNodeHeartbeatResponse:
        self.intervals.append(heartbeat_pb2.SendNodeHeartbeatRequest.FromString(data).heartbeat_interval)
        return heartbeat_pb2.SendNodeHeartbeatResponse(success=True)

    def _deactivate_node(self, data: bytes) -> fleet_pb2.DeactivateNodeResponse:
        return fleet_pb2.DeactivateNodeResponse()

    def _pull_messages(self, data: bytes) -> fleet_pb2.PullMessagesResponse:
        if not self.waiting:
            return fleet_pb2.PullMessagesResponse()
        message = self.waiting.pop(0)
        tree = self.tree or get_object_tree(message)
        envelope = message_to_proto(remove_content_from_message(message))
        return fleet_pb2.PullMessagesResponse(messages_list=[envelope], message_object_trees=[tree])

    def _pull_object(self, data: bytes) -> message_pb2.PullObjectResponse:
        content = self.objects.get(message_pb2.PullObjectRequest.FromString(data).object_id)
        found = content is not None
        return message_pb2.PullObjectResponse(
            object_found=found, object_available=found, object_content=content
        )

    def _confirm_message_received(self, data: bytes) -> message_pb2.ConfirmMessageReceivedResponse:
        return message_pb2.ConfirmMessageReceivedResponse()

    def _push_messages(self, data: bytes) -> fleet_pb2.PushMessagesResponse:
        request = fleet_pb2.PushMessagesRequest.FromString(data)
        assert list(request.clientapp_runtime_list) == [0.0]
        envelope = message_from_proto(request.messages_list[0])
        self._pushed = {}
        self.replies.append(envelope)
        tree = request.message_object_trees[0]
        self._wanted = [tree.object_id, *_descendants(tree)]
        return fleet_pb2.PushMessagesResponse(objects_to_push=self._wanted, session_id="1")

    def _push_object(self, data: bytes) -> message_pb2.PushObjectResponse:
        request = message_pb2.PushObjectRequest.FromString(data)
        self._pushed[request.object_id] = request.object_content
        if set(self._wanted) == set(self._pushed):
            whole = inflate_object_from_contents(self._wanted[0], dict(self._pushed))
            assert isinstance(whole, Message)
            self.replies[-1] = whole
        return message_pb2.PushObjectResponse(stored=True)


def _descendants(tree: message_pb2.ObjectTree) -> list[str]:
    return [name for child in tree.children for name in (child.object_id, *_descendants(child))]
