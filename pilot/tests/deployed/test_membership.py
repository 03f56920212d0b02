"""People join a pilot on a real SuperLink, get other keys, are unregistered and removed; all others go on."""

import csv
import shutil
from pathlib import Path

import pytest

from dprec.errors import RunError
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.joining import join, rotate
from dprec_pilot.server.enrolling import admit, enrol, invite, remove
from pilot.tests.deployed.wire import PROGRAMS, Wire, await_that, charges, free_port, kill, wired
from pilot.tests.server.pilots import BLP, pilot
from simulation.execution import load_ratings
from simulation.storage.run_files import read_run

pytestmark = [
    pytest.mark.skipif(
        shutil.which("flower-superlink", path=str(PROGRAMS)) is None,
        reason="flower-superlink is not installed",
    ),
    # Flower's, where it packs the app.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.thorough,
]

NAMES = ["ann", "bob", "cy", "dee"]
UNKNOWN = "the server no longer knows the key of this device"


def said(wire: Wire, log: str, name: str, words: str) -> bool:
    return any(f" {name}: " in line and words in line for line in wire.log(log).splitlines())


def test_devices_join_rotate_and_are_removed(tmp_path: Path) -> None:
    port = free_port()
    config, server = pilot(BLP, tmp_path / "pilot", devices=0, seeded=False, host="127.0.0.1", port=port)
    train, _ = load_ratings(config)
    folders = [tmp_path / "homes" / name for name in NAMES]
    assert invite(server, NAMES) == [0, 1, 2, 3]
    for user, folder in enumerate(folders):
        own = slice(train.indptr[user], train.indptr[user + 1])
        mine = tmp_path / f"{user}.csv"
        with mine.open("w", newline="") as file:
            cells = zip(train.item_ids[train.items[own]], train.values[own], strict=True)
            csv.writer(file).writerows([("movieId", "stars"), *cells])
        line = join(server.invitation_file, mine, folder, user).line.text
        admit(server, [("LINE", line)])
    with wired(tmp_path / "pilot", port) as wire:
        assert enrol(server, wire.address) == 4
        serving = wire.devices(folders, "devices")
        wire.run(server, tmp_path / "out")
        await_that(lambda: wire.log("devices").count(": wrote ") == 4, wire)
        await_that((tmp_path / "out" / "summary.json").exists, wire)
        kill(serving)
        assert [record.replies for record in read_run(tmp_path / "out").rounds] == [4]
        assert [len(charges(folder)) for folder in folders] == [1] * 4

        secret = DeviceFolder(folders[0]).secret
        admit(server, [("LINE", rotate(folders[0]).text)])
        wire.flower("supernode", "unregister", str(server.enrolled()[1].node_id), "pilot")
        with pytest.raises(RunError, match=r"1 of 4 devices .*enrolment\.csv:3: user bob: its key was unreg"):
            enrol(server, wire.address)
        remove(server, wire.address, "cy")
        serving = wire.devices(folders, "later")
        await_that(lambda: said(wire, "later", "ann", "online, by its next key"), wire)
        await_that(lambda: all(said(wire, "later", name, UNKNOWN) for name in ("bob", "cy")), wire)
        kill(serving)
        assert not said(wire, "later", "dee", "not served")
        assert DeviceFolder(folders[0]).secret == secret

        admit(server, [("LINE", rotate(folders[1]).text)])
        assert enrol(server, wire.address) == 3
        wire.devices(folders, "last")
        await_that(lambda: said(wire, "last", "bob", "online, by its next key"), wire)
    assert [len(charges(folder)) for folder in folders] == [1] * 4
