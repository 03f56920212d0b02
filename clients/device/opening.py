"""Opens the folders of devices, each for this process alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from clients.device.device import Device
from clients.device.fleet import NodeKey
from clients.device.folder import DeviceFolder
from clients.device.service import Served
from dprec.errors import InputError


@contextmanager
def opened_devices(folders: Sequence[Path], *, seeded: bool) -> Iterator[list[Served]]:
    """Open devices, and let other processes have them afterwards.

    Parameters
    ----------
    folders : sequence of Path
        Folders of devices, or folders of such folders.
    seeded : bool
        See `Device`.

    Raises
    ------
    InputError
        When one is no folder of a device, is in use, or cannot be used.
    """
    with ExitStack() as locks:
        served = []
        for path in dict.fromkeys(device.absolute() for folder in folders for device in _devices_in(folder)):
            folder = DeviceFolder(path)
            locks.enter_context(folder.locked())
            served.append(Served(_opened(folder, seeded), NodeKey.read(folder.node_key_file)))
        yield served


def _opened(folder: DeviceFolder, seeded: bool) -> Device:
    try:
        return Device(folder, seeded=seeded)
    except OSError as error:
        found = str(error.strerror)
        raise InputError(str(folder.path), found, "a folder that can be read and written") from None


def _devices_in(folder: Path) -> list[Path]:
    """Return a folder if it is that of a device, or else those in it that are."""
    if DeviceFolder(folder).options_file.exists():
        return [folder]
    inside = sorted(path.parent for path in folder.glob(f"*/{DeviceFolder(folder).options_file.name}"))
    if not inside:
        accepted = "the folder of a device, or a folder of such folders"
        raise InputError(str(folder), "no device.json", accepted)
    return inside
