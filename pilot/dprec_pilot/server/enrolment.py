"""The enrolment list of a deployment: who takes part, by which key, and how Flower calls the device."""

import csv
import io
import re
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.errors import InputError
from dprec_pilot.files import OPEN, read_text, write_durably

_NODE = re.compile("[0-9]{1,20}", re.ASCII)
_COLUMNS = ["user", "public_key", "node_id"]
_ENROLMENT = "an enrolment list, as dprec-pilot prepare makes it"


@dataclass(frozen=True)
class Enrolled:
    """A user of a deployment."""

    user: str
    """The user's own identifier."""
    public_key: str | None
    """Key of the user's device, a line in the format of OpenSSH; None for a user without a device, who is
    invited or was removed.
    """
    node_id: int | None = None
    """How Flower calls the device; None before it is registered."""


def write_enrolment(path: Path, enrolled: list[Enrolled]) -> None:
    """Write the list; a user's number is its position."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([each.user, each.public_key or "", each.node_id or ""] for each in enrolled)
    write_durably(path, file.getvalue(), OPEN)


def read_enrolment(path: Path) -> list[Enrolled]:
    """Read the list; raises InputError naming a line with a node or key that is none or has one before."""
    try:
        rows = list(csv.reader(io.StringIO(read_text(path, _ENROLMENT))))
    except csv.Error as error:
        raise InputError(str(path), str(error), _ENROLMENT) from None
    if not rows or rows[0] != _COLUMNS:
        raise InputError(f"{path}:1", ",".join(rows[0]) if rows else "nothing", ",".join(_COLUMNS))
    enrolled: list[Enrolled] = []
    seen: set[str] = set()
    for number, row in enumerate(rows[1:], start=2):
        where = f"{path}:{number}"
        if len(row) != len(_COLUMNS) or not row[0]:
            raise InputError(where, ",".join(row), "a user, a public key or nothing, a node id or nothing")
        user, key, node = row
        if node and not (_NODE.fullmatch(node) and 1 < int(node) < 2**64):
            raise InputError(where, f"node {node}", "the node id that Flower gave the device")
        again = {entry for entry in (f"user {user}", key, node and f"node {node}") if entry} & seen
        if again:
            raise InputError(where, f"{min(again)} again", "every user, key and node once")
        seen |= {f"user {user}", key, f"node {node}"}
        enrolled.append(Enrolled(user, key or None, int(node) if node else None))
    return enrolled


def with_nodes(enrolled: list[Enrolled], nodes: dict[str, int]) -> list[Enrolled]:
    """Return the list with the node id of every key that has one."""
    return [replace(each, node_id=nodes.get(each.public_key or "", each.node_id)) for each in enrolled]
