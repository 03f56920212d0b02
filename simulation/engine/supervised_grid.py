"""A grid that ends the run when a node fails or nothing answers, rather than go on without its users.

Who drops out, is late or sends garbage is decided by the fault settings, on the nodes, and arrives as an
ordinary reply. An error reply is therefore a failure of the simulation itself: a missing disk, a lost worker,
a defect.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence

from flwr.app import Error, Message
from flwr.serverapp import Grid

from dprec.errors import RunError
from dprec.exchange import RefusalCode
from simulation.engine.forwarding_grid import ForwardingGrid

_POLL_SECONDS = 0.05

_WRAPPED = re.compile(r"^<class '[\w.]*(?:\([\w.]*\))?'>:<'(.*)'>$")
"""A reason as Flower writes it: the type of an exception, then its text."""

_FIRST_ANSWER_SECONDS = 300.0
"""Longest wait for the very first answer, to a question that takes no work."""

_NEXT_ANSWER_SECONDS = 3600.0
"""Longest wait for the next answer; the work of one node has to fit into it."""


class SupervisedGrid(ForwardingGrid):
    """Another grid, supervised.

    Parameters
    ----------
    grid : Grid
    check : callable, optional
        Called while waiting; raises what ends the wait.
    first_answer_seconds, next_answer_seconds : float
        How long no node may answer, before and after the first answer.
    """

    def __init__(
        self,
        grid: Grid,
        check: Callable[[], None] = lambda: None,
        *,
        first_answer_seconds: float = _FIRST_ANSWER_SECONDS,
        next_answer_seconds: float = _NEXT_ANSWER_SECONDS,
    ) -> None:
        super().__init__(grid)
        self._check = check
        self._patience, self._next_patience = first_answer_seconds, next_answer_seconds

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies that have arrived.

        Raises
        ------
        RunError
            When a node failed, with its reason.
        """
        replies = list(super().pull_messages(message_ids))
        _refuse_failures(replies)
        return replies

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and return the replies.

        Raises
        ------
        RunError
            When a node failed, with its reason, or no node answered for too long.
        """
        waiting = set(self.push_messages(messages))
        replies: list[Message] = []
        started = last_answer = time.monotonic()
        while waiting:
            arrived = list(self.pull_messages(waiting))
            replies += arrived
            waiting.difference_update(reply.metadata.reply_to_message_id for reply in arrived)
            now = time.monotonic()
            if arrived:
                last_answer, self._patience = now, self._next_patience
                continue
            if timeout is not None and now - started > timeout:
                break
            self._check()
            if now - last_answer > self._patience:
                raise RunError(f"{len(waiting)} nodes did not answer, and none did for {self._patience:g} s")
            time.sleep(_POLL_SECONDS)
        return replies


def _refuse_failures(replies: Sequence[Message]) -> None:
    """Raise a `RunError` if there are error replies, with the reason that the first one gives."""
    errors = [reply.error for reply in replies if reply.has_error()]
    if errors:
        others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise RunError(f"a node{others} failed: {_reason(errors[0])}")


def _reason(error: Error) -> str:
    """Return the reason of an error; a device that fails gives none, but logs it where it runs."""
    if error.code == RefusalCode.INTERNAL_FAILURE:
        return f"{error.reason}; run with simulation.backend=local to see why"
    return _without_wrapping(error.reason or f"code {error.code}")


def _without_wrapping(reason: str) -> str:
    """Return a reason in one line, without what Ray and Flower put around an app's own words."""
    words = _WRAPPED.sub(r"\1", " ".join(reason.split()))
    return words.rpartition("ClientAppException occurred. Message: ")[2]
