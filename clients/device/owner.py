"""What `dprec device join` and `dprec device rotate` do, and `dprec-device` with the same words.

What is for the server stands alone on standard output; what is for the owner, on standard error.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.device.folder import Agreement
    from clients.device.joining import Joined

JOIN = (
    "Make the folder of a device from an invitation and one's ratings; print its public line, for the server."
)
ROTATE = "Make the next key by which the server is to know a device; print what the server is told."

MOST_USERS = 2**31 - 1

HELP = {
    "invitation": "invitation.json, from whoever runs the server.",
    "ratings": "A table of one's own ratings, whose first line names its columns.",
    "folder": "The folder of the device.",
    "user": "The number that the server's operator gave with the invitation.",
    "classes": "A user-defined class that the protocol may name, as module:Class; no other is imported.",
}
"""What the arguments mean."""

_NAMED = 5
"""Items that are named of those that the catalogue lacks."""


@dataclass(frozen=True, kw_only=True)
class Joining:
    """How a device joins."""

    invitation: Path
    ratings: Path
    folder: Path
    user: int
    classes: Sequence[str] = ()

    def run(self) -> None:
        """Make the folder and print the public line; raises InputError as `clients.device.joining.join`."""
        from clients.device.joining import join

        joined = join(self.invitation, self.ratings, self.folder, self.user, self.classes)
        _say(_agreed(joined.folder.agreement))
        _say(f"limits, to be changed in {joined.folder.options_file}: {_limits(joined)}")
        _say(f"{joined.ratings} ratings in {joined.folder.profile_file}{_left_out(joined.unknown)}")
        _say("for the server's operator, this line, and nothing else of the folder:")
        print(joined.line.text, flush=True)


@dataclass(frozen=True, kw_only=True)
class Rotating:
    """Which device is given another key."""

    folder: Path

    def run(self) -> None:
        """Make the key and print the public line; raises InputError as `clients.device.joining.rotate`."""
        from clients.device.joining import rotate

        line = rotate(self.folder)
        _say("the device goes over to its next key once the server knows it; for the server's operator:")
        print(line.text, flush=True)


def _say(line: str) -> None:
    print("".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in line), file=sys.stderr)


def _agreed(agreement: "Agreement") -> str:
    setup: Any = agreement.setup
    privacy: Any = getattr(setup, "privacy", None) or getattr(setup, "promised", None)
    epsilon = getattr(privacy, "epsilon", None)
    budget = f", epsilon {epsilon:g} per {privacy.per}" if isinstance(epsilon, int | float) else ""
    # Where rounds compose, it holds with a delta alone.
    budget += f" with delta {privacy.delta:g}" if getattr(privacy, "composition", "sum") != "sum" else ""
    return f"protocol {agreement.fingerprint}: {agreement.setup.kind}{budget}; {agreement.items} items"


def _limits(joined: "Joined") -> str:
    limits = vars(joined.folder.options.limits).items()
    return ", ".join(f"{name} {limit:g}" for name, limit in limits if limit is not None) or "none"


def _left_out(unknown: Sequence[str]) -> str:
    if not unknown:
        return ""
    more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    return f"; left out, as the catalogue lacks them: {', '.join(unknown[:_NAMED])}{more}"
