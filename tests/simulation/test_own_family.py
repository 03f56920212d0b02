"""A family of reports from a user's file goes wherever ours go, with no line of the source changed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulation import audit, run
from simulation.deployment.serving import serve
from simulation.storage.run_files import read_run
from tests.simulation.deployment.pilots import grid_of, pilot

OWN = "tests.own_family:OwnBits"
EPSILON = 4.0

VALUES: dict[str, Any] = {
    "name": "own-bits",
    "seed": 3,
    "dataset": {"kind": "synthetic", "users": 30, "items": 20, "ratings": 240},
    "split": {"kind": "holdout", "test_fraction": 0.2},
    "protocol": {
        "kind": "one-shot",
        "privacy": {"epsilon": EPSILON, "per": "user"},
        "mechanism": {"kind": OWN, "bits": 2},
        "completion": {"kind": "calibrated", "sweeps": 4},
        "personalization": "on-device",
    },
    "simulation": {"backend": "local", "users_per_node": 7},
}


def test_its_loss_is_declared() -> None:
    here = run(VALUES, page=False)
    privacy = here.summary["privacy"]
    assert (privacy["status"], [own["component"] for own in privacy["declared_by"]]) == ("declared", [OWN])
    assert privacy["epsilon_claimed"]["per_user"] == pytest.approx(EPSILON)
    (record,) = here.record.rounds
    assert (record.replies, record.failures) == (30, 0)


def test_it_is_audited() -> None:
    found = audit(VALUES, trials=2000)
    assert found.holds
    assert [*found.declared_by] == [OWN]
    measured = {finding.test: finding for finding in found.findings if not finding.exact}
    assert measured["all of three ratings"].promised == pytest.approx(EPSILON)
    assert measured["all of three ratings"].at_least > 0.2 * EPSILON


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
