"""What a device costs where dprec-device is installed, beside the complete distribution.

    python benchmarks/small_device.py [ENVIRONMENT ...]

Each environment is the folder of one in which dprec-device or dprec is installed; by default, the one that
runs this, which has to have dprec. The size is that of all files, with pip and what Python has
compiled. The start is the processor time of the command until it has opened a device and tried to reach a
server that is not there, the least of three. Answers are those of one seeded device to the questions of small
runs, over a catalogue of 1,700 items: the time of all answers of a run, the least of two, and that of what
it predicts from them. The answers of all environments are compared, byte by byte.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import takewhile
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.common.serde import message_to_proto

from clients.device.device import Device
from clients.device.folder import DeviceFolder
from simulation.configuration.loading import load
from simulation.deployment.enrolment import with_nodes, write_enrolment
from simulation.deployment.preparing import PilotOptions, prepare
from simulation.deployment.server_folder import ServerFolder
from simulation.deployment.serving import serve
from simulation.engine.grids import LocalGrid

USERS, ITEMS, RATINGS = 4, 1_700, 600
STARTS, REPEATS = 3, 2

ANSWERING = """
import hashlib, json, shutil, sys, time
from pathlib import Path
from clients.device.device import Device
from clients.device.folder import DeviceFolder
from clients.device.profile import State, kept

folder, copy = Path(sys.argv[1]), Path(sys.argv[2])
shutil.copytree(folder, copy)
device, digest = Device(DeviceFolder(copy), seeded=True), hashlib.sha256()
answering = predicting = 0.0
for asked in sorted((folder / "asked").iterdir()):
    question = State(reply=asked.read_bytes()).pending
    started = time.perf_counter()
    reply = device.answer(question)
    answered = time.perf_counter()
    if (work := device.take_work()) is not None:
        work()
    answering, predicting = answering + answered - started, predicting + time.perf_counter() - answered
    digest.update(kept(reply.content))
print(json.dumps([answering, predicting, digest.hexdigest()]))
"""

PRESETS = ("blp-mf", "counts-and-bits", "zheng-rr", "one-bit-on-device", "pg-mf")


class _Recording(ClientApp):
    """Passes questions on to devices; keeps those of the first one."""

    def __init__(self, devices: list[Device], asked: Path) -> None:
        super().__init__()
        self._devices, self._asked = devices, asked

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer a question."""
        number = int(context.node_config["partition-id"])
        if number == 0:
            name = f"{len(list(self._asked.iterdir())):03d}"
            (self._asked / name).write_bytes(message_to_proto(message).SerializeToString())
        return self._devices[number].answer(message)


def recorded(preset: str, folder: Path) -> Path:
    """Run a preset with devices in this process; return the first's folder as it was, with its questions."""
    data = f"dataset={{kind: synthetic, users: {USERS}, items: {ITEMS}, ratings: {RATINGS}}}"
    server = prepare(load(preset, [data]), folder / "pilot", PilotOptions(seeded=True))
    paths = sorted((folder / "pilot" / "devices").iterdir())
    first = Path(shutil.copytree(paths[0], folder / "first"))
    (first / "asked").mkdir()
    app = _Recording([Device(DeviceFolder(path), seeded=True) for path in paths], first / "asked")
    grid = LocalGrid(app, len(paths))
    enrol(server, grid)
    serve(grid, server, folder / "out")
    return first


def enrol(server: ServerFolder, grid: LocalGrid) -> None:
    """Write down under which numbers the grid knows the devices."""
    enrolled = server.enrolled()
    keys = [each.public_key or "" for each in enrolled]
    nodes = dict(zip(keys, grid.get_node_ids(), strict=True))
    write_enrolment(server.enrolment_file, with_nodes(enrolled, nodes))


def megabytes(environment: Path) -> float:
    """Return the size of all files below a folder."""
    return sum(path.lstat().st_size for path in environment.rglob("*") if path.is_file()) / 1e6


def start_seconds(environment: Path, device: Path, ca: Path) -> float:
    """Return the processor time of a start, in which there is no server."""
    lean = environment / "bin" / "dprec-device"
    command = [lean] if lean.exists() else [environment / "bin" / "dprec", "device"]
    options = ["--superlink", "127.0.0.1:1", "--ca", str(ca), "--seeded", "--interval", "1000"]
    seconds = []
    for _ in range(STARTS):
        words = [*map(str, command), str(device), *options]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd="/")
        assert process.stderr is not None
        lines = list(takewhile(lambda line: ": away (" not in line, process.stderr))
        if process.poll() is not None:
            raise SystemExit("".join(lines))
        process.terminate()
        process.stderr.close()
        _, _, used = os.wait4(process.pid, 0)
        seconds.append(used.ru_utime + used.ru_stime)
    return min(seconds)


def answered(environment: Path, device: Path, folder: Path) -> tuple[float, float, str]:
    """Return the seconds of answers and of predictions, and a digest of the answers."""
    found: list[Any] = []
    for _ in range(REPEATS):
        copy = folder / "copy"
        command = [environment / "bin" / "python", "-c", ANSWERING, device, copy]
        done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True, cwd="/")
        found.append(json.loads(done.stdout.splitlines()[-1]))
        shutil.rmtree(copy)
    answering, predicting, digests = zip(*found, strict=True)
    assert len(set(digests)) == 1
    return min(answering), min(predicting), digests[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("environments", nargs="*", type=Path, metavar="ENVIRONMENT")
    environments = parser.parse_args().environments or [Path(sys.prefix)]
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        devices = {preset: recorded(preset, work / preset) for preset in PRESETS}
        ca = work / PRESETS[0] / "pilot" / "ca.crt"
        digests: dict[str, set[str]] = {preset: set() for preset in PRESETS}
        for environment in environments:
            print(f"{environment}: {megabytes(environment):.0f} MB")
            print(f"  start: {start_seconds(environment, devices[PRESETS[0]], ca):.2f} s of a processor")
            for preset, device in devices.items():
                questions = len(list((device / "asked").iterdir()))
                answering, predicting, digest = answered(environment, device, work)
                digests[preset].add(digest)
                said = (
                    f"{questions} questions {1e3 * answering:.1f} ms, predictions {1e3 * predicting:.1f} ms"
                )
                print(f"  {preset}: {said}", flush=True)
        print("the same bytes everywhere:", all(len(each) == 1 for each in digests.values()))


if __name__ == "__main__":
    main()
