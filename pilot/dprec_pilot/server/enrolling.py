"""Who takes part in a pilot: users are invited, their devices admitted, enrolled and removed.

Of every device the server learns a public key. A user's number is the position in the enrolment list, so
a line is never taken out: that of a user who is invited, or was removed, has no key.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from dprec.errors import InputError, RunError
from dprec_pilot.device.node_key import PublicLine
from dprec_pilot.files import locked, unusable
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, read_enrolment, write_enrolment
from dprec_pilot.server.superlink import NotRegisteredError, registry

_SHOWN = 5
"""Devices that are named of those that are not enrolled."""


def invite(folder: ServerFolder, names: Sequence[str]) -> list[int]:
    """Add lines for users whose devices are to join; return their numbers.

    Raises InputError when a name is taken, or none that fits on a line, and where devices mask together; then
    adds nobody.
    """
    _refuse_closed(folder)
    with _changing(folder) as enrolled:
        taken = {each.user for each in enrolled}
        for name in names:
            if not name.strip() or not name.isprintable():
                raise InputError("NAME", repr(name), "a name on one line")
            if name in taken:
                raise InputError("NAME", f"{name} again", "a name that is not in enrolment.csv")
            taken.add(name)
        first = len(enrolled)
        enrolled += [Enrolled(name, None) for name in names]
        return list(range(first, len(enrolled)))


def admit(folder: ServerFolder, lines: Iterable[tuple[str, str]]) -> list[str]:
    """Take in the public lines of devices; return the names of the users.

    ``lines``: where each is from, and its text. The first key of a user who has none is taken as it is; a
    later one has to be signed by the one before. Raises InputError naming what is not, and where devices mask
    together; then takes in nobody.
    """
    _refuse_closed(folder)
    with _changing(folder) as enrolled:
        admitted = list(enrolled)
        names = [_admit(admitted, where, PublicLine.read(text, where)) for where, text in lines]
        enrolled[:] = admitted
        return names


def _refuse_closed(folder: ServerFolder) -> None:
    """Refuse keys that other devices do not know, and would not mask with."""
    if folder.closed:
        found = "a pilot whose devices mask together, and know the keys of all others"
        raise InputError(str(folder.path), found, "one that can be joined; prepare this one anew")


def _admit(enrolled: list[Enrolled], where: str, line: PublicLine) -> str:
    if line.user >= len(enrolled):
        raise InputError(where, f"user {line.user}", "a number that dprec-pilot invite has given")
    known = enrolled[line.user]
    owner = next((each.user for each in enrolled if each.public_key == line.key), known.user)
    if owner != known.user:
        raise InputError(where, f"the key of user {owner} for user {known.user}", "a key of the device alone")
    if known.public_key not in {None, line.key} and not line.follows(known.public_key or ""):
        found = f"another key for user {known.user}, whose own has not signed it"
        raise InputError(where, found, "a line of dprec-pilot rotate; or remove the user's device first")
    enrolled[line.user] = replace(known, public_key=line.key)
    return known.user


def enrol(folder: ServerFolder, superlink: str) -> int:
    """Register the devices of a pilot with its SuperLink; return how many are.

    The key before a later one is taken off. Raises RunError when the SuperLink cannot be reached, and one
    that names the lines of devices that it does not take, when all others are enrolled.
    """
    refused: list[str] = []
    with _changing(folder) as enrolled, registry(superlink, folder.certificate) as registered:
        if all(each.public_key is None for each in enrolled):
            accepted = "a line of a device, by dprec-pilot admit"
            raise InputError(str(folder.enrolment_file), "no key", accepted)
        for place, each in enumerate(enrolled):
            if each.public_key is None:
                continue
            try:
                node = registered.register(each.public_key)
            except NotRegisteredError as error:
                refused.append(f"{folder.enrolment_file}:{place + 2}: user {each.user}: {error}")
                continue
            enrolled[place] = replace(each, node_id=node)
            if each.node_id not in {None, node}:
                registered.unregister(each.node_id or 0)
        devices = sum(each.public_key is not None for each in enrolled)
    if refused:
        more = f"; and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        named = "; ".join(refused[:_SHOWN])
        raise RunError(f"{len(refused)} of {devices} devices are not enrolled, the others are: {named}{more}")
    return devices


def remove(folder: ServerFolder, superlink: str, user: str) -> None:
    """Take the device of a user off the SuperLink, and its key out of the list.

    Raises InputError when no such user has a device, and RunError when the SuperLink cannot be reached.
    """
    with _changing(folder) as enrolled, registry(superlink, folder.certificate) as registered:
        place = next((place for place, each in enumerate(enrolled) if each.user == user), None)
        key = None if place is None else enrolled[place].public_key
        if place is None or key is None:
            found = f"user {user}" if place is None else f"user {user}, without a device"
            raise InputError(str(folder.enrolment_file), found, "a user who has one")
        try:
            node = registered.node_of(key)
        except NotRegisteredError:
            node = None
        for known in {node, enrolled[place].node_id} - {None}:
            registered.unregister(known or 0)
        enrolled[place] = Enrolled(user, None)


@contextmanager
def _changing(folder: ServerFolder) -> Iterator[list[Enrolled]]:
    """Read the list, and write what has become of it, also after an error, while no other process does."""
    path = folder.enrolment_file
    read_enrolment(path)  # so that nothing is written to a folder that is none
    with locked(folder.path / "enrolment.lock", path, "a list that no other command changes", math.inf):
        enrolled = read_enrolment(path)
        before = list(enrolled)
        try:
            yield enrolled
        finally:
            if enrolled != before:
                try:
                    write_enrolment(path, enrolled)
                except OSError as error:
                    raise unusable(path, error) from None
