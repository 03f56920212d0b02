"""A Flower grid without a network: the ClientApp is called in this process, one node after the other."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

_FIRST_NODE_ID = 1 << 63
"""Node ids are as wide as those that Flower draws."""


class LocalGrid(Grid):
    """The grid of one process.

    Parameters
    ----------
    app : ClientApp
    nodes : int
    """

    def __init__(self, app: ClientApp, nodes: int) -> None:
        self._app = app
        self._run = Run.create_empty(run_id=1)
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, SUPERLINK_NODE_ID
        self._contexts = {
            _FIRST_NODE_ID + partition: Context(
                run_id=1,
                node_id=_FIRST_NODE_ID + partition,
                node_config={"partition-id": partition, "num-partitions": nodes},
                state=RecordDict(),
                run_config={},
            )
            for partition in range(nodes)
        }
        self._replies: dict[str, Message] = {}

    def set_run(self, run: Run) -> None:
        """Set the run."""
        self._run = run

    @property
    def run(self) -> Run:
        """The run."""
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Create a message; Flower recommends its constructor instead."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of all nodes."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Answer each message at once and keep the reply until it is pulled."""
        identifiers = []
        for message in messages:
            identifier = stamped(message).metadata.message_id
            self._replies[identifier] = self._answer(message)
            identifiers.append(identifier)
        return identifiers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies to the given messages, once."""
        return [self._replies.pop(message) for message in message_ids if message in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and return the replies."""
        return self.pull_messages(self.push_messages(messages))

    def _answer(self, message: Message) -> Message:
        try:
            reply = self._app(message, self._contexts[message.metadata.dst_node_id])
        except Exception as error:  # a device that fails is an error reply, as in Flower's runtime
            reason = f"{type(error).__name__}: {error}"
            reply = Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason), reply_to=message)
        return stamped(reply)


def stamped(message: Message) -> Message:
    """Give a message an identifier, as Flower's runtime does with a message that is sent."""
    message.metadata.__dict__["_message_id"] = str(uuid4())
    return message
