"""Secure sums between devices in this process, each with a folder: what a simulation leaves out is done."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Error, Message

from clients.faults import FaultOptions
from dprec.errors import RunError
from dprec.exchange import DELIVER, KEYS, SHARES, STATISTICS, UNMASK, SummedSetup
from dprec.secure_aggregation import GraphSize, graph_size
from dprec.secure_aggregation.messages import SECRET_BYTES
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.ledger import most_lost
from dprec_pilot.server.server_folder import ServerFolder, write_enrolment
from dprec_pilot.server.serving import serve
from pilot.tests.device.devices import DeviceGrid
from pilot.tests.server.pilots import grid_of, pilot
from simulation import run
from simulation.configuration.models import RunConfig
from simulation.engine.grids import stamped
from simulation.protocols.sums import SummedProtocol
from simulation.result import RunResult
from simulation.storage.exchanges import EXCHANGES, Exchange
from simulation.storage.run_files import RunFiles, read_run
from tests.simulation.conftest import presets

USERS = 12
LISTED = 20
"""Items of a list that the simulation numbers."""

ROUNDS = 8
"""More than any of the protocols has."""

TRAFFIC = [
    *(f"{way}link_{what}_bytes" for way in ("up", "down") for what in ("payload", "message")),
    *("messages", "epsilon_composed"),
]
THOROUGH = [
    pytest.param(name, marks=pytest.mark.thorough)
    for name in ("secagg-item-effects", "gram-secagg", "best-secret-set")
]
SUMMING = (
    *THOROUGH,
    "popularity-secagg",
    *(pytest.param(name, marks=pytest.mark.thorough) for name in ("secagg-als", "public-start")),
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


def check_same(deployed: RunFiles, simulated: RunResult) -> None:
    for column in TRAFFIC:
        assert np.array_equal(deployed.traffic[column], simulated.traffic[column]), column
    for got, expected in zip(deployed.rounds, simulated.record.rounds, strict=True):
        assert replace(got, seconds=0.0) == replace(expected, seconds=0.0, accuracy=None)
    assert deployed.summary.completion_diagnostics == simulated.record.summary.completion_diagnostics


def check_predictions(server: ServerFolder, simulated: RunResult, gone: tuple[int, ...] = ()) -> None:
    """Check that devices have predicted, to the last bit, or ranked what the simulation says they do."""
    users = {str(user): place for place, user in enumerate(simulated.traffic["user"])}
    found: dict[tuple[int, str], tuple[float, int]] = {}
    for user, folder in enumerate(sorted((server.path.parent / "devices").iterdir())):
        if user in gone:
            assert not (folder / "predictions.csv").exists()
            continue
        with (folder / "predictions.csv").open() as file:
            for rank, row in enumerate(csv.DictReader(file), start=1):
                found[user, row["item"]] = float(row["prediction"]), rank
    columns, ranks = simulated.predictions, simulated.predictions.get("rank")
    cells = zip(columns["user"], columns["item"], columns["prediction"], strict=True)
    assert len(columns["user"]) > USERS
    for place, (user, item, prediction) in enumerate(cells):
        if users[str(user)] in gone:
            continue
        value, rank = found.pop((users[str(user)], str(item)))
        if ranks is None:
            assert np.clip(value, *simulated.record.summary.dataset.scale) == prediction
        else:
            assert value == prediction
            assert rank == ranks[place] or (rank > LISTED and np.isnan(ranks[place]))


class Grid(DeviceGrid):
    """Devices of which some are killed before each message, or are gone from some message on."""

    def __init__(self, server: ServerFolder) -> None:
        grid_of(server)
        paths = sorted((server.path.parent / "devices").iterdir())
        self.devices = [Device(DeviceFolder(path), seeded=True) for path in paths]
        super().__init__(self.devices)
        self.killed: set[int] = set()
        self.gone_from: dict[int, tuple[int, str]] = {}
        self.tampered: dict[tuple[int, str], Callable[[bytes], bytes]] = {}

    def answer(self, message: Message) -> Message:
        user = message.metadata.dst_node_id - min(self.get_node_ids())
        kind, record = message.metadata.message_type, message.content.get("request", {})
        now = int(record.get("round", 99)), ORDER.index(kind)
        if user in self.gone_from and now >= (self.gone_from[user][0], ORDER.index(self.gone_from[user][1])):
            return stamped(Message(Error(1, "gone"), reply_to=stamped(message)))
        if user in self.killed:
            self.devices[user] = Device(DeviceFolder(self.devices[user].folder.path), seeded=True)
        reply = super().answer(message)
        if (user, kind) in self.tampered and reply.has_content():
            reports = reply.content["reply"]["reports"]
            reply.content["reply"]["reports"] = [self.tampered[user, kind](reports[0])]
        return reply


ORDER = [KEYS, SHARES, STATISTICS, UNMASK, DELIVER]


def simulated_with(
    config: RunConfig, server: ServerFolder, gone_from: dict[int, int], folder: Path
) -> RunResult:
    """Run the simulation without the reports of some users from some round on."""
    users, lines = [each.user for each in server.enrolled()], []
    for number in range(1, ROUNDS + 1):
        gone = {users[user] for user, first in gone_from.items() if number >= first}
        here = tuple(user for user in users if user not in gone)
        times = {"began": "2026-01-01", "seconds": 0.0}
        asked = {"exchange": number, "asks": STATISTICS, "round": number, **times}
        heard = Exchange(**asked, answered=here, late=(), absent=tuple(gone), refused={})
        lines.append(heard.model_dump_json() + "\n")
    (folder / EXCHANGES).write_text("".join(lines))
    return simulated_likewise(config, folder)


def simulated_likewise(config: RunConfig, deployed: Path) -> RunResult:
    """Run the simulation with those who have reported in a deployed run."""
    simulation = replace(config.simulation, faults=FaultOptions(attendance=str(deployed)))
    return run(config.model_copy(update={"simulation": simulation}), page=False)


@pytest.mark.parametrize("name", SUMMING)
def test_secure_sums_are_those_of_the_simulation(tmp_path: Path, name: str) -> None:
    config, server = pilot(secure(name), tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    simulated = run(config, page=False)
    check_same(read_run(tmp_path / "out"), simulated)
    check_predictions(server, simulated)
    check_ledgers(server)


def check_ledgers(server: ServerFolder) -> None:
    """Check that ledgers add up to the loss of all rounds, with one delta, within the limits of a run."""
    for path in (server.path.parent / "devices").iterdir():
        device = Device(DeviceFolder(path), seeded=True)
        setup, charges, limits = device.folder.agreement.setup, device.charges, device.folder.options.limits
        assert isinstance(setup, SummedSetup)
        whole = most_lost(charges).per_user
        assert whole == pytest.approx(setup.loss_of(range(1, len(charges) + 1)))
        assert limits.per_user is not None
        assert 0 < whole <= limits.per_user
        assert sum(charge.delta for charge in charges) == setup.delta > 0


@pytest.mark.parametrize("name", THOROUGH)
def test_devices_killed_between_any_two_steps_go_on_where_they_were(tmp_path: Path, name: str) -> None:
    config, server = pilot(secure(name), tmp_path / "pilot")
    grid = Grid(server)
    grid.killed = {3, 7}
    serve(grid, server, tmp_path / "out")
    simulated = run(config, page=False)
    check_same(read_run(tmp_path / "out"), simulated)
    check_predictions(server, simulated)


@pytest.mark.parametrize("kind", [KEYS, SHARES, STATISTICS, UNMASK])
@pytest.mark.parametrize("name", THOROUGH)
def test_devices_that_never_come_back_are_missing_from_the_sums_alone(
    tmp_path: Path, name: str, kind: str
) -> None:
    config, server = pilot(secure(name), tmp_path / "pilot")
    grid = Grid(server)
    grid.gone_from = {3: (1, kind), 7: (1, kind)}
    serve(grid, server, tmp_path / "out")
    deployed = read_run(tmp_path / "out")
    simulated = simulated_likewise(config, tmp_path / "out")
    first = 2 if kind == UNMASK else 1
    again = simulated_with(config, server, {3: first, 7: first}, tmp_path)
    assert simulated.record.summary.accuracy == again.record.summary.accuracy
    expected = simulated.record.summary
    assert deployed.summary.completion_diagnostics == expected.completion_diagnostics
    assert [record.replies for record in deployed.rounds] == [
        record.replies for record in simulated.record.rounds
    ]
    assert deployed.summary.privacy.epsilon_composed == expected.privacy.epsilon_composed
    check_predictions(server, simulated, gone=(3, 7))


@pytest.mark.thorough
def test_in_a_graph_with_gaps_devices_drop_out_at_every_step(tmp_path: Path) -> None:
    values = secure("gram-secagg", dropouts=0.1, colluders=1, norm=256)
    values["dataset"] |= {"users": 40, "items": 40, "ratings": 700}
    config, server = pilot(values, tmp_path / "pilot")
    assert graph_size(40, 0.1, 1).degree < 39
    grid = Grid(server)
    grid.gone_from = {3: (1, KEYS), 7: (1, SHARES), 11: (1, STATISTICS), 20: (1, UNMASK)}
    serve(grid, server, tmp_path / "out")
    simulated = simulated_likewise(config, tmp_path / "out")
    assert [record.replies for record in simulated.record.rounds] == [37]
    check_predictions(server, simulated, gone=tuple(grid.gone_from))


def cut(said: bytes) -> bytes:
    return said[:-1]


def changed(said: bytes) -> bytes:
    return said[:-1] + bytes([said[-1] ^ 1])


@pytest.mark.parametrize(
    ("kind", "lie"),
    [
        pytest.param(KEYS, cut, marks=pytest.mark.thorough),
        pytest.param(KEYS, changed, marks=pytest.mark.thorough),
        pytest.param(SHARES, cut, marks=pytest.mark.thorough),
        pytest.param(SHARES, lambda said: bytes(len(said)), marks=pytest.mark.thorough),
        pytest.param(STATISTICS, cut, marks=pytest.mark.thorough),
    ],
)
def test_what_a_device_says_that_is_malformed_drops_it_out_of_the_sum(
    tmp_path: Path, kind: str, lie: Callable[[bytes], bytes]
) -> None:
    config, server = pilot(secure("popularity-secagg"), tmp_path / "pilot")
    grid = Grid(server)
    grid.tampered[3, kind] = lie
    serve(grid, server, tmp_path / "out")
    deployed, simulated = read_run(tmp_path / "out"), simulated_with(config, server, {3: 1}, tmp_path)
    assert {tuple(record.causes.items()) for record in deployed.rounds} == {(("malformed", 1),)}
    expected = simulated.record.summary.completion_diagnostics
    assert deployed.summary.completion_diagnostics == expected
    check_predictions(server, simulated)


@pytest.mark.thorough
@pytest.mark.parametrize("lie", [cut, lambda said: b"\xff" * len(said), lambda said: bytes(len(said))])
def test_shares_that_are_none_are_left_to_other_neighbours(
    tmp_path: Path, lie: Callable[[bytes], bytes]
) -> None:
    config, server = pilot(secure("popularity-secagg"), tmp_path / "pilot")
    grid = Grid(server)
    grid.tampered[3, UNMASK], grid.gone_from = lie, {7: (1, STATISTICS)}
    serve(grid, server, tmp_path / "out")
    check_predictions(server, simulated_with(config, server, {7: 1}, tmp_path), gone=(7,))


@pytest.mark.thorough
# With three missing, as many shares are known as put a secret together, and no more.
@pytest.mark.parametrize(("missing", "step"), [(3, UNMASK), (0, UNMASK), (1, STATISTICS)])
def test_a_wrong_share_spoils_the_release_and_not_what_is_learned(
    tmp_path: Path, missing: int, step: str
) -> None:
    """Of seven or more neighbours of device 4 that reveal a share of its seed, one lies."""
    _, server = pilot(secure("popularity-secagg"), tmp_path / "pilot")
    protocol = server.protocol()
    assert isinstance(protocol, SummedProtocol)
    masked = protocol.installed
    assert masked is not None
    assert masked.graph_size == GraphSize(10, 7)
    graph = masked.graph(1, int(server.deployment.public, 16))
    lying, *others = graph.neighbours[4].tolist()
    at = graph.neighbours[lying].tolist().index(4) * SECRET_BYTES
    grid = Grid(server)
    grid.tampered[lying, UNMASK] = lambda said: said[:at] + bytes([said[at] ^ 1]) + said[at + 1 :]
    grid.gone_from = dict.fromkeys(others[:missing], (1, step))
    with pytest.raises(RunError, match="in every round"):
        serve(grid, server, tmp_path / "out")


@pytest.mark.parametrize(
    ("kind", "charged"),
    [
        (KEYS, 0),
        pytest.param(SHARES, 0, marks=pytest.mark.thorough),
        pytest.param(STATISTICS, 1, marks=pytest.mark.thorough),
        pytest.param(UNMASK, 1, marks=pytest.mark.thorough),
    ],
)
def test_with_too_few_a_release_fails_and_those_who_have_contributed_have_paid(
    tmp_path: Path, kind: str, charged: int
) -> None:
    """Of twelve two may drop out; shares of a secret have to come from seven of its ten neighbours."""
    _, server = pilot(secure("popularity-secagg"), tmp_path / "pilot")
    grid = Grid(server)
    gone = range(5, 11) if kind == UNMASK else range(5, 8)
    grid.gone_from = dict.fromkeys(gone, (1, kind))
    with pytest.raises(RunError, match=r"no usable report|in every round"):
        serve(grid, server, tmp_path / "out")
    here = [user for user in range(USERS) if user not in gone]
    assert {len(grid.devices[user].charges) for user in here} == {charged}


def test_who_is_not_enrolled_shares_no_masks(tmp_path: Path) -> None:
    config, server = pilot(secure("popularity-secagg"), tmp_path / "pilot")
    grid = Grid(server)
    enrolled = server.enrolled()
    enrolled[3] = replace(enrolled[3], node_id=None)
    write_enrolment(server.enrolment_file, enrolled)
    serve(grid, server, tmp_path / "out")
    deployed = read_run(tmp_path / "out")
    assert {tuple(record.causes.items()) for record in deployed.rounds} == {(("absent", 1),)}
    assert deployed.bytes_per_user[3] == 0
    check_predictions(server, simulated_with(config, server, {3: 1}, tmp_path), gone=(3,))
