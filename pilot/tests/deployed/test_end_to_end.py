"""Two pilots on a real SuperLink, with TLS and authentication: the same bits as in the simulation.

Five devices take part in each, in one process, which is killed between two rounds. Most of the time is spent
waiting for Flower's processes to start.
"""

import csv
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dprec.wire.traffic import MEASURED
from dprec_pilot.server.enrolling import enrol
from pilot.tests.deployed.wire import ON_A_SUPERLINK, Wire, await_that, charges, free_port, kill, wired
from pilot.tests.make import BLP, PG, USERS, pilot
from simulation import run
from simulation.configuration.models import RunConfig
from simulation.result import RunResult
from simulation.storage.run_files import RunFiles, read_run

pytestmark = ON_A_SUPERLINK

MOST_DIFFERENCE = 0.05


@dataclass
class Deployed:
    """What the devices and servers of two pilots have done."""

    wire: Wire
    folder: Path
    configs: dict[str, RunConfig]

    def devices(self, name: str) -> list[Path]:
        return sorted((self.folder / name / "devices").iterdir())

    def files(self, name: str) -> RunFiles:
        return read_run(self.folder / f"{name}-out")

    def simulated(self, name: str) -> RunResult:
        return run(self.configs[name], page=False)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder, port = tmp_path_factory.mktemp("deployed"), free_port()
    blp, blp_server = pilot(BLP, folder / "blp", host="127.0.0.1", port=port)
    pg, pg_server = pilot(PG, folder / "pg", host="127.0.0.1", port=port)
    # One SuperLink, with one certificate, for both.
    shutil.copy(blp_server.path / "ca.crt", pg_server.path / "ca.crt")
    with wired(folder / "blp", port) as wire:
        found = Deployed(wire, folder, {"blp": blp, "pg": pg})
        for server in (blp_server, pg_server):
            assert enrol(server, wire.address) == USERS
        everybody = found.devices("blp") + found.devices("pg")
        serving = wire.devices(everybody, "devices", "--seeded")
        wire.run(blp_server, folder / "blp-out")
        await_that(lambda: wire.log("superlink").count("Finished task") == 1, wire)
        wire.run(pg_server, folder / "pg-out")
        # Between rounds, when the last device of a turn has sent its reply: a question that dies with a
        # device that is back at once is asked again only after a while.
        await_that(lambda: wire.log("devices").count("answered train") >= USERS, wire)
        await_that(lambda: wire.log("superlink").count("Push replies") >= 3 * USERS, wire)
        kill(serving)
        before = [charges(device) for device in everybody]
        assert len(before[-1]) < PG["protocol"]["rounds"]
        wire.devices(everybody, "devices", "--seeded")
        wire.run(blp_server, folder / "again")
        await_that(lambda: wire.log("superlink").count("Finished task") == 3, wire)
        after = [charges(device) for device in everybody]
        assert [new[: len(old)] for old, new in zip(before, after, strict=True)] == before
        yield found


@pytest.mark.parametrize("name", ["blp", "pg"])
def test_bytes_and_losses_are_those_of_the_simulation(deployed: Deployed, name: str) -> None:
    files, simulated = deployed.files(name), deployed.simulated(name)
    for way in ("up", "down"):
        for what in ("payload", "message"):
            column = f"{way}link_{what}_bytes"
            assert np.array_equal(files.traffic[column], simulated.traffic[column]), column
    for user, folder in enumerate(deployed.devices(name)):
        spent = charges(folder)
        assert [charge.round for charge in spent] == [record.round for record in simulated.record.rounds]
        for unit in ("per_rating", "per_user"):
            total = math.fsum(getattr(charge, unit) or 0.0 for charge in spent)
            assert total == pytest.approx(simulated.traffic[f"epsilon_{unit}"][user], rel=1e-12)


@pytest.mark.parametrize(("name", "sent"), [("blp", np.float32), ("pg", np.float64)])
def test_predictions_are_those_of_the_simulation(deployed: Deployed, name: str, sent: type) -> None:
    simulated = deployed.simulated(name)
    given = {}
    for user, folder in enumerate(deployed.devices(name)):
        with (folder / "predictions.csv").open() as file:
            given |= {(user, row["item"]): float(row["prediction"]) for row in csv.DictReader(file)}
    users = {str(user): place for place, user in enumerate(simulated.traffic["user"])}
    columns = (simulated.predictions[column] for column in ("user", "item", "prediction"))
    cells = {(users[str(user)], str(item)): sent(value) for user, item, value in zip(*columns, strict=True)}
    scale = deployed.files(name).summary.dataset.scale
    assert len(cells) > USERS
    assert {cell: np.clip(given[cell], *scale) for cell in cells} == cells


def test_killed_devices_go_on_where_they_were(deployed: Deployed) -> None:
    for folder in deployed.devices("pg"):
        assert [charge.round for charge in charges(folder)] == [1, 2, 3]
    assert all(record.replies == USERS for record in deployed.files("pg").rounds)


def test_a_run_beyond_the_limits_is_refused_and_charges_nothing(deployed: Deployed) -> None:
    assert not (deployed.folder / "again" / "summary.json").exists()
    assert {len(charges(folder)) for folder in deployed.devices("blp")} == {1}


def test_the_server_hears_codes_and_no_words(deployed: Deployed) -> None:
    heard, log = bytes(deployed.wire.read.kept_up), deployed.wire.log("devices")
    assert heard.count(b"BUDGET_SPENT") >= USERS
    reasons = [line.partition("BUDGET_SPENT, ")[2] for line in log.splitlines() if "BUDGET_SPENT" in line]
    assert len(reasons) == USERS
    for words in [*reasons, "epsilon", "limit", "Traceback", "Error", "Exception", str(deployed.folder)]:
        assert words.encode() not in heard, words


def test_the_network_carries_what_the_model_says(deployed: Deployed) -> None:
    wire = deployed.wire
    messages = {"up": 0, "down": 0}
    for name in ("blp", "pg"):
        for way in messages:
            messages[way] += int(deployed.files(name).traffic[f"{way}link_message_bytes"].sum())
    delivered, sent = wire.requests("confirm-message-received"), wire.requests("push-messages")
    assert min(delivered, sent) >= USERS * (2 + PG["protocol"]["rounds"])
    joins = sum(wire.requests(path) for path in ("activate-node", "deactivate-node", "send-node-heartbeat"))
    polls = wire.requests("pull-messages") - delivered
    counts = {
        "handshake": wire.counted.connections,
        "poll": polls,
        "heartbeat": joins,
        "received": delivered,
        "pulled": wire.requests("pull-object"),
        "sent": sent,
        "pushed": wire.requests("push-object"),
    }
    for way, counted in (("up", wire.counted.up), ("down", wire.counted.down)):
        modelled = sum(getattr(getattr(MEASURED, name), way) * count for name, count in counts.items())
        assert modelled + messages[way] == pytest.approx(counted, rel=MOST_DIFFERENCE), counts
