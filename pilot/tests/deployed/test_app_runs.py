"""The app on a SuperNode of Flower: it refuses."""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pilot.tests.deployed.kills import listens
from pilot.tests.deployed.wire import PROGRAMS, free_port
from tests.paths import ROOT
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        shutil.which("flower-superlink", path=str(PROGRAMS)) is None,
        reason="flower-superlink is not installed",
    ),
]

APP = ROOT / "pilot/dprec_pilot/app"

ASKING = '''
"""A server that asks whoever is there for reports, as dprec does, and for anything else."""
import time
from flwr.app import Message, RecordDict
from flwr.serverapp import ServerApp

app = ServerApp()

@app.main()
def main(grid, context):
    while not (nodes := list(grid.get_node_ids())):
        time.sleep(0.2)
    asked = [Message(RecordDict(), node, kind) for node in nodes for kind in ("query.report", "train")]
    for reply in grid.send_and_receive(asked):
        print("answered", reply.has_content(), reply.error.code, repr(reply.error.reason), flush=True)
'''


SUPERLINK = "flower-superlink --insecure --host 127.0.0.1 --port {port}"
NODES = "num-supernodes=3 client-resources-num-cpus=1"


@dataclass
class Flower:
    """Programs of Flower, with a folder for their logs and a configuration of their own."""

    folder: Path
    port: int
    """Of the SuperLink."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, command: str) -> None:
        """Start a program."""
        with (self.folder / "programs.log").open("ab") as log:
            words = shlex.split(command.format(port=self.port, own=free_port()))
            own = {"env": self.environment, "cwd": self.folder, "start_new_session": True}
            self.processes.append(subprocess.Popen(words, stdout=log, stderr=log, **own))

    def run(self, app: Path, *options: str) -> str:
        """Run an app by the command `flwr run`, and return what Flower's log says of it."""
        connection = f'[superlink.here]\naddress = "127.0.0.1:{self.port}"\ninsecure = true\n'
        (self.folder / "flwr").mkdir()
        (self.folder / "flwr" / "config.toml").write_text(connection)
        wait_until(lambda: listens(self.port), logs=(self.folder / "programs.log").read_text)
        command = ["flwr", "run", str(app), "here", "--stream", *options]
        done = subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return done.stdout + done.stderr

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "FLWR_HOME": str(self.folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'pilot'}",
        }


@pytest.fixture
def flower(tmp_path: Path) -> Iterator[Flower]:
    """Kill what was started at the end, with all that it has started."""
    programs = Flower(tmp_path, free_port())
    yield programs
    for process in programs.processes:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_supernode_that_runs_it_refuses(flower: Flower, tmp_path: Path) -> None:
    asking = shutil.copytree(APP, tmp_path / "asking")
    (asking / "dprec_pilot_app" / "server_app.py").write_text(ASKING)
    flower.start(SUPERLINK)
    flower.start(
        "flower-supernode --insecure --superlink 127.0.0.1:{port} --port {own} "
        "--node-config 'partition-id=0 num-partitions=1'"
    )
    log = flower.run(asking)
    assert [line for line in log.splitlines() if line.startswith("answered")] == [
        "answered False 102 'NOT_SET_UP'"
    ] * 2, log
