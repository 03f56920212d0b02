"""Joining a pilot: a user makes a device's folder from an invitation, and tells the server one public line.

The invitation is the same for everybody and holds nothing secret: what devices agree to, the items, suggested
limits and the certificate of the server's authority. Keys, secret and profile are made here, and stay. Later,
another public line gives the device another key.
"""

import math
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clients.places import sync_folder
from dprec import formats
from dprec.accounting import Loss
from dprec.arrays import Floats
from dprec.components import Options, from_json, option, to_json
from dprec.datasets.columns import find_column
from dprec.datasets.lines import found_separator, split_line
from dprec.errors import InputError, within
from dprec.ratings import RatingScale
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import (
    DeviceFolder,
    check_catalogue,
    check_version,
    read_agreement,
    write_device,
)
from dprec_pilot.device.ledger import Limits
from dprec_pilot.device.node_key import PublicLine, new_node_key, public_line, read_node_key
from dprec_pilot.device.profile import rating_of
from dprec_pilot.files import read_text, whole_folder, write_durably

_INVITATION = "an invitation, as dprec-pilot prepare makes it"
_CLOSED = "devices that know each other by their keys, and mask what they send together"

_NAMED = 5
"""Items that are named of those that the catalogue lacks."""

_LOOKED_AT = 20
"""Lines of a table that show what separates its columns."""

CERTIFICATE = "ca.crt"
"""Where a device that has joined finds the certificate of the server's authority."""


@dataclass(frozen=True, kw_only=True)
class Invitation(Options):
    """What everybody may know who is to join; the contents of invitation.json."""

    protocol: str = option("What devices agree to, as in protocol.json.")
    items: tuple[str, ...] = option("The ids of the items, in the order of the catalogue.")
    limits: Limits = option("What a device may spend, as the pilot suggests; its owner decides.")
    certificate: str = option("The certificate of the server's authority, as PEM.")

    @property
    def text(self) -> str:
        """The contents."""
        return formats.stamped(to_json(self))


@dataclass(frozen=True)
class Joined:
    """A device that was made."""

    folder: DeviceFolder
    line: PublicLine
    """What the server is told."""
    ratings: int
    """How many are of items of the catalogue."""
    unknown: tuple[str, ...]
    """Items that were rated and are not in the catalogue."""
    cost: Loss | None = None
    """What one report costs all ratings together; None where rounds are answered instead."""

    @property
    def in_words(self) -> list[str]:
        """What its owner is told of it, as lines."""
        folder, named, more = self.folder, self.unknown[:_NAMED], len(self.unknown) - _NAMED
        known = vars(folder.options.limits).items()
        limits = ", ".join(f"{name} {limit:g}" for name, limit in known if limit is not None)
        left_out = f"; left out, as the catalogue lacks them: {', '.join(named)}" if named else ""
        left_out += f" and {more} more" if more > 0 else ""
        agreement, protocol = folder.agreement, folder.agreement.protocol
        privacy: Any = getattr(protocol, "privacy", None)
        epsilon = getattr(privacy, "epsilon", None)
        budget = f", epsilon {epsilon:g} per {privacy.per}" if isinstance(epsilon, int | float) else ""
        # Where rounds compose, it holds with a delta alone.
        budget += f" with delta {privacy.delta:g}" if getattr(privacy, "composition", "sum") != "sum" else ""
        clear = protocol.sends_values and privacy is None
        seen = "what was rated, and how" if clear else "which items were rated"
        hidden = protocol.hides_rated_items and not clear
        return [
            f"protocol {agreement.fingerprint}: {agreement.protocol.kind}{budget}; {agreement.items} items",
            "the server does not see which items were rated" if hidden else f"sent in clear: {seen}",
            *self._cost_in_words(folder.options.limits),
            f"limits, to be changed in {folder.options_file}: {limits or 'none'}",
            f"{_ratings(self.ratings)} in {folder.profile_file}{left_out}",
        ]

    def _cost_in_words(self, limits: Limits) -> Iterator[str]:
        """Yield what all ratings lose together, where that is known and bounded."""
        if self.cost is not None and math.isfinite(self.cost.per_user):
            unbounded = ", which no limit bounds" * (limits.per_user is limits.per_user_lifetime is None)
            yield f"{_ratings(self.ratings)} together: epsilon {self.cost.per_user:.4g} in one run{unbounded}"


def _ratings(count: int) -> str:
    return f"{count} rating{'' if count == 1 else 's'}"


def read_invitation(path: Path) -> Invitation:
    """Read an invitation; raises InputError when it is none."""
    text = read_text(path, _INVITATION)
    invitation = from_json(Invitation, formats.body(text, str(path)), str(path))
    if len(set(invitation.items)) < len(invitation.items):
        raise InputError(f"{path}, items", "an id twice", "every item once")
    check_authority(invitation.certificate, f"{path}, certificate")
    return invitation


def check_authority(certificate: str, where: str) -> None:
    """Raise InputError unless a text is the certificate of an authority, as PEM."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=certificate)
    except (ssl.SSLError, TypeError, ValueError):
        raise InputError(where, "no certificate", "a certificate, as PEM") from None


def join(invitation: Path, ratings: Path, folder: Path, user: int, classes: Sequence[str] = ()) -> Joined:
    """Make the folder of a device, whole or not at all.

    ``ratings``: a table of the user's ratings; see `read_ratings`. ``user``: the number under which the
    server has invited the user; ``classes``: user-defined classes that the protocol may name, as in
    device.json. Raises InputError when a file cannot be used, the folder holds something, or the protocol is
    closed to the user.
    """
    invited = read_invitation(invitation)
    agreement = read_agreement(invited.protocol, f"{invitation}, protocol", tuple(classes))
    check_version(agreement.computes, f"{invitation}, protocol")
    check_catalogue(invited.items, agreement, f"{invitation}, items")
    with within(f"{invitation}, protocol"):
        agreement.protocol.check_deployed()
    if agreement.directory:
        raise InputError(f"{invitation}, protocol", _CLOSED, "one that more devices can join")
    rated, values = read_ratings(ratings, agreement.scale)
    positions = {item: position for position, item in enumerate(invited.items)}
    known = np.array([item in positions for item in rated], dtype=np.bool_)
    if rated and not known.any():
        raise InputError(
            str(ratings), f"item {rated[0]}, and none of the catalogue", "items of the catalogue"
        )
    items = np.array([positions[item] for item in rated if item in positions], dtype=np.int32)
    key = new_node_key()
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(str(folder), "a folder that is not empty", "a new folder")
        # Made beside its place, and opened as a device would be, before it is moved there.
        with whole_folder(folder) as building:
            device = write_device(
                building,
                profile=(items, values[known]),
                user=user,
                limits=invited.limits,
                agreement=agreement,
                item_ids=invited.items,
                node_key=key.private,
            )
            write_durably(building / CERTIFICATE, invited.certificate)
            cost = Device(device).cost_of_report
        sync_folder(folder.absolute().parent)
    except OSError as error:
        accepted = "a new folder, where one can be written"
        raise InputError(str(folder), str(error.strerror), accepted) from None
    unknown = tuple(item for item in rated if item not in positions)
    return Joined(DeviceFolder(folder), PublicLine(user, key.public), len(items), unknown, cost)


def read_ratings(path: Path, scale: RatingScale) -> tuple[list[str], Floats]:
    """Read one user's ratings from a table whose first line names its columns.

    Returns the ids of the items, and their ratings: NaN for implicit data, where only the items are read, and
    a table of one column will do. Raises InputError naming what is no rating on the scale, an item that comes
    twice, and a table of several users.
    """
    lines = read_text(path, "a table, as text in UTF-8").removeprefix("\ufeff").rstrip().splitlines()
    separator = found_separator(lines[:_LOOKED_AT])
    header, *rows = [[cell.strip() for cell in split_line(line, separator)] for line in lines] or [[]]
    item, user = find_column("item", header), find_column("user", header)
    rating = None if scale.implicit else find_column("rating", header)
    if item is None or (rating is None and not scale.implicit):
        columns = "item" if scale.implicit else "item and rating"
        raise InputError(f"{path}, line 1", lines[0] if lines else "nothing", f"columns named {columns}")
    ratings: dict[str, float] = {}
    for number, row in enumerate(rows, start=2):
        where = f"{path}, line {number}"
        if len(row) != len(header) or not row[item] or row[item] in ratings:
            raise InputError(where, ",".join(row), "one rating of an item, in as many columns as line 1")
        ratings[row[item]] = np.nan if rating is None else rating_of(row[rating], scale, where)
    if user is not None and (users := len({row[user] for row in rows})) > 1:
        raise InputError(str(path), f"ratings of {users} users", "the ratings of one")
    return list(ratings), np.array(list(ratings.values()), dtype=np.float64)


def rotate(folder: Path) -> PublicLine:
    """Make the next key by which the server is to know a device; return what the server is told.

    The key before it stays until the server knows the next one. Again before that, the line is the same but
    for its signature. Raises InputError when the folder is none of a device, or in use.
    """
    device = DeviceFolder(folder)
    user = device.options.user
    if device.agreement.directory:
        raise InputError(str(device.protocol_file), _CLOSED, "one in which the server alone knows the key")
    with device.locked():
        before, place = read_node_key(device.node_key_file), device.next_node_key_file
        try:
            if not place.exists():
                write_durably(place, new_node_key().private)
        except OSError as error:
            raise InputError(str(place), str(error.strerror), "a folder that can be written") from None
        return PublicLine.signed(user, public_line(read_node_key(place).public_key()), before)
