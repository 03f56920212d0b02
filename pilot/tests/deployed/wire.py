"""A SuperLink, devices of pilots, and between them proxies that count bytes and read what is inside TLS."""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection, socket

import pytest
from typer.testing import CliRunner

from dprec.components import from_json
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.ledger import Charge
from dprec_pilot.server.server_folder import ServerFolder
from pilot.tests.deployed.counting_proxy import Passed, counting_proxy
from tests.paths import ROOT
from tests.waiting import wait_until

PROGRAMS = Path(sys.executable).parent
ON_A_SUPERLINK = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        shutil.which("flower-superlink", path=str(PROGRAMS)) is None,
        reason="flower-superlink is not installed",
    ),
    # Flower's, where it packs the app.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
POLL_SECONDS = 0.5
PATIENCE_SECONDS = 100.0
"""Far less than the deadline of a round: one that has to be waited out is a fault."""


@dataclass
class Wire:
    """A pilot's SuperLink that runs, reached through proxies: as the network sees it, and inside TLS."""

    folder: Path
    port: int
    counted: Passed
    read: Passed
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Where the operator reaches the SuperLink."""
        return f"127.0.0.1:{self.port}"

    def devices(self, folders: Sequence[Path], name: str, *flags: str) -> subprocess.Popen[bytes]:
        """Serve devices from one process, whose log is NAME.log."""
        where = ["--superlink", f"127.0.0.1:{self.counted.port}", "--ca", str(self.folder / "ca.crt")]
        command = [sys.executable, "-m", "dprec_pilot", "device", *map(str, folders), *where]
        return self._start([*command, "--interval", str(POLL_SECONDS), *flags], name)

    def run(self, server: ServerFolder, output: Path) -> None:
        """Start a run as an operator does, by the command `flwr run`."""
        settings = f'folder="{server.path}" output="{output}" page=false'
        self.flower("run", str(ROOT / "pilot/dprec_pilot/app"), "pilot", "--run-config", settings)

    def flower(self, *command: str) -> str:
        """Give Flower a command as an operator does, in this process; return what it prints."""
        from flwr.cli.app import app

        # Elsewhere than in a checkout, whose folder `pilot` Flower would take for an app.
        with chdir(self.folder):
            result = CliRunner(env={"FLWR_HOME": str(self.folder / "server" / "flwr")}).invoke(app, command)
        assert result.exit_code == 0, result.output
        return result.output

    def log(self, name: str) -> str:
        """Return what a process has said."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def requests(self, path: str) -> int:
        """Return how many requests for a path of the fleet have passed."""
        return len(re.findall(rb"POST /v1/fleet/" + path.encode() + rb" ", bytes(self.read.kept_up)))

    def _start(self, command: Sequence[str], name: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "FLWR_HOME": str(self.folder / "server" / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'pilot'}",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        self.processes.append(process)
        return process


def listens(port: int) -> bool:
    """Return whether anybody takes connections on a port."""
    try:
        create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def wired(folder: Path, port: int) -> Iterator[Wire]:
    """Start the SuperLink of a pilot, and the proxies before it; kill all processes at the end."""
    with ExitStack() as stack:
        inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        inside.load_cert_chain(folder / "server" / "server.crt", folder / "server" / "server.key")
        onward = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        read = stack.enter_context(
            counting_proxy(("127.0.0.1", port), keep=True, towards_devices=inside, towards_server=onward)
        )
        counted = stack.enter_context(counting_proxy(("127.0.0.1", read.port)))
        wire = Wire(folder, port, counted, read)
        stack.callback(_kill, wire)
        superlink = wire._start(
            [str(folder / "server" / "superlink.sh"), "127.0.0.1", str(port)], "superlink"
        )
        await_that(lambda: superlink.poll() is not None or listens(port), wire)
        yield wire


def await_that(holds: Callable[[], bool], wire: Wire) -> None:
    """Wait until something holds; fail with the end of every log if it does not."""

    def logs() -> str:
        names = (path.stem for path in wire.folder.glob("*.log"))
        return "\n".join(f"{name}: {wire.log(name)[-2000:]}" for name in names)

    wait_until(holds, patience=PATIENCE_SECONDS, logs=logs)


def charges(folder: Path) -> list[Charge]:
    """Return the whole lines of a device's ledger."""
    path = DeviceFolder(folder).ledger_file
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    return [
        from_json(Charge, json.dumps({key: line[key] for key in line if key != "chain"}), "")
        for line in whole
    ]


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with SIGKILL."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def _kill(wire: Wire) -> None:
    """Kill all processes with what they have started."""
    for process in wire.processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        process.wait()
