"""Secure sums between devices in this process, each with a folder: what a simulation leaves out is done."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulation import run
from simulation.deployment.server_folder import ServerFolder
from simulation.deployment.serving import serve
from simulation.result import RunResult
from simulation.storage.run_files import RunFiles, read_run
from tests.simulation.conftest import presets
from tests.simulation.deployment.pilots import grid_of, pilot

USERS = 12
TRAFFIC = [
    *(f"{way}link_{what}_bytes" for way in ("up", "down") for what in ("payload", "message")),
    *("messages", "epsilon_composed"),
]
SUMMING = (
    *("secagg-item-effects", "best-secret-set", "gram-secagg", "popularity-secagg"),
    *(
        pytest.param(name, marks=pytest.mark.thorough)
        for name in ("secagg-als", "popularity-by-content-secagg", "public-start")
    ),
)


def secure(name: str, **aggregation: Any) -> dict[str, Any]:
    """Return a preset among so few that each of them is a neighbour of all others."""
    values = presets()[name]
    sets = "positive" in values["dataset"]
    data = {"kind": "synthetic", "users": USERS, "items": 20, "ratings": 150}
    own = {**values["protocol"]["aggregation"], "dropouts": 0.17, "colluders": 2, "norm": 1024}
    return {
        **values,
        "dataset": data | ({"positive": ">= 3", "min_items": 2} if sets else {}),
        "protocol": {**values["protocol"], "aggregation": {**own, **aggregation}},
        "simulation": {"backend": "local"},
    }


def predicted(server: ServerFolder) -> list[list[tuple[str, float]]]:
    """Return what each device has predicted, best first."""
    found = []
    for folder in sorted((server.path.parent / "devices").iterdir()):
        with (folder / "predictions.csv").open() as file:
            found.append([(row["item"], float(row["prediction"])) for row in csv.DictReader(file)])
    return found


def check_same(deployed: RunFiles, simulated: RunResult) -> None:
    for column in TRAFFIC:
        assert np.array_equal(deployed.traffic[column], simulated.traffic[column]), column
    for got, expected in zip(deployed.rounds, simulated.record.rounds, strict=True):
        assert replace(got, seconds=0.0) == replace(expected, seconds=0.0, accuracy=None)
    assert deployed.summary.completion_diagnostics == simulated.record.summary.completion_diagnostics


@pytest.mark.parametrize("name", SUMMING)
def test_secure_sums_are_those_of_the_simulation(tmp_path: Path, name: str) -> None:
    config, server = pilot(secure(name), tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    check_same(read_run(tmp_path / "out"), run(config, page=False))
