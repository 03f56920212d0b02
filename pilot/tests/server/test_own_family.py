"""A family of reports from a user's file is deployed as ours are."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from dprec_pilot.server.serving import serve
from pilot.tests.server.pilots import grid_of, pilot
from simulation import run
from simulation.storage.run_files import read_run
from tests.simulation.test_own_family import OWN, VALUES


def test_it_is_deployed_on_devices_whose_installation_names_it(tmp_path: Path) -> None:
    config, server = pilot(VALUES, tmp_path / "pilot")
    devices = sorted((tmp_path / "pilot" / "devices").iterdir())
    assert json.loads((devices[0] / "device.json").read_text())["classes"] == [OWN]
    serve(grid_of(server), server, tmp_path / "out")
    deployed, simulated = read_run(tmp_path / "out"), run(config, page=False)
    for column in ("uplink_payload_bytes", "uplink_message_bytes"):
        assert np.array_equal(deployed.traffic[column], simulated.traffic[column])
    assert [replace(each, seconds=0.0) for each in deployed.rounds] == [
        replace(each, seconds=0.0, accuracy=None) for each in simulated.record.rounds
    ]
