"""A pilot whose devices mask what they add up, on a real SuperLink: the same bits as in the simulation."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dprec.exchange import STATISTICS, SummedSetup
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.ledger import most_lost
from dprec_pilot.server.enrolling import enrol
from pilot.tests.deployed.wire import PROGRAMS, await_that, charges, free_port, kill, wired
from pilot.tests.server.pilots import GRAM_SECURE, pilot
from simulation import run
from simulation.storage.run_files import read_run

pytestmark = [
    pytest.mark.skipif(
        shutil.which("flower-superlink", path=str(PROGRAMS)) is None,
        reason="flower-superlink is not installed",
    ),
    # Flower's, where it packs the app.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

USERS, ROUNDS = 7, 2
SECURE = {
    **GRAM_SECURE,
    "dataset": {**GRAM_SECURE["dataset"], "users": USERS, "ratings": 140},
    "protocol": {
        **GRAM_SECURE["protocol"],
        "aggregation": {"kind": "secure", "dropouts": 0.2, "colluders": 2},
    },
}


@pytest.mark.thorough
def test_secure_sums_over_a_superlink_are_those_of_the_simulation(tmp_path: Path) -> None:
    """All devices are killed once, after the first of them has said which masks do not cancel."""
    port = free_port()
    config, server = pilot(SECURE, tmp_path / "pilot", host="127.0.0.1", port=port)
    options = server.path / "deployment.json"
    options.write_text(json.dumps({**json.loads(options.read_text()), "ask_again": 3.0}))
    devices = sorted((tmp_path / "pilot" / "devices").iterdir())
    with wired(tmp_path / "pilot", port) as wire:
        assert enrol(server, wire.address) == USERS
        serving = wire.devices(devices, "devices", "--seeded")
        wire.run(server, tmp_path / "out")
        await_that(lambda: "answered train.unmask" in wire.log("devices"), wire)
        kill(serving)
        wire.devices(devices, "devices", "--seeded")
        await_that(lambda: wire.log("superlink").count("Finished task") == 1, wire)
        await_that(lambda: wire.log("devices").count(": wrote ") >= USERS, wire)
    deployed, simulated = read_run(tmp_path / "out"), run(config, page=False)
    for way in ("up", "down"):
        for what in ("payload", "message"):
            column = f"{way}link_{what}_bytes"
            assert np.array_equal(deployed.traffic[column], simulated.traffic[column]), column
    assert [record.replies for record in deployed.rounds] == [USERS] * ROUNDS
    found = {}
    for user, folder in enumerate(devices):
        spent = charges(folder)
        assert [(charge.question, charge.round) for charge in spent] == [(STATISTICS, 1), (STATISTICS, 2)]
        setup = DeviceFolder(folder).agreement.setup
        assert isinstance(setup, SummedSetup)
        assert most_lost(spent).per_user == pytest.approx(setup.loss_of(range(1, ROUNDS + 1)))
        with (folder / "predictions.csv").open() as file:
            found |= {(user, row["item"]): float(row["prediction"]) for row in csv.DictReader(file)}
    users = {str(user): place for place, user in enumerate(simulated.traffic["user"])}
    columns = (simulated.predictions[name].tolist() for name in ("user", "item", "prediction"))
    expected = {(users[str(user)], str(item)): value for user, item, value in zip(*columns, strict=True)}
    assert len(expected) > USERS
    assert {cell: found[cell] for cell in expected} == expected
