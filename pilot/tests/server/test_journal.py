"""A run whose server is killed, wherever, and that is resumed: nothing is lost, and nobody pays twice."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from dprec_pilot import files
from dprec_pilot.server import journal
from dprec_pilot.server.journal import JOURNAL
from dprec_pilot.server.server_folder import Enrolled, ServerFolder
from dprec_pilot.server.serving import resume, serve
from pilot.tests.make import BLP, GRAM_LOCAL, PG, USERS, DeviceGrid, folders_of, grid_of, key_of, pilot
from simulation.engine.grids import WaitingGrid
from simulation.storage.run_files import read_run
from tests.refusals import refused_at

FLOWERS = count(1000)
"""Numbers of further runs of Flower."""

KEYS = [count(1)]
"""Of the runs of a server, from its first."""


class Killed(BaseException):
    """The process ends here, whatever it is doing."""


class FragileGrid(WaitingGrid):
    """A grid whose server is killed at a boundary: before or after a message is sent, or replies are read."""

    def __init__(self, grid: Grid, at: int) -> None:
        super().__init__(grid)
        self.left = at

    def boundary(self) -> None:
        self.left -= 1
        if not self.left:
            raise Killed

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        self.boundary()
        sent = super().push_messages(messages)
        self.boundary()
        return sent

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        self.boundary()
        replies = super().pull_messages(message_ids)
        self.boundary()
        return replies

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        raise NotImplementedError


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every server the same keys, the first of them to its first run."""
    monkeypatch.setattr(journal, "new_run_key", lambda: key_of(next(KEYS[0])))


def restarted(server: ServerFolder) -> DeviceGrid:
    """Return the grid in another run of Flower, whose devices start from what is on their disks."""
    grid = grid_of(server)
    TaskIdentity.run_id = next(FLOWERS)
    return grid


def go_on(grid: Grid, server: ServerFolder, output: Path) -> None:
    """Start a run, or resume it if it was started."""
    if (output / "config.yaml").exists():
        resume(grid, server, output)
    else:
        KEYS[0] = count(1)
        serve(grid, server, output)


def copies(values: dict[str, Any], folder: Path, number: int) -> list[ServerFolder]:
    """Return the same pilot again and again, with noise from secrets."""
    pilot(values, folder / "pilot0", seeded=False)
    for copy in range(1, number):
        shutil.copytree(folder / "pilot0", folder / f"pilot{copy}")
    return [ServerFolder(folder / f"pilot{copy}" / "server") for copy in range(number)]


def outcome(server: ServerFolder, output: Path) -> dict[str, Any]:
    """Return all that a run has left behind, on the server and on its devices, but for times."""
    files = read_run(output)
    summary = json.loads((output / "summary.json").read_text())
    timed = ("time", "peak_memory_mb", "environment")
    found: dict[str, Any] = {
        "files": sorted(path.name for path in output.iterdir()),
        "summary": {key: value for key, value in summary.items() if key not in (*timed, "files")},
        "rounds": [replace(record, seconds=0.0) for record in files.rounds],
        "traffic": (output / "traffic.csv").read_bytes(),
        "config": (output / "config.yaml").read_bytes(),
    }
    with np.load(output / "ledger.npz") as ledger:
        found |= {name: ledger[name].tobytes() for name in ledger.files}
    for user, device in enumerate(folders_of(server)):
        predictions = device.predictions_file
        charges = [json.loads(line) for line in device.ledger_file.read_text().splitlines()]
        paid = [{**charge, "time": None, "chain": None} for charge in charges]
        found[f"user {user}"] = predictions.read_bytes() if predictions.exists() else None, paid
    return found


def undisturbed(server: ServerFolder, output: Path) -> tuple[dict[str, Any], int]:
    """Return what a run leaves that nobody disturbs, and its number of boundaries."""
    grid = FragileGrid(restarted(server), 0)
    go_on(grid, server, output)
    return outcome(server, output), -grid.left


@pytest.mark.thorough
@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("values", [BLP, PG, GRAM_LOCAL], ids=lambda values: values["name"])
def test_a_server_that_is_killed_at_any_boundary_ends_as_if_it_had_not(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    calm, *disturbed = copies(values, tmp_path, 40)
    expected, boundaries = undisturbed(calm, tmp_path / "calm")
    assert 8 <= boundaries < len(disturbed)
    for at in range(1, boundaries + 1):
        server, output = disturbed[at], tmp_path / f"out{at}"
        with pytest.raises(Killed):
            go_on(FragileGrid(restarted(server), at), server, output)
        go_on(restarted(server), server, output)
        assert outcome(server, output) == expected, at


@pytest.mark.usefixtures("keys")
def test_a_server_that_is_killed_while_it_writes_its_journal_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm, disturbed = copies(BLP, tmp_path, 2)
    expected, _ = undisturbed(calm, tmp_path / "calm")
    append, output, cuts = files.append_durably, tmp_path / "disturbed", 0

    def cut_off(path: Path, line: bytes, *, after: int) -> None:
        """Write the next whole line, and half of the one after."""
        nonlocal writes
        writes += 1
        append(path, line if writes == 1 else line[: len(line) // 2], after=after)
        if writes == 2:
            raise Killed

    monkeypatch.setattr(files, "append_durably", cut_off)
    while True:
        writes = 0
        try:
            go_on(restarted(disturbed), disturbed, output)
        except Killed:
            cuts += 1
        else:
            break
    assert cuts > 5
    assert outcome(disturbed, output) == expected


@pytest.fixture
def cut_off(tmp_path: Path) -> tuple[ServerFolder, Path]:
    """Return a pilot, and the directory of a run that was killed when its reports were in."""
    _, server = pilot(BLP, tmp_path / "pilot")
    with pytest.raises(Killed):
        serve(FragileGrid(restarted(server), 5), server, tmp_path / "out")
    return server, tmp_path / "out"


def lines_of(output: Path) -> list[str]:
    return (output / JOURNAL).read_text().splitlines(keepends=True)


def test_a_run_keeps_the_key_that_it_began_with(tmp_path: Path) -> None:
    path, begun = tmp_path / JOURNAL, []
    for enrolled in ([Enrolled("a", "key", 2), Enrolled("b", None)], []):
        with journal.Journal.opened(path, "0" * 64, enrolled) as opened:
            begun.append(opened.begun)
    assert begun[0] == begun[1]
    assert begun[0].enrolled == (Enrolled("a", None, 2), Enrolled("b", None))
    # Under its own protocol alone, which has a fingerprint of this length.
    with refused_at(str(path)), journal.Journal.opened(path, "0" * 63 + "c", []):
        pass


def test_a_journal_says_what_happened_and_is_deleted_with_the_end(cut_off: tuple[ServerFolder, Path]) -> None:
    server, output = cut_off
    kinds = [next(iter(json.loads(line))) for line in lines_of(output)]
    # Who is asked is in it before the question leaves, which here it did not.
    assert kinds == ["began", "asks", "reached", "replies", "ended", "asks", "reached"]
    resume(restarted(server), server, output)
    assert not (output / JOURNAL).exists()
    assert read_run(output).rounds[0].replies == USERS


@pytest.mark.parametrize(
    ("line", "changed", "where"),
    [
        (2, '{"reached": [2], "chain": "0"}\n', ":3"),
        (1, "", ":2"),
        (3, "no json\n", ":4"),
        (0, '{"began": 1}\n', ":1"),
    ],
)
def test_a_journal_that_was_changed_is_refused(
    cut_off: tuple[ServerFolder, Path], line: int, changed: str, where: str
) -> None:
    server, output = cut_off
    lines = lines_of(output)
    lines[line] = changed
    (output / JOURNAL).write_text("".join(lines))
    before = (output / JOURNAL).read_bytes()
    with refused_at(f"{JOURNAL}{where}"):
        resume(restarted(server), server, output)
    assert (output / JOURNAL).read_bytes() == before
