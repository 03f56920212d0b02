"""Why a device does not answer: one of a few codes, which is all that the server hears.

What went wrong in detail can say something about the profile or the budget of the user, so it is for the
owner of the device only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum


class RefusalCode(IntEnum):
    """The codes, beyond those of Flower's own errors."""

    MALFORMED_REQUEST = 101
    """The request is of an unknown kind, or its contents cannot be read."""
    NOT_SET_UP = 102
    """The device is set up for another protocol."""
    ROUND_ANSWERED = 103
    """A later round has been answered."""
    TOO_MANY_ROUNDS = 104
    """More rounds than the device has agreed to."""
    BUDGET_SPENT = 105
    """An answer would exceed what the device may spend."""
    CHANGED_REQUEST = 106
    """The round has been answered for another request."""
    CHANGED_SETUP = 107
    """Since the run began, what the device holds has changed: its profile or its protocol."""
    WRONG_USER = 108
    """The request is for another user."""
    INTERNAL_FAILURE = 109
    """The device failed."""

    @property
    def words(self) -> str:
        """The name as files have it: in small letters, with hyphens."""
        return self.name.lower().replace("_", "-")


OTHER_FAILURE = "other-failure"
"""What files call an error whose code is none of these."""


def words_of(code: int) -> str:
    """Return what files call the error of a device, whose code may be anything."""
    try:
        return RefusalCode(code).words
    except ValueError:
        return OTHER_FAILURE


class Refusal(ValueError):  # noqa: N818 (nothing went wrong)
    """A request that a device does not answer.

    Parameters
    ----------
    code : RefusalCode
        For the server.
    reason : str
        In one line, for the owner of the device only.
    """

    def __init__(self, code: RefusalCode, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason

    def __str__(self) -> str:
        return self.reason


@contextmanager
def refusing_malformed() -> Iterator[None]:
    """Refuse a request in which the block cannot read what it has to read.

    Raises
    ------
    Refusal
        In place of any other ValueError of the block.
    """
    try:
        yield
    except Refusal:
        raise
    except ValueError as error:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, str(error)) from error
