"""What devices cost: memory, processor time and bytes, idle and for a report, beside Flower's own nodes.

    python benchmarks/devices.py --devices 200 --seconds 600 --supernodes 20

Starts a SuperLink with TLS and SuperNode authentication, and devices with a folder each, all in one process,
which reach it through a proxy that counts bytes. They are idle for some time; then each is asked for one
report of blp-mf. After them, as many of Flower's SuperNodes as are wanted do the same, each a process of its
own, whose app answers with a report that is made up. Nodes go on polling until the last report has arrived.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from counting_proxy import Passed, counting_proxy
from process_memory import Peak, processor_seconds
from superlink import SuperLink, started_superlink, write_app

PATIENCE_SECONDS = 900.0
SETTLE_SECONDS, LEAVE_SECONDS = 15.0, 20.0
REPORT_BYTES = 300
"""Of what the app of a SuperNode answers, about as many as in a report of blp-mf."""

SERVER = """
from pathlib import Path

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

app = ServerApp()
node = ClientApp()

@app.main()
def main(grid, context):
    questions = [Message(RecordDict(), to, "query.report", group_id={group!r}) for to in grid.get_node_ids()]
    replies = [reply for reply in grid.send_and_receive(questions, timeout={patience}) if reply.has_content()]
    Path({answered!r}).write_text(str(len(replies)))

@node.query("report")
def report(message, context):
    record = ConfigRecord({{"first": 0, "reports": [bytes({size})]}})
    return Message(RecordDict({{"reply": record}}), reply_to=message)
"""


class Cost(NamedTuple):
    """Processor time of nodes, bytes up and down, processor time of the SuperLink, and seconds passed."""

    processor: float
    up: int
    down: int
    superlink: float
    seconds: float


@dataclass(frozen=True)
class Measured:
    """The costs of some nodes.

    Parameters
    ----------
    what : str
    nodes : int
    started : float
        Seconds until all were online.
    memory : float
        Bytes, of all their processes, while they are idle.
    idle, report : Cost
    """

    what: str
    nodes: int
    started: float
    memory: float
    idle: Cost
    report: Cost


@dataclass(frozen=True)
class Place:
    """Where nodes run: a SuperLink, what has passed the proxy in front of it, and a folder."""

    superlink: SuperLink
    passed: Passed
    folder: Path

    def used(self, processes: list[int], act: Callable[[], None]) -> Cost:
        """Return what is used while something is done."""
        before, started = self._used(processes), time.monotonic()
        up, down = self.passed.up, self.passed.down
        act()
        after = self._used(processes)
        return Cost(
            after[0] - before[0],
            self.passed.up - up,
            self.passed.down - down,
            after[1] - before[1],
            time.monotonic() - started,
        )

    def _used(self, processes: list[int]) -> tuple[float, float]:
        return sum(map(processor_seconds, processes)), processor_seconds(self.superlink.process)

    def ask(self, nodes: int) -> None:
        """Have the server ask every node for a report, and wait for the last one."""
        answered = self.folder / "answered"
        self.superlink.flwr("run", str(self.folder / "app"), "wire")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not answered.exists():
            if time.monotonic() > deadline:
                raise RuntimeError("the server has not ended; see superlink.log")
            time.sleep(0.2)
        count = answered.read_text()
        answered.unlink()
        if int(count) != nodes:
            log = (self.folder / "nodes.log").read_text()[-2000:]
            raise RuntimeError(f"{count} of {nodes} nodes answered:\n{log}")


@contextmanager
def running(commands: list[list[str]], log: Path) -> Iterator[list[int]]:
    """Start processes; at the end, let them leave, and stop them and their children."""
    settings = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    # A SuperNode starts programs of Flower's.
    settings["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **settings}
    with log.open("w") as file:
        processes = [
            subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
            for command in commands
        ]
        try:
            yield [process.pid for process in processes]
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LEAVE_SECONDS)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def measured(place: Place, what: str, nodes: int, commands: list[list[str]], seconds: float) -> Measured:
    """Start nodes and measure what they cost."""
    log = place.folder / "nodes.log"
    started = time.monotonic()
    with running(commands, log) as processes:
        online = len(commands) == 1
        while log.read_text().count("online" if online else "SuperNode ID") < nodes:
            if time.monotonic() - started > PATIENCE_SECONDS:
                raise RuntimeError(f"the nodes did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.2)
        start = time.monotonic() - started
        time.sleep(SETTLE_SECONDS)
        idle = place.used(processes, lambda: time.sleep(seconds))
        memory = sum(Peak().with_sample(process).everything for process in processes)
        report = place.used(processes, lambda: place.ask(nodes))
    return Measured(what, nodes, start, memory, idle, report)


def row(one: Measured) -> str:
    """Return the line of a table."""
    idle, report, nodes = one.idle, one.report, one.nodes
    hour = 3600 / idle.seconds
    figures = [
        f"{one.started:.1f}",
        f"{one.memory / 1e6:.0f}",
        f"{idle.processor / idle.seconds:.1%}",
        f"{idle.superlink / idle.seconds:.1%}",
        f"{idle.up * hour / nodes / 1e3:,.0f} / {idle.down * hour / nodes / 1e3:,.0f}",
        f"{report.processor / nodes:.3f}",
        f"{report.up / nodes / 1e3:.1f} / {report.down / nodes / 1e3:.1f}",
        f"{report.seconds:.1f}",
    ]
    return f"| {nodes} {one.what} | " + " | ".join(figures) + " |"


COLUMNS = (
    "nodes",
    "s to start",
    "MB",
    "of a core, idle",
    "SuperLink's",
    "kB an hour, idle",
    "s of processor per report, with polls",
    "kB per report, with polls",
    "s for all reports",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--supernodes", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they are idle")
    parser.add_argument("--interval", type=float, default=3.0, help="seconds between a device's visits")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        superlink = stack.enter_context(started_superlink(folder))
        passed = stack.enter_context(counting_proxy(("127.0.0.1", superlink.port)))
        group = make_devices(superlink, folder / "devices", given.devices)
        answered, patience = str(folder / "answered"), PATIENCE_SECONDS
        text = SERVER.format(group=group, patience=patience, answered=answered, size=REPORT_BYTES)
        write_app(folder / "app", text, client="node")
        place = Place(superlink, passed, folder)
        print(f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", sep="\n")
        command = [sys.executable, "-m", "dprec", "device", str(folder / "devices"), "--ca"]
        command += [str(folder / "ca.crt"), "--superlink", f"127.0.0.1:{passed.port}"]
        command += ["--interval", str(given.interval)]
        print(row(measured(place, "devices", given.devices, [command], given.seconds)), flush=True)
        if given.supernodes:
            commands = supernodes(superlink, folder, passed.port, given.supernodes)
            print(row(measured(place, "SuperNodes", given.supernodes, commands, given.seconds)))


def make_devices(superlink: SuperLink, folder: Path, devices: int) -> str:
    """Make the folders of devices and register their keys; return the group of their messages."""
    from clients.device import Agreement, write_device
    from clients.device.node_key import new_node_key
    from dprec.datasets import Synthetic
    from dprec.exchange import new_run_key
    from dprec.randomness import RunKeys
    from simulation import load
    from simulation.deployment.preparing import limits_of

    protocol: Any = load("blp-mf").protocol
    train = Synthetic(users=devices, items=1682, ratings=106 * devices).load()
    items = [str(item) for item in train.item_ids.tolist()]
    public = RunKeys.derive(0).installed.public
    agreement = Agreement.of(protocol.setup(), train.scale, items, public=public)
    keys = [new_node_key() for _ in range(devices)]
    for user, key in enumerate(keys):
        own = np.arange(train.indptr[user], train.indptr[user + 1])
        write_device(
            folder / f"{user:06d}",
            profile=(train.items[own], train.values_at(own)),
            user=user,
            limits=limits_of(protocol.privacy, runs=1),
            agreement=agreement,
            item_ids=items,
            node_key=key.private,
        )
    register(superlink, [key.public for key in keys])
    return agreement.group(new_run_key())


def register(superlink: SuperLink, keys: Iterable[str]) -> None:
    """Register public keys, as lines of OpenSSH."""
    from simulation.deployment.registering import registry

    with registry(f"127.0.0.1:{superlink.port}", superlink.certificate) as registered:
        for key in keys:
            registered.register(key)


def supernodes(superlink: SuperLink, folder: Path, port: int, count: int) -> list[list[str]]:
    """Register keys for SuperNodes; return the commands that start them."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )
    from flwr.supercore.primitives.asymmetric import generate_key_pairs

    commands, public = [], []
    for number in range(count):
        private, shared = generate_key_pairs()
        key = folder / f"supernode-{number}.key"
        key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        public.append(shared.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())
        command = [
            str(Path(sys.executable).with_name("flower-supernode")),
            "--superlink",
            f"127.0.0.1:{port}",
        ]
        command += ["--root-certificates", str(folder / "ca.crt"), "--auth-supernode-private-key", str(key)]
        commands.append([*command, "--port", str(port + 1 + number)])
    register(superlink, public)
    return commands


if __name__ == "__main__":
    main()
