"""dprec-device in an empty environment: its contents, its size, and that it answers with the same bits."""

import csv
import filecmp
import os
import shutil
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from flwr.app import Message
from flwr.common.serde import message_to_proto

from clients.device import DeviceFolder
from clients.device.device import Device
from clients.device.node_key import PublicLine, new_node_key
from clients.device.profile import as_bytes, kept
from dprec.exchange import OneShotSetup
from dprec.mechanisms import FisherOptimal
from simulation.deployment.certificates import Authority
from simulation.deployment.serving import serve
from tests.clients.device.devices import DeviceGrid, install, report_in
from tests.clients.device.fake_superlink import FakeSuperLink
from tests.clients.device.test_device import RATINGS, ROUNDS_SETUP, train
from tests.clients.device.test_joining import ITEMS, invitation
from tests.dprec.test_scipy_or_numpy import BUDGET
from tests.paths import ROOT
from tests.simulation.conftest import presets
from tests.simulation.deployment.pilots import GRAM, PG, SECRET_SET, WEEKLY, grid_of, pilot
from tests.simulation.deployment.test_secure_sums import secure

pytestmark = pytest.mark.thorough

LARGEST = 200_000_000
"""Bytes of a device's environment, with pip and all that Python compiles."""

ABSENT = {
    *("fastapi", "grpc", "matplotlib", "numba", "pandas", "ray", "rich"),
    *("scipy", "simulation", "sqlalchemy", "strategies", "typer", "yaml"),
}


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program, of which nothing is known here but its own environment."""
    kept_ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [*map(str, command)],
        env={**kept_, "OPENBLAS_NUM_THREADS": "1", **environment},
        cwd=Path(sys.executable).anchor,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def installed(*command: str | Path, **environment: str) -> None:
    """Run pip, or skip the test where it cannot be reached or install."""
    done = run(*command, **environment)
    if done.returncode:
        pytest.skip(f"nothing can be installed here: {done.stderr.strip().splitlines()[-1:]}")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with the Flower of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    pip, source = (sys.executable, "-m", "pip"), folder / "source"
    shutil.copytree(ROOT / "device", source / "device")
    for name in ("clients", "dprec", "LICENSE"):
        (source / name).symlink_to(ROOT / name)
    installed(*pip, "install", "--quiet", "--no-deps", "--target", folder / "hatch", *HATCH)
    command = [*pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, source / "device"]
    done = run(*command, PYTHONPATH=str(folder / "hatch"))
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


HATCH = ("hatchling", "packaging", "pathspec", "pluggy", "trove-classifiers")


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Path:
    """Return an environment in which nothing else is installed."""
    made = wheel.parent / "environment"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    constraints = ROOT / "constraints.txt"
    installed(made / "bin/pip", "install", "--quiet", "--constraint", constraints, wheel)
    return made


def test_the_wheel_has_both_packages_and_parts_of_flower_as_they_are(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    own = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for package in ("clients", "dprec")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name: contents.get(name) for name in own} == own
    metadata = {name for name in contents if ".dist-info/" in name}
    assert any(name.endswith("licenses/LICENSE") for name in metadata)
    flower = {name for name in contents if name.startswith("clients/flower/flwr/")}
    assert set(contents) == own.keys() | metadata | flower
    replaced = {f"clients/flower/{path.relative_to(ROOT / 'device/flower').as_posix()}" for path in REPLACED}
    replaced.add("clients/flower/flwr/supercore/version.py")
    assert replaced < flower
    whole = distribution("flwr")
    for name in flower - replaced:
        theirs = Path(str(whole.locate_file(name.removeprefix("clients/flower/"))))
        assert theirs.read_bytes() == contents[name], name


REPLACED = sorted((ROOT / "device/flower").rglob("*.py"))


def test_a_devices_environment_is_small(environment: Path) -> None:
    sizes = [path.lstat().st_size for path in environment.rglob("*") if path.is_file()]
    assert 50_000_000 < sum(sizes) <= LARGEST
    checked = run(environment / "bin/pip", "check")
    assert checked.returncode == 0, checked.stdout


def test_nothing_of_a_simulation_is_there(environment: Path) -> None:
    code = (
        "from importlib.util import find_spec\n"
        f"print(*(name for name in {ABSENT} if find_spec(name)))\n"
        "import clients, flwr.app, sys; print(flwr.__file__)"
    )
    found, flower = run(environment / "bin/python", "-c", code).stdout.splitlines()
    assert found == ""
    assert Path(flower).parts[-4:] == ("clients", "flower", "flwr", "__init__.py")


class Recorded(Device):
    """A device whose folder is copied before it answers anything, with all that it is asked and answers."""

    def answer(self, message: Message) -> Message:
        """Answer, and write down what."""
        copy = self.folder.path.parents[1] / "copies" / self.name
        if not copy.exists():
            shutil.copytree(self.folder.path, copy)
            for part in ("asked", "answers", "answered"):
                (copy / part).mkdir()
        name = f"{len(list((copy / 'asked').iterdir())):03d}"
        asked = message_to_proto(message).SerializeToString()
        reply = super().answer(message)
        (copy / "asked" / name).write_bytes(asked)
        answer = kept(reply.content) if reply.has_content() else as_bytes(reply)
        (copy / "answers" / name).write_bytes(answer)
        return reply


def predictions_in(folder: Path) -> dict[str, float]:
    with (folder / "predictions.csv").open() as file:
        return {row["item"]: float(row["prediction"]) for row in csv.DictReader(file)}


SETS = {"positive": ">= 3", "min_items": 2}


def small(name: str, of: dict[str, Any] | None = None, **protocol: Any) -> dict[str, Any]:
    """Return a preset for a few users."""
    data = {"kind": "synthetic", "users": 4, "items": 30, "ratings": 100, **(of or {})}
    values = presets()[name]
    own = {**values["protocol"], **protocol}
    return {**values, "protocol": own, "dataset": data, "simulation": {"backend": "local"}}


PILOTS = {
    "counts-and-bits": small("counts-and-bits"),
    "zheng-laplace": small("zheng-laplace"),
    "one-bit-on-device": small("one-bit-on-device"),
    "weekly": WEEKLY,
    "pg-mf": PG,
    "dp-als": small("dp-als", privacy=None),
    "best-secret-set": SECRET_SET,
    "gram": GRAM,
    "popularity-secagg": secure("popularity-secagg"),
    "popularity-by-content": small("popularity-by-content", SETS),
}


@pytest.mark.parametrize("name", PILOTS)
def test_devices_answer_with_the_same_bits(
    name: str, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.simulation.deployment.pilots.Device", Recorded)
    _, server = pilot(PILOTS[name], tmp_path / "pilot")
    grid = grid_of(server)
    assert isinstance(grid, DeviceGrid)
    serve(grid, server, tmp_path / "out")
    copies = tmp_path / "pilot" / "copies"
    done = run(environment / "bin/python", ROOT / "tests/device/replay.py", copies)
    assert done.returncode == 0, done.stderr
    assert not ABSENT & set(done.stdout.split())
    bits = 0
    for copy in copies.iterdir():
        names = [path.name for path in (copy / "asked").iterdir()]
        same, other, missing = filecmp.cmpfiles(copy / "answers", copy / "answered", names, shallow=False)
        assert (other, missing) == ([], [])
        bits += 8 * sum((copy / "answers" / each).stat().st_size for each in same)
        original = tmp_path / "pilot" / "devices" / copy.name
        assert (copy / "ledger.jsonl").exists() == (original / "ledger.jsonl").exists()
        expected, got = predictions_in(original), predictions_in(copy)
        assert expected.keys() == got.keys()
        # The normal distribution and systems of equations are NumPy's there; what is sent needs neither.
        assert np.allclose([got[item] for item in expected], list(expected.values()), rtol=1e-9)
    assert bits > 0


class _Handler(BaseHTTPRequestHandler):
    superlink: FakeSuperLink

    def do_POST(self) -> None:
        """Pass a request on."""
        body = self.rfile.read(int(self.headers["content-length"]))
        request = httpx.Request("POST", f"https://here{self.path}", headers=dict(self.headers), content=body)
        answer = self.superlink.handle_request(request)
        self.send_response(answer.status_code)
        self.send_header("content-length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def superlink_at(folder: Path) -> Iterator[tuple[FakeSuperLink, str]]:
    """Serve a SuperLink with TLS, whose authority is ca.crt in a folder."""
    authority = Authority.new(2)
    issued = authority.issue(["127.0.0.1"], 1)
    (folder / "ca.crt").write_bytes(authority.issued.certificate)
    (folder / "server.crt").write_bytes(issued.certificate)
    (folder / "server.key").write_bytes(issued.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    superlink = FakeSuperLink()
    handler = type("Handler", (_Handler,), {"superlink": superlink})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield superlink, f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_the_command_serves_a_device(environment: Path, tmp_path: Path) -> None:
    folder = install(tmp_path / "u0", ROUNDS_SETUP, RATINGS)
    folder.node_key_file.write_bytes(new_node_key().private)
    shutil.copytree(folder.path, tmp_path / "copy")
    with superlink_at(tmp_path) as (superlink, address):
        superlink.put(train(1))
        arguments = ("--superlink", address, "--ca", tmp_path / "ca.crt", "--once")
        done = run(environment / "bin/dprec-device", folder.path, *arguments)
    assert done.returncode == 0, done.stderr
    (reply,) = superlink.replies
    assert report_in(reply) == report_in(Device(type(folder)(tmp_path / "copy")).answer(train(1)))
    assert done.stderr.splitlines()[0].endswith("u0: online")


def test_a_protocol_that_needs_scipy_says_so(environment: Path, tmp_path: Path) -> None:
    folder = install(tmp_path / "u0", OneShotSetup(mechanism=FisherOptimal(), privacy=BUDGET), RATINGS)
    folder.node_key_file.write_bytes(new_node_key().private)
    arguments = ("--superlink", "127.0.0.1:1", "--ca", tmp_path / "ca.crt", "--once")
    done = run(environment / "bin/dprec-device", folder.path, *arguments)
    assert done.returncode == 2
    assert "protocol.json: 'fisher-optimal', which needs SciPy; accepted: " in done.stderr
    assert "dprec-device[scipy]" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_device_joins_and_gets_another_key(environment: Path, tmp_path: Path) -> None:
    invited, mine, folder = tmp_path / "invitation.json", tmp_path / "mine.csv", tmp_path / "me"
    invited.write_text(invitation().text)
    mine.write_text(f"movieId,stars\n{ITEMS[2]},4\nelsewhere,1\n")
    command = environment / "bin/dprec-device"
    joined = run(command, "join", invited, mine, folder, "--user", "3")
    assert joined.returncode == 0, joined.stderr
    line = PublicLine.read(joined.stdout, "standard output")
    device = Device(DeviceFolder(folder))
    assert (device.folder.options.user, line.user) == (3, 3)
    assert device.folder.profile_file.read_text() == f"item,rating\n{ITEMS[2]},4.0\n"
    assert report_in(device.answer(train(1)))
    rotated = run(command, "rotate", folder)
    assert rotated.returncode == 0, rotated.stderr
    assert PublicLine.read(rotated.stdout, "standard output").follows(line.key)
    again = run(command, "join", invited, mine, folder, "--user", "3")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("dprec-device: ")
    assert again.stderr.count("\n") == 1
