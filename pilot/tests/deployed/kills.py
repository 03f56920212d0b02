"""A pilot of pg-mf whose SuperLink, ServerApp or devices are killed, and what every run has to leave."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socket import create_connection, socket
from typing import Any

import numpy as np

from dprec import load
from dprec_pilot.server.enrolling import enrol
from dprec_pilot.server.preparing import PilotOptions, prepare

DEVICES, ROUNDS = 6, 3
POLL_SECONDS, LOOK_SECONDS, PATIENCE_SECONDS = 0.5, 0.01, 300.0
SERVER_APP, SUPERLINK, HALF = "ServerApp", "SuperLink", "half of the devices"
KINDS = (SERVER_APP, SUPERLINK, HALF)

CONFIG: dict[str, Any] = {
    "name": "kills",
    "seed": 1,
    "dataset": {"kind": "synthetic", "users": DEVICES, "items": 30, "ratings": 80},
    "split": {"kind": "holdout", "test_fraction": 0.2},
    "protocol": {
        "kind": "iterative",
        "privacy": {"epsilon": 1.6, "per": "user"},
        "gradient": {"kind": "one-bit"},
        "rounds": ROUNDS,
        "rank": 2,
    },
    "simulation": {"backend": "local"},
}


def environment() -> dict[str, str]:
    """Return the environment of a process of the pilot, which finds the commands of this interpreter."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **quiet, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[1])}


def listens(port: int) -> bool:
    """Return whether anybody takes connections on a port."""
    try:
        create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def kill_server_apps(server: Path) -> None:
    """Kill the processes in which the SuperLink of a server's folder runs its app."""
    home = f"FLWR_HOME={server}/flwr".encode()
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            command = (entry / "cmdline").read_bytes().split(b"\0")
            own = home in (entry / "environ").read_bytes().split(b"\0")
            if own and any(part.endswith(b"flwr-serverapp") for part in command):
                os.kill(int(entry.name), signal.SIGKILL)


def predicted(folders: Sequence[Path]) -> Iterator[tuple[int, str, float]]:
    """Yield what devices predict: the number of the device, an item, and its rating."""
    for number, folder in enumerate(folders):
        with suppress(FileNotFoundError), (folder / "predictions.csv").open() as file:
            for row in csv.DictReader(file):
                yield number, row["item"], float(row["prediction"])


@dataclass
class Stage:
    """A pilot on this machine: its SuperLink, and its devices in two processes."""

    folder: Path
    port: int
    absent: int
    """Devices that never come."""
    superlink: subprocess.Popen[bytes] | None = None
    halves: list[subprocess.Popen[bytes] | None] = field(default_factory=lambda: [None, None])

    @property
    def server(self) -> Path:
        """The server's folder."""
        return self.folder / "pilot" / "server"

    @property
    def devices(self) -> list[Path]:
        """The folders of the devices."""
        return sorted((self.folder / "pilot" / "devices").iterdir())

    def start_superlink(self) -> None:
        """Start the SuperLink, and wait until it listens."""
        command = [str(self.server / "superlink.sh"), "127.0.0.1", str(self.port)]
        self.superlink = self._started(command, "superlink")
        wait_for(lambda: listens(self.port))

    def start_half(self, half: int) -> None:
        """Start a half of the devices."""
        where = ["--superlink", f"127.0.0.1:{self.port}", "--ca", str(self.folder / "pilot" / "ca.crt")]
        own = [str(path) for path in self.devices[self.absent + half :: 2]]
        command = [sys.executable, "-m", "dprec_pilot", "device", *own, *where]
        flags = ["--interval", str(POLL_SECONDS), "--seeded"]
        self.halves[half] = self._started([*command, *flags], f"devices{half}")

    def kill(self, kind: str) -> None:
        """Kill something, and start it again unless it is the ServerApp."""
        if kind == HALF:
            killed(self.halves[1])
            self.start_half(1)
        elif kind == SUPERLINK:
            killed(self.superlink)
            self.start_superlink()
        else:
            kill_server_apps(self.server)

    def end(self) -> None:
        """Kill all processes, with what they have started."""
        for process in (self.superlink, *self.halves):
            if process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        kill_server_apps(self.server)

    def _started(self, command: Sequence[str], name: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, env=environment(), stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )


@contextmanager
def staged(
    folder: Path, runs: int, absent: int = 0, quorum: float = 1.0, deadline: float = 600.0
) -> Iterator[Stage]:
    """Prepare a pilot whose devices pay for so many runs, and start all its processes."""
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    given: dict[str, Any] = {"seeded": True, "runs": runs, "quorum": quorum, "deadline": deadline}
    options = PilotOptions(host="127.0.0.1", port=port, **given)
    server = prepare(load(CONFIG), folder / "pilot", options)
    known = json.loads((server.path / "deployment.json").read_text())
    (server.path / "deployment.json").write_text(json.dumps({**known, "ask_again": 5.0}))
    stage = Stage(folder, port, absent)
    try:
        stage.start_superlink()
        enrol(server, f"127.0.0.1:{port}")
        for half in range(2):
            stage.start_half(half)
        yield stage
    finally:
        stage.end()


def killed(process: subprocess.Popen[bytes] | None) -> None:
    """Kill a process alone, not what it has started."""
    assert process is not None
    process.kill()
    process.wait()


def wait_for(holds: Callable[[], bool]) -> None:
    """Wait until something holds; raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("what was waited for has not happened")
        time.sleep(LOOK_SECONDS)


def lines_of(path: Path) -> int:
    """Return how many whole lines a file has; 0 if there is none."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def resumed(stage: Stage, output: Path) -> None:
    """Go on with a run, as soon as nobody else does."""
    from dprec_pilot.server.superlink import resume_run

    resume_run(stage.server, output, page=False)


def _has_come_to(output: Path, lines: int) -> bool:
    return (output / "summary.json").exists() or lines_of(output / "journal.jsonl") >= lines


def play(stage: Stage, output: Path, kills: Sequence[tuple[int, tuple[str, ...]]]) -> float:
    """Start a run, kill something whenever its journal has so many lines; return how long it takes."""
    from dprec_pilot.server.superlink import start_run

    began = time.monotonic()
    start_run(stage.server, output, page=False)
    for lines, kinds in kills:
        wait_for(partial(_has_come_to, output, lines))
        if (output / "summary.json").exists():
            break
        for kind in kinds:
            stage.kill(kind)
        if set(kinds) - {HALF}:
            resumed(stage, output)
    wait_for(lambda: (output / "summary.json").exists() and not (output / "journal.jsonl").exists())
    return time.monotonic() - began


@dataclass(frozen=True)
class Expected:
    """What every run has to leave, by the simulation."""

    traffic: dict[str, Any]
    """Columns of traffic.csv."""
    predictions: dict[tuple[int, str], float]
    """By user and item, of test ratings."""
    scale: tuple[float, float]

    @classmethod
    def simulated(cls) -> Expected:
        """Simulate the pilot."""
        from dprec import run

        result = run(load(CONFIG), page=False)
        users = {str(user): place for place, user in enumerate(result.traffic["user"])}
        columns = (result.predictions[name] for name in ("user", "item", "prediction"))
        cells = {(users[str(user)], str(item)): float(own) for user, item, own in zip(*columns, strict=True)}
        names = [f"{way}link_{what}_bytes" for way in ("up", "down") for what in ("payload", "message")]
        traffic = {name: result.traffic[name] for name in (*names, "epsilon_per_user")}
        scale = result.record.summary.dataset.scale
        assert scale is not None
        return cls(traffic, cells, scale)

    def differences(self, stage: Stage, output: Path, runs: int) -> list[str]:
        """Return what is otherwise than it has to be after so many runs."""
        from simulation.storage.run_files import read_run

        files, found = read_run(output), []
        found += [name for name, own in self.traffic.items() if not np.array_equal(files.traffic[name], own)]
        if [record.replies for record in files.rounds] != [DEVICES] * ROUNDS:
            found.append("replies")
        given = {(user, item): rating for user, item, rating in predicted(stage.devices)}
        for folder in stage.devices:
            charges = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
            rounds = [charge["round"] for charge in charges]
            if rounds != [*range(1, ROUNDS + 1)] * runs or len({charge["run"] for charge in charges}) != runs:
                found.append(f"what {folder.name} paid")
        if any(np.clip(given[cell], *self.scale) != own for cell, own in self.predictions.items()):
            found.append("predictions")
        return found
