"""The grids through which a server reaches its devices: in this process, and supervised.

Who drops out of a simulation, is late or sends garbage is decided by the fault settings, on the nodes, and
arrives as an ordinary reply. An error reply is therefore a failure of the simulation itself, such as a lost
worker, and ends the run rather than that it goes on without its users.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from uuid import uuid4

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from clients.refusing import WithheldError
from dprec.components import CodeError
from dprec.errors import RunError
from dprec.exchange import RefusalCode
from dprec.federated import ContractError

START_SECONDS = 300.0
"""Longest wait for a worker, a node, a free processor or Flower's runtime while nothing else goes on.

Only what hangs takes so long, however busy the machine.
"""


class WaitingGrid(Grid):
    """Another grid, to which all is left but how long replies are waited for."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def set_run(self, run: Run) -> None:
        """Set the run."""
        self._grid.set_run(run)

    @property
    def run(self) -> Run:
        """The run."""
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Create a message; Flower recommends its constructor instead."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of the nodes."""
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies that have arrived."""
        return self._grid.pull_messages(message_ids)


_FIRST_NODE_ID = 1 << 63
"""Node ids are as wide as those that Flower draws."""


class LocalGrid(Grid):
    """A grid without a network: the app is called in this process, for one node after the other.

    ``overhear`` is given every message and its reply. Why devices have failed is in ``failures``, and in no
    reply.
    """

    def __init__(
        self, app: ClientApp, nodes: int, overhear: Callable[[Message, Message], None] | None = None
    ) -> None:
        self._app, self._overhear = app, overhear
        self.failures: list[CodeError] = []
        self._run = Run.create_empty(run_id=1)
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, SUPERLINK_NODE_ID
        self._contexts = {
            _FIRST_NODE_ID + partition_id: Context(
                run_id=1,
                node_id=_FIRST_NODE_ID + partition_id,
                node_config={"partition-id": partition_id, "num-partitions": nodes},
                state=RecordDict(),
                run_config={},
            )
            for partition_id in range(nodes)
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
            reply = self.answer(message)
            if self._overhear is not None:
                self._overhear(message, reply)
            identifiers.append(message.metadata.message_id)
            self._replies[identifiers[-1]] = reply
        return identifiers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies to the given messages, once."""
        return [self._replies.pop(message) for message in message_ids if message in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and return the replies."""
        return self.pull_messages(self.push_messages(messages))

    def answer(self, message: Message) -> Message:
        """Return the reply to a message, which is neither kept nor overheard."""
        stamped(message)
        try:
            reply = self._app(message, self._contexts[message.metadata.dst_node_id])
        except WithheldError as withheld:
            self.failures.append(withheld.failure)
            reply = Message(Error(int(RefusalCode.INTERNAL_FAILURE), str(withheld)), reply_to=message)
        except Exception as error:  # a device that fails is an error reply, as in Flower's runtime
            reason = f"{type(error).__name__}: {error}"
            reply = Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason), reply_to=message)
        return stamped(reply)


def stamped(message: Message) -> Message:
    """Give a message an identifier, as Flower's runtime does with a message that is sent."""
    message.metadata.__dict__["_message_id"] = str(uuid4())
    return message


_POLL_SECONDS = 0.05

_WRAPPED = re.compile(r"^<class '[\w.]*(?:\([\w.]*\))?'>:<'(.*)'>$")
"""A reason as Flower writes it: the type of an exception, then its text."""

_NEXT_ANSWER_SECONDS = 3600.0
"""Longest wait for the next answer; the work of one node has to fit into it."""


class SupervisedGrid(WaitingGrid):
    """Another grid, supervised: ``check`` is called while waiting, and raises what ends the wait.

    ``failures``: where whoever runs the devices says why they have failed.
    """

    def __init__(
        self, grid: Grid, failures: Sequence[CodeError] = (), check: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(grid)
        self._failures, self._check, self._patience = failures, check, START_SECONDS

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies that have arrived; raises RunError, with its reason, when a node failed."""
        replies = list(super().pull_messages(message_ids))
        errors = [reply.error for reply in replies if reply.has_error()]
        if errors:
            others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            if self._failures:
                raise RunError(f"a node{others} failed: {self._failures[0].line}") from self._failures[0]
            # In one line, without what Flower puts around an app's own words.
            words = " ".join((errors[0].reason or f"code {errors[0].code}").split())
            reason = _WRAPPED.sub(r"\1", words)
            # Code from outside that does what it must not is named as such.
            raise ContractError.in_words(reason) or RunError(f"a node{others} failed: {reason}")
        return replies

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and return the replies; raises RunError when a node failed, or none answered."""
        waiting = set(self.push_messages(messages))
        replies: list[Message] = []
        started = last_answer = time.monotonic()
        while waiting:
            arrived = list(self.pull_messages(waiting))
            replies += arrived
            waiting.difference_update(reply.metadata.reply_to_message_id for reply in arrived)
            now = time.monotonic()
            if arrived:
                last_answer, self._patience = now, _NEXT_ANSWER_SECONDS
                continue
            if timeout is not None and now - started > timeout:
                break
            self._check()
            if now - last_answer > self._patience:
                raise RunError(f"{len(waiting)} nodes did not answer, and none did for {self._patience:g} s")
            time.sleep(_POLL_SECONDS)
        return replies
