"""Every file of a pilot that outlives a process is refused where it was written in another format."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dprec import formats
from dprec.errors import InputError
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.joining import read_invitation
from dprec_pilot.device.profile import State, read_state, write_state
from dprec_pilot.server.server_folder import ServerFolder
from pilot.tests.make import BLP, pilot


def written(folder: Path) -> dict[str, Callable[[], object]]:
    """Write a file of each kind; return what reads it."""
    _, server = pilot(BLP, folder / "pilot")
    write_state(folder / "state", State(charges=1))
    return {
        "device": lambda: DeviceFolder(folder / "pilot" / "devices" / "000000").options,
        "memory": lambda: read_state(folder / "state"),
        "invitation": lambda: read_invitation(server.invitation_file),
        "deployment": lambda: ServerFolder(server.path).deployment,
    }


@pytest.mark.parametrize("step", [-1, 1])
def test_an_earlier_or_later_format_is_refused(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        # As another version of dprec writes it.
        elsewhere.setattr(formats, "NUMBER", formats.NUMBER + step)
        elsewhere.setitem(formats.STAMP, formats.SCHEMA, formats.NUMBER)
        files = written(tmp_path)
        for read in files.values():
            read()
    for name, read in files.items():
        with pytest.raises(InputError) as caught:
            read()
        where = caught.value.where.rpartition(": ")[2]
        assert (where, caught.value.found) == ("schema", str(formats.NUMBER + step)), name
