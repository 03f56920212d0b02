"""Every file of a pilot that outlives a process is refused where it was written in another format."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dprec import formats
from dprec.accounting import PrivacyBudget
from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.exchange import OneShotSetup
from dprec.mechanisms.laplace import BoundedLaplace
from dprec_pilot.device.joining import read_invitation
from dprec_pilot.device.profile import State as Memory
from dprec_pilot.device.profile import read_state, write_state
from dprec_pilot.server.server_folder import ServerFolder
from pilot.tests.device.devices import install
from pilot.tests.device.test_joining import invitation
from pilot.tests.server.pilots import BLP, pilot

SETUP = OneShotSetup(mechanism=BoundedLaplace(), privacy=PrivacyBudget(epsilon=1.0))
SOME = Synthetic(users=5, items=12, ratings=30)
ACCEPT = Callable[[], object]


def a_device(folder: Path) -> ACCEPT:
    device = install(folder / "device", SETUP, SOME.load())
    return lambda: replace(device).options


def a_memory(folder: Path) -> ACCEPT:
    write_state(folder / "state", Memory(charges=1))
    return lambda: read_state(folder / "state")


def an_invitation(folder: Path) -> ACCEPT:
    (folder / "invitation.json").write_text(invitation().text)
    return lambda: read_invitation(folder / "invitation.json")


def a_pilot(folder: Path) -> ACCEPT:
    _, server = pilot(BLP, folder / "pilot")
    return lambda: ServerFolder(server.path).deployment


WRITERS: dict[str, Callable[[Path], ACCEPT]] = {
    "DEVICE": a_device,
    "DEVICE_STATE": a_memory,
    "INVITATION": an_invitation,
    "DEPLOYMENT": a_pilot,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("step", [-1, 1])
def test_an_earlier_or_later_format_is_refused(
    name: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        # As another version of dprec writes it.
        elsewhere.setattr(formats, "NUMBER", formats.NUMBER + step)
        elsewhere.setitem(formats.STAMP, formats.SCHEMA, formats.NUMBER)
        read = WRITERS[name](tmp_path)
        read()
    with pytest.raises(InputError) as caught:
        read()
    assert (caught.value.where.rpartition(": ")[2], caught.value.found) == (
        "schema",
        str(formats.NUMBER + step),
    )
