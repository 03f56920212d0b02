"""Size in bytes of the Flower message that carries one user's payload.

A partition's reports travel in one message, but each user is charged for the message that would carry
its payload if it were alone on its node. The identifiers that Flower draws at random are counted at
full width, so that sizes do not change from run to run.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.app.message import make_message
from flwr.app.metadata import Metadata
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.common.serde import message_to_proto
from numpy.typing import NDArray

from dprec.exchange import REPLY, REQUEST, Reports, Request

_WIDEST_ID = 2**64 - 1
_MESSAGE_ID = "0" * 36
_TASK_ID = 1


def reply_content(first_user: int, reports: list[bytes]) -> RecordDict:
    """Return the content of a reply with the reports of consecutive users from ``first_user`` on."""
    return RecordDict({REPLY: ConfigRecord(Reports(first_user, reports).entries())})


def request_content(request: Request) -> RecordDict:
    """Return the content of a message that carries a request."""
    return RecordDict({REQUEST: ConfigRecord(request.entries())})


def message_size(message: Message) -> int:
    """Return the bytes of a message as Flower serialises it, with random identifiers at full width."""
    return int(message_to_proto(_at_full_width(message)).ByteSize())


def reply_message(message_type: str, content: RecordDict, group: str) -> Message:
    """Return the message in which a user alone on its node would send some content."""
    return _message(message_type, content, group, source=_WIDEST_ID, target=SUPERLINK_NODE_ID, reply=True)


def request_message(message_type: str, content: RecordDict, group: str) -> Message:
    """Return the message in which a user alone on its node would be sent some content."""
    return _message(message_type, content, group, source=SUPERLINK_NODE_ID, target=_WIDEST_ID, reply=False)


def report_sizes(
    message_type: str, group: str, users: NDArray[np.int64], payloads: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the size of every user's own reply message.

    Parameters
    ----------
    message_type : str
        That of the request.
    group : str
        Group of the message.
    users : ndarray of int64, shape (users,)
    payloads : ndarray of int64, shape (users,)
        Bytes of each user's report.

    Returns
    -------
    ndarray of int64, shape (users,)
    """
    # A size depends on the payload's length and on how many groups of 7 bits the user's number has.
    widths = np.ceil(np.log2(2 * users + 2) / 7).astype(np.int64)
    classes, of_user = np.unique(payloads << 4 | widths, return_inverse=True)
    sizes = [_reply_size(message_type, group, kind >> 4, kind & 15) for kind in classes.tolist()]
    return np.array(sizes, dtype=np.int64)[of_user]


@lru_cache(maxsize=1 << 16)
def _reply_size(message_type: str, group: str, payload: int, user_width: int) -> int:
    """Return the size of a reply; cached, since rounds repeat the same few thousand lengths."""
    first_of_the_width = 1 << (7 * (user_width - 1)) >> 1
    content = reply_content(first_of_the_width, [bytes(payload)])
    return message_size(reply_message(message_type, content, group))


def _message(
    message_type: str, content: RecordDict, group: str, *, source: int, target: int, reply: bool
) -> Message:
    metadata = Metadata(
        run_id=_WIDEST_ID,
        message_id=_MESSAGE_ID,
        src_node_id=source,
        dst_node_id=target,
        reply_to_message_id=_MESSAGE_ID if reply else "",
        group_id=group,
        created_at=1.0,
        ttl=1.0,
        message_type=message_type,
        src_task_id=None if reply else _TASK_ID,
        dst_task_id=_TASK_ID if reply else None,
    )
    return make_message(metadata=metadata, content=content)


def _at_full_width(message: Message) -> Message:
    """Return the message with every random identifier replaced by one of full width."""
    given = message.metadata
    fixed = (SUPERLINK_NODE_ID, 0)
    metadata = Metadata(
        run_id=_WIDEST_ID,
        message_id=_MESSAGE_ID,
        src_node_id=given.src_node_id if given.src_node_id in fixed else _WIDEST_ID,
        dst_node_id=given.dst_node_id if given.dst_node_id in fixed else _WIDEST_ID,
        reply_to_message_id=_MESSAGE_ID if given.reply_to_message_id else "",
        group_id=given.group_id,
        created_at=given.created_at,
        ttl=given.ttl,
        message_type=given.message_type,
        src_task_id=given.src_task_id,
        dst_task_id=given.dst_task_id,
    )
    return make_message(metadata=metadata, content=message.content)
