"""A pilot whose devices repeat their answers, on a real SuperLink, with noise from their own secrets."""

import shutil
from pathlib import Path

import pytest

from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.server.enrolling import enrol
from pilot.tests.deployed.wire import PROGRAMS, await_that, charges, free_port, kill, wired
from pilot.tests.server.pilots import USERS, WEEKLY, pilot

pytestmark = [
    pytest.mark.skipif(
        shutil.which("flower-superlink", path=str(PROGRAMS)) is None,
        reason="flower-superlink is not installed",
    ),
    # Flower's, where it packs the app.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def test_a_second_run_after_a_restart_and_changes_is_as_the_first_and_costs_nothing(tmp_path: Path) -> None:
    port = free_port()
    _, server = pilot(WEEKLY, tmp_path / "pilot", seeded=False, host="127.0.0.1", port=port)
    devices = [DeviceFolder(path) for path in sorted((tmp_path / "pilot" / "devices").iterdir())]
    paths, lists = [device.path for device in devices], []
    with wired(tmp_path / "pilot", port) as wire:
        assert enrol(server, wire.address) == USERS
        for run in (1, 2):
            serving = wire.devices(paths, "devices")
            wire.run(server, tmp_path / f"out{run}")
            await_that(lambda run=run: wire.log("devices").count(": wrote ") >= run * USERS, wire)  # type: ignore[misc]
            lists.append([told(device) for device in devices])
            kill(serving)
            for device in devices:
                device.predictions_file.unlink()
            devices[0].profile_file.write_text(upside_down(devices[0].profile_file.read_text()))
    # A fit begins elsewhere in every run, and ends nearby; other answers move predictions by far more.
    for one, other in zip(*lists, strict=True):
        assert one.keys() == other.keys()
        assert [other[item] for item in one] == pytest.approx([*one.values()], abs=0.05)
    assert [len(charges(path)) for path in paths] == [1] * USERS


def told(device: DeviceFolder) -> dict[str, float]:
    """Return what a device has been told to expect of items."""
    lines = (line.split(",") for line in device.predictions_file.read_text().split()[1:])
    return {item: float(prediction) for item, prediction in lines}


def upside_down(profile: str) -> str:
    """Return a profile whose ratings are all changed but those in the middle of the scale."""
    header, *lines = profile.splitlines()
    changed = [f"{item},{6 - float(rating)}" for item, rating in (line.split(",") for line in lines)]
    return "\n".join([header, *changed, ""])
