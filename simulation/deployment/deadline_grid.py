"""The grid of a deployment: rounds end at a deadline, and a device that is lost is asked again."""

import time
from collections.abc import Iterable
from contextlib import suppress

from flwr.app import Message
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.serverapp import Grid

from dprec.exchange import Reports
from simulation.engine.grids import WaitingGrid
from strategies.roster import reply_record

_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 0.5, 5.0
_POLLS = 0.02
"""Time between polls, as a share of the time that a round has lasted."""


class DeadlineGrid(WaitingGrid):
    """Another grid, that of a SuperLink, whose rounds end at a deadline.

    A device is asked once it is online, until the deadline; one that has been asked may answer for as long as
    the grace lasts, and is marked as late. A question is deleted with its grace, so that no device spends its
    budget on an answer that nobody hears. The SuperLink deletes a question to a device that is lost too: it
    is asked again when it is back. Both are in seconds; ``reached`` holds the ids of the nodes that were
    asked anything.
    """

    def __init__(self, grid: Grid, deadline: float, grace: float) -> None:
        super().__init__(grid)
        self._deadline, self._grace = deadline, grace
        self.reached: set[int] = set()

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Ask the devices that are online until the deadline; return the replies, late ones marked."""
        began = time.monotonic()
        deadline = self._deadline if timeout is None else min(timeout, self._deadline)
        unasked = {message.metadata.dst_node_id: message for message in messages}
        asked: dict[str, Message] = {}
        replies: list[Message] = []
        while asked or unasked:
            passed = time.monotonic() - began
            if passed < deadline:
                asked |= self._ask(unasked, deadline + self._grace - passed)
            elif not asked or passed > deadline + self._grace:
                break
            for reply in self.pull_messages(asked) if asked else ():
                question = asked.pop(reply.metadata.reply_to_message_id)
                if reply.metadata.src_node_id == SUPERLINK_NODE_ID:
                    unasked[question.metadata.dst_node_id] = question
                elif time.monotonic() - began <= deadline:
                    replies.append(reply)
                else:
                    replies += marked_late(reply)
            if asked or unasked:
                time.sleep(min(max(_FIRST_POLL_SECONDS, _POLLS * passed), _LAST_POLL_SECONDS))
        return replies

    def _ask(self, unasked: dict[int, Message], seconds: float) -> dict[str, Message]:
        """Send the questions to nodes that are online, and forget them; return them by their ids."""
        here = sorted(unasked.keys() & set(self.get_node_ids())) if unasked else []
        questions = [_living(unasked.pop(node), seconds) for node in here]
        sent = list(self.push_messages(questions)) if questions else []
        asked = {}
        for message_id, question in zip(sent, questions, strict=True):
            node = question.metadata.dst_node_id
            if message_id:
                asked[message_id] = question
                self.reached.add(node)
            else:
                unasked[node] = question
        return asked


def _living(message: Message, seconds: float) -> Message:
    """Return a message anew, which lives for so long from now on."""
    given = message.metadata
    return Message(
        message.content, given.dst_node_id, given.message_type, ttl=seconds, group_id=given.group_id
    )


def marked_late(reply: Message) -> list[Message]:
    """Return a reply whose reports are all marked as late; nothing if it has none to mark."""
    record = reply_record(reply)
    if record is None or "reports" not in record:
        return [reply] if reply.has_error() else []
    # What is malformed is refused wherever it is read.
    with suppress(ValueError):
        record["late"] = list(range(len(Reports.of(record).reports)))
    return [reply]
