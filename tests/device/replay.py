"""A program for an environment with dprec-device: devices answer once more what they were asked.

    python replay.py FOLDER

Each folder in FOLDER is a device, with its questions in ``asked`` and place for its answers in ``answered``.
What is printed are the packages that were imported.
"""

import sys
from pathlib import Path

from clients.device.device import Device
from clients.device.fleet import LARGEST_BODY
from clients.device.folder import DeviceFolder
from clients.device.profile import State, as_bytes, kept


def replay(folder: Path) -> None:
    """Have a device answer its questions."""
    device = Device(DeviceFolder(folder), seeded=True)
    for asked in sorted((folder / "asked").iterdir()):
        question = State(reply=asked.read_bytes()).pending
        assert question is not None
        reply = device.answer(question)
        if (work := device.take_work()) is not None:
            work()
        answer = kept(reply.content) if reply.has_content() else as_bytes(reply)
        (folder / "answered" / asked.name).write_bytes(answer)


if __name__ == "__main__":
    assert LARGEST_BODY  # of the module that speaks to a server
    for path in sorted(Path(sys.argv[1]).iterdir()):
        replay(path)
    print(*sorted({name.partition(".")[0] for name in sys.modules}))
