"""What a reply of a device says besides its content: when it was made, and when it expires.

Flower dates a reply by when it was computed, and counts its time to live from there: both would tell how long
an answer took. Here, a reply expires when its request does, by the numbers of the request alone, and is dated
by when it leaves.
"""

from __future__ import annotations

import time

from flwr.app import Error, Message, Metadata

from dprec.exchange import RefusalCode

_LONGEST = 1e7
"""Seconds that a request may live, and from now to when it was made, at most: about four months."""


def usual_times(request: Metadata) -> bool:
    """Return whether a request was made, and expires, at times that a server would give it.

    Larger numbers are less exact: how their sums with the present time are rounded would tell of it.
    """
    return 0 < request.ttl < _LONGEST and abs(request.created_at - time.time()) < _LONGEST


def expiring_with(request: Metadata, reply: Message) -> None:
    """Let a reply expire when its request does."""
    reply.metadata.created_at, reply.metadata.ttl = request.created_at, request.ttl


def date(reply: Metadata) -> None:
    """Date a reply now, without changing when it expires."""
    now = time.time()
    reply.created_at, reply.ttl = now, reply.created_at + reply.ttl - now


def error_reply(request: Message, code: RefusalCode) -> Message:
    """Return the reply that says no more than a code."""
    metadata = request.metadata
    if not usual_times(metadata):
        metadata.created_at, metadata.ttl = 0.0, _LONGEST
    reply = Message(Error(int(code), code.name), reply_to=request)
    expiring_with(metadata, reply)
    return reply
