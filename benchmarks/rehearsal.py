"""The rehearsal of a pilot: a hundred devices on this machine, and all that goes wrong with them.

    python benchmarks/rehearsal.py pg-mf --folder rehearsal

By the commands of an operator (docs/deployment.md), on a SuperLink with TLS: five devices never come, five
leave after the first round, five come after the second. The server's certificate expires on the way; the
ServerApp is killed once, and the SuperLink once. What happened is printed as a table. At the end, the run is
held against a simulation whose users answered in the same rounds: the answers of each round, the bytes of
payload and the losses of every user, and the predictions of every device.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from kills import environment, kill_server_apps, listens, predicted

NEVER, LEAVE, LATE, PROCESSES = 5, 5, 5, 4
"""Devices that never come, that leave and that come late; processes that serve the others."""

PATIENCE_SECONDS = 300.0
"""How long anything is waited for."""

SETTINGS = {
    "pg-mf": ("protocol.rounds=4", "protocol.rank=4"),
    "dp-als": (
        "protocol.aggregation={kind: secure, dropouts: 0.25, colluders: 2}",
        "protocol.factorization={rank: 2, bias_rounds: 2, factor_rounds: 2}",
    ),
    "gram-secagg": ("protocol.aggregation={kind: secure, dropouts: 0.25, colluders: 2}",),
}
"""What is set beside a preset, so that there are rounds enough and so many may drop out."""


@dataclass
class Rehearsal:
    """A pilot that is rehearsed, and what has happened so far."""

    folder: Path
    port: int
    began: float = field(default_factory=time.monotonic)
    events: list[str] = field(default_factory=list)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    valid_until: float = 0.0
    """When the server's first certificate expires, on the clock of `time.monotonic`."""

    @property
    def server(self) -> Path:
        """The server's folder."""
        return self.folder / "pilot" / "server"

    @property
    def output(self) -> Path:
        """The directory of the run."""
        return self.folder / "out"

    def note(self, what: str, seen: str = "") -> None:
        """Write down what happens, and what is seen of it."""
        self.events.append(f"| {time.monotonic() - self.began:.0f} | {what} | {seen} |")
        print(self.events[-1], flush=True)

    def dprec(self, *arguments: str | Path) -> str:
        """Run a command to its end; return what it says, or exit with it when it fails."""
        command = [sys.executable, "-m", "dprec", *map(str, arguments)]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a process in a group of its own, whose log is NAME.log."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env=environment(), stdout=log, stderr=log, start_new_session=True
            )

    def serve(self, name: str, devices: Sequence[Path]) -> None:
        """Serve devices from one process."""
        where = ["--superlink", f"127.0.0.1:{self.port}", "--ca", str(self.folder / "pilot" / "ca.crt")]
        command = [sys.executable, "-m", "dprec", "device", *map(str, devices), *where]
        self.start(name, [*command, "--interval", "1", "--seeded"])

    def start_superlink(self) -> None:
        """Start the SuperLink, and wait until it listens."""
        self.start("superlink", [str(self.server / "superlink.sh"), "127.0.0.1", str(self.port)])
        self.wait(lambda: listens(self.port), "the SuperLink listens")

    def kill(self, name: str) -> None:
        """Kill a process, and what it has started."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> str:
        """Return what a process has said."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds, or give up."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise SystemExit(f"after {PATIENCE_SECONDS:g} s, it is not so that {what}")
            time.sleep(0.1)

    def wait_for_round(self, number: int) -> None:
        """Wait until so many rounds have ended."""
        rounds = self.output / "rounds.jsonl"
        self.wait(
            lambda: rounds.exists() and rounds.read_text().count("\n") >= number, f"round {number} has ended"
        )


def options(preset: str, devices: int) -> list[str]:
    """Return the settings of the run, as for a command."""
    data = f"dataset={{kind: synthetic, users: {devices}, items: 120, ratings: {40 * devices}}}"
    split = "split={kind: holdout, test_fraction: 0.2}"
    if preset.startswith("gram"):
        data, split = (
            data.replace("}", ", positive: '>= 3', min_items: 2}"),
            split.replace("hold", "user-hold"),
        )
    given = (data, split, "simulation.backend=local", *SETTINGS.get(preset, ()))
    return [part for setting in given for part in ("--set", setting)]


def plant_certificate(server: Path, seconds: float) -> None:
    """Give the server a certificate that expires soon."""
    from simulation.deployment.certificates import Authority, hosts_of, read_certificate

    authority = Authority.read(server / "ca.crt", server.parent / "authority" / "ca.key")
    hosts = hosts_of(read_certificate(server / "server.crt"))
    issued = authority.issue(hosts, seconds / 86400)
    (server / "server.crt").write_bytes(issued.certificate)
    (server / "server.key").write_bytes(issued.key)


def prepare(pilot: Rehearsal, preset: str, devices: int, valid: float) -> list[Path]:
    """Prepare the pilot, start its SuperLink and enrol everybody; return the folders of the devices."""
    where = ["--devices", str(devices), "--host", "127.0.0.1", "--port", str(pilot.port), "--seeded"]
    rounds = ["--deadline", "90", "--quorum", "0.8"]
    pilot.dprec(
        "deploy", "prepare", preset, pilot.folder / "pilot", *where, *rounds, *options(preset, devices)
    )
    plant_certificate(pilot.server, valid)
    pilot.valid_until = time.monotonic() + valid + 1
    pilot.note(f"prepared, {devices} devices, quorum 0.8", f"the certificate is valid for {valid:g} s")
    pilot.start_superlink()
    said = pilot.dprec("deploy", "enrol", pilot.server, "--superlink", f"127.0.0.1:{pilot.port}")
    pilot.note("SuperLink started, `dprec deploy enrol`", said.splitlines()[-1])
    return sorted((pilot.folder / "pilot" / "devices").iterdir())


def rehearse(pilot: Rehearsal, folders: Sequence[Path]) -> None:
    """Run the protocol to its end, with all that goes wrong."""
    leaving, late = folders[NEVER : NEVER + LEAVE], folders[NEVER + LEAVE : NEVER + LEAVE + LATE]
    staying = folders[NEVER + LEAVE + LATE :]
    for number in range(PROCESSES):
        pilot.serve(f"devices-{number}", staying[number::PROCESSES])
    pilot.serve("leaving", leaving)
    pilot.dprec("deploy", "run", pilot.server, "-o", pilot.output)
    pilot.note(f"{len(staying) + LEAVE} devices are served, `dprec deploy run`", f"{NEVER} never come")
    pilot.wait_for_round(1)
    pilot.kill("leaving")
    kill_server_apps(pilot.server)
    pilot.note(f"round 1 has ended; {LEAVE} devices leave, the ServerApp is killed")
    pilot.dprec("deploy", "resume", pilot.server, pilot.output)
    pilot.note("`dprec deploy resume`")
    pilot.wait_for_round(2)
    pilot.serve("late", late)
    pilot.note(f"round 2 has ended; {LATE} devices come")
    pilot.kill("superlink")
    time.sleep(max(0.0, pilot.valid_until - time.monotonic()))
    pilot.start_superlink()
    pilot.note("the SuperLink is killed and started again; meanwhile its certificate has expired")
    pilot.wait(lambda: "expired" in pilot.log("devices-0"), "devices say that the certificate has expired")
    line = next(line for line in pilot.log("devices-0").splitlines() if "expired" in line)
    pilot.note("what a device says", line.partition(" ")[2])
    pilot.dprec("deploy", "renew", pilot.server)
    pilot.kill("superlink")
    pilot.start_superlink()
    pilot.dprec("deploy", "resume", pilot.server, pilot.output)
    pilot.note("`dprec deploy renew`, the SuperLink started again, `dprec deploy resume`")
    pilot.wait((pilot.output / "summary.json").exists, "the run has ended")
    pilot.note("the run has ended", " ".join((pilot.output / "run.log").read_text().splitlines()[-1:]))
    pilot.serve("leaving", leaving)
    pilot.dprec("deploy", "resume", pilot.server, pilot.output)
    pilot.wait(lambda: all((each / "predictions.csv").exists() for each in leaving), "predictions arrive")
    pilot.note(f"{LEAVE} devices come back, `dprec deploy resume`", "they get what was learned, at no cost")
    pilot.dprec("deploy", "resume", pilot.server, pilot.output, "--forget")


def differences(pilot: Rehearsal, preset: str, folders: Sequence[Path]) -> list[str]:
    """Return what is otherwise than in a simulation in which users answered in the same rounds.

    In secure sums, the bytes of who missed a round are left out: a simulation charges dropouts for all
    messages but their report.
    """
    from clients.faults import PUNCTUAL
    from dprec import run
    from simulation.storage.exchanges import attendance_in
    from simulation.storage.run_files import read_run

    overrides = [*options(preset, len(folders))[1::2], f"simulation.faults.attendance={pilot.output}"]
    here, there = run(preset, overrides=overrides, page=False), read_run(pilot.output)
    found = []
    if [each.replies for each in here.record.rounds] != [each.replies for each in there.rounds]:
        found.append("answers of rounds")
    users = [str(user) for user in here.traffic["user"].tolist()]
    there_always = (attendance_in(pilot.output, users).fates == PUNCTUAL).all(axis=0)
    for column in ("uplink_payload_bytes", "downlink_payload_bytes", "epsilon_composed"):
        differ = (here.traffic[column] != there.traffic[column]) & (there_always | (preset == "pg-mf"))
        if differ.any():
            found.append(f"{column} of {differ.sum()} users")
    given, compared = {(number, item): rating for number, item, rating in predicted(folders)}, 0
    number_of = {user: number for number, user in enumerate(users)}
    scale: Any = there.summary.dataset.scale
    wrong = set()
    for user, item, own in zip(
        *(here.predictions[name].tolist() for name in ("user", "item", "prediction")), strict=True
    ):
        rating = given.get((number_of[str(user)], str(item)))
        if rating is not None:
            compared += 1
            if np.clip(rating, *scale) != own:
                wrong.add(user)
    if wrong:
        found.append(f"predictions of {len(wrong)} users")
    pilot.note(
        "held against a simulation of the same attendance",
        f"{compared} predictions; {', '.join(found) or 'no difference'}",
    )
    return found


def main() -> None:
    """Print what happens, and end with 1 if the run differs from the simulation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("preset", choices=sorted(SETTINGS))
    parser.add_argument("--folder", type=Path, required=True, help="a new folder")
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--valid", type=float, default=200, help="seconds until the certificate expires")
    parser.add_argument("--port", type=int, default=8123)
    given = parser.parse_args()
    given.folder.mkdir(parents=True)
    pilot = Rehearsal(given.folder.absolute(), given.port)
    try:
        folders = prepare(pilot, given.preset, given.devices, given.valid)
        rehearse(pilot, folders)
    finally:
        for name in list(pilot.processes):
            pilot.kill(name)
        kill_server_apps(pilot.server)
    sys.exit(bool(differences(pilot, given.preset, folders)))


if __name__ == "__main__":
    main()
