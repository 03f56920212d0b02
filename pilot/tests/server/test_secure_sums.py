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
from dprec.exchange import KEYS, SHARES, STATISTICS, UNMASK
from dprec.protocols.sums import SumsProtocol
from dprec.secure_aggregation import graph_size
from dprec.secure_aggregation.messages import SECRET_BYTES
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.ledger import most_lost
from dprec_pilot.server.server_folder import ServerFolder
from dprec_pilot.server.serving import serve
from pilot.tests.make import DeviceGrid, folders_of, grid_of, pilot
from simulation import run
from simulation.configuration.models import RunConfig
from simulation.engine.grids import stamped
from simulation.result import RunResult
from simulation.storage.exchanges import EXCHANGES, read_exchanges
from simulation.storage.run_files import RunRecord, read_run
from tests.simulation.conftest import presets

USERS = 12
LISTED = 20
"""Items of a list that the simulation numbers."""

TRAFFIC = [
    *(f"{way}link_{what}_bytes" for way in ("up", "down") for what in ("payload", "message")),
    *("messages", "epsilon_per_rating", "epsilon_per_user", "epsilon_composed"),
]
THOROUGH = [
    pytest.param(name, marks=pytest.mark.thorough)
    for name in ("secagg-item-effects", "gram-secagg", "sums-on-device")
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


def check_same(deployed: RunRecord, simulated: RunResult) -> None:
    """Check that a deployed run has sent, lost and learned what its simulation has."""
    for column in TRAFFIC:
        # What has no end is written as nothing.
        expected = np.where(np.isinf(simulated.traffic[column]), np.nan, simulated.traffic[column])
        assert np.array_equal(deployed.traffic[column], expected, equal_nan=True), column
    for got, expected in zip(deployed.rounds, simulated.record.rounds, strict=True):
        assert replace(got, seconds=0.0) == replace(expected, seconds=0.0, accuracy=None)
    assert deployed.summary.completion_diagnostics == simulated.record.summary.completion_diagnostics


def check_predictions(
    server: ServerFolder, simulated: RunResult, gone: tuple[int, ...] = (), sent: type = np.float64
) -> None:
    """Check that devices have predicted, to the last bit, or ranked what the simulation says they do."""
    users = {str(user): place for place, user in enumerate(simulated.traffic["user"])}
    found: dict[tuple[int, str], tuple[float, int]] = {}
    for user, device in enumerate(folders_of(server)):
        assert device.predictions_file.exists() is (user not in gone)
        if user not in gone:
            with device.predictions_file.open() as file:
                for rank, row in enumerate(csv.DictReader(file), start=1):
                    found[user, row["item"]] = float(row["prediction"]), rank
    columns, ranks = simulated.predictions, simulated.predictions.get("rank")
    cells = zip(columns["user"], columns["item"], columns["prediction"], strict=True)
    assert len(columns["user"]) > USERS / 2
    for place, (user, item, prediction) in enumerate(cells):
        if users[str(user)] in gone:
            continue
        value, rank = found.pop((users[str(user)], str(item)))
        if ranks is None:
            assert np.clip(value, *simulated.record.summary.dataset.scale) == sent(prediction)
        else:
            assert value == prediction
            assert rank == ranks[place] or (rank > LISTED and np.isnan(ranks[place]))


class Grid(DeviceGrid):
    """Devices of which some are killed before each message, or are gone from some message on."""

    def __init__(self, server: ServerFolder) -> None:
        grid_of(server)
        self.devices = [Device(folder, seeded=True) for folder in folders_of(server)]
        super().__init__(self.devices)
        self.begun: set[str] = set()
        self.killed: set[int] = set()
        self.gone_from: dict[int, str] = {}
        self.tampered: dict[tuple[int, str], Callable[[bytes], bytes]] = {}

    def answer(self, message: Message) -> Message:
        user = message.metadata.dst_node_id - min(self.get_node_ids())
        kind = message.metadata.message_type
        self.begun |= {kind}
        if user in self.gone_from and self.gone_from[user] in self.begun:
            return stamped(Message(Error(1, "gone"), reply_to=stamped(message)))
        if user in self.killed:
            self.devices[user] = Device(DeviceFolder(self.devices[user].folder.path), seeded=True)
        reply = super().answer(message)
        if (user, kind) in self.tampered and reply.has_content():
            reports = reply.content["reply"]["reports"]
            reply.content["reply"]["reports"] = [self.tampered[user, kind](reports[0])]
        return reply


def simulated_likewise(config: RunConfig, deployed: Path) -> RunResult:
    """Run the simulation with those who have reported in a deployed run."""
    simulation = replace(config.simulation, faults=FaultOptions(attendance=str(deployed)))
    return run(config.model_copy(update={"simulation": simulation}), page=False)


@pytest.mark.parametrize("name", SUMMING)
def test_secure_sums_are_those_of_the_simulation(tmp_path: Path, name: str) -> None:
    config, server = pilot(secure(name), tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    # Who was there is said, so that each device reports as it does on a deployment.
    simulated = simulated_likewise(config, tmp_path / "out")
    check_same(read_run(tmp_path / "out"), simulated)
    check_predictions(server, simulated)
    check_ledgers(server)


def check_ledgers(server: ServerFolder) -> None:
    """Check that ledgers add up to the loss of all rounds, with one delta, within the limits of a run."""
    for folder in folders_of(server):
        device = Device(folder, seeded=True)
        protocol, charges, limits = (
            device.folder.agreement.protocol,
            device.charges,
            device.folder.options.limits,
        )
        assert isinstance(protocol, SumsProtocol)
        whole = most_lost(charges).per_user
        assert whole == pytest.approx(protocol.loss_of(range(1, len(charges) + 1)))
        assert limits.per_user is not None
        assert 0 < whole <= limits.per_user
        assert sum(charge.delta for charge in charges) == protocol.counted_at > 0


@pytest.mark.parametrize("kind", [KEYS, SHARES, STATISTICS, UNMASK])
@pytest.mark.parametrize("name", THOROUGH)
def test_devices_that_never_come_back_are_missing_from_the_sums_alone(
    tmp_path: Path, name: str, kind: str
) -> None:
    config, server = pilot(secure(name), tmp_path / "pilot")
    grid = Grid(server)
    grid.gone_from = {3: kind, 7: kind}
    grid.killed = {5, 9}
    serve(grid, server, tmp_path / "out")
    deployed = read_run(tmp_path / "out")
    simulated = simulated_likewise(config, tmp_path / "out")
    assert simulated.record.rounds[0].replies == (USERS if kind == UNMASK else USERS - 2)
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
    grid.gone_from = {3: KEYS, 7: SHARES, 11: STATISTICS, 20: UNMASK}
    serve(grid, server, tmp_path / "out")
    simulated = simulated_likewise(config, tmp_path / "out")
    assert [record.replies for record in simulated.record.rounds] == [37]
    check_predictions(server, simulated, gone=tuple(grid.gone_from))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [KEYS, SHARES, STATISTICS])
def test_what_a_device_says_that_is_malformed_drops_it_out_of_the_sum(tmp_path: Path, kind: str) -> None:
    config, server = pilot(secure("popularity-secagg"), tmp_path / "pilot")
    grid = Grid(server)
    grid.tampered[3, kind] = lambda said: said[:-1]
    serve(grid, server, tmp_path / "out")
    assert [record.causes for record in read_run(tmp_path / "out").rounds] == [{"malformed": 1}]
    (exchange,) = (each for each in read_exchanges(tmp_path / "out") if each.asks == STATISTICS)
    deviant = server.enrolled()[3].user
    here = tuple(user.user for user in server.enrolled() if user.user != deviant)
    heard = exchange.model_copy(update={"answered": here, "absent": (deviant,), "refused": {}})
    (tmp_path / EXCHANGES).write_text(heard.model_dump_json() + "\n")
    check_predictions(server, simulated_likewise(config, tmp_path))


def every_share_changed(said: bytes) -> bytes:
    """Return shares of the field, none of which is the one that its device was given."""
    starts = range(0, len(said), SECRET_BYTES)
    return b"".join(bytes([said[at] ^ 1]) + said[at + 1 : at + SECRET_BYTES] for at in starts)


@pytest.mark.thorough
@pytest.mark.parametrize("deviant", [0, 11])
def test_nothing_is_learned_from_wrong_shares_where_more_are_known_than_a_secret_needs(
    tmp_path: Path, deviant: int
) -> None:
    """The release may be refused, or be put right without that device: what is learned is never wrong."""
    config, server = pilot(secure("popularity-secagg"), tmp_path / "pilot")
    grid = Grid(server)
    grid.tampered[deviant, UNMASK] = every_share_changed
    refused = None
    try:
        serve(grid, server, tmp_path / "out")
    except RunError as error:
        refused = str(error)
    if refused is None:
        check_predictions(server, simulated_likewise(config, tmp_path / "out"))
    else:
        assert "in every round" in refused


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
    grid.gone_from = dict.fromkeys(gone, kind)
    with pytest.raises(RunError, match=r"no usable report|in every round"):
        serve(grid, server, tmp_path / "out")
    here = [user for user in range(USERS) if user not in gone]
    assert {len(grid.devices[user].charges) for user in here} == {charged}
