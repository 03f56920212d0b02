"""A run on a real SuperLink whose server and devices are killed: the same bits, and nobody pays twice."""

import shutil
from pathlib import Path

import pytest

from dprec_pilot.server.run_log import ENDED, how_it_ended
from pilot.tests.deployed.kills import HALF, SERVER_APP, SUPERLINK, Expected, play, staged, wait_for
from pilot.tests.deployed.wire import PROGRAMS

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        shutil.which("flower-superlink", path=str(PROGRAMS)) is None,
        reason="flower-superlink is not installed",
    ),
    # Flower's, where it packs the app.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def test_a_run_outlives_its_serverapp_its_superlink_and_half_of_its_devices(tmp_path: Path) -> None:
    expected, output = Expected.simulated(), tmp_path / "out"
    with staged(tmp_path, runs=1) as stage:
        play(stage, output, [(3, (HALF,)), (9, (SERVER_APP, SUPERLINK))])
        wait_for(lambda: all((device / "predictions.csv").exists() for device in stage.devices))
        assert expected.differences(stage, output, 1) == []
        wait_for(lambda: (how_it_ended(output) or "").startswith(ENDED))
    assert sorted(path.name for path in output.iterdir() if path.suffix == ".json") == ["summary.json"]
    began = [line for line in (output / "run.log").read_text().splitlines() if " the run " in line]
    assert sum(" begins" in line or " goes on" in line for line in began) == 2
