"""Two pilots on a real SuperLink, with TLS and authentication: the same bits as in the simulation.

Five devices take part in each, in one process, which is killed between two rounds. Most of the time is spent
waiting for Flower's processes to start.
"""

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dprec.wire.traffic import MEASURED
from dprec_pilot.server.enrolling import enrol
from dprec_pilot.server.server_folder import ServerFolder
from pilot.tests.deployed.wire import ON_A_SUPERLINK, Wire, await_that, charges, free_port, kill, wired
from pilot.tests.make import BLP, PG, USERS, folders_of, pilot
from pilot.tests.server.test_secure_sums import check_predictions, check_same
from simulation import run
from simulation.configuration.models import RunConfig
from simulation.storage.run_files import RunRecord, read_run

pytestmark = ON_A_SUPERLINK

MOST_DIFFERENCE = 0.05


@dataclass
class Deployed:
    """What the devices and servers of two pilots have done."""

    wire: Wire
    folder: Path
    pilots: dict[str, tuple[RunConfig, ServerFolder]]

    def ledgers(self, name: str) -> list[list]:
        return [charges(device.path) for device in folders_of(self.pilots[name][1])]

    def files(self, name: str) -> RunRecord:
        return read_run(self.folder / f"{name}-out")


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder, port = tmp_path_factory.mktemp("deployed"), free_port()
    pilots = {
        name: pilot(values, folder / name, host="127.0.0.1", port=port)
        for name, values in (("blp", BLP), ("pg", PG))
    }
    (_, blp), (_, pg) = pilots.values()
    # One SuperLink, with one certificate, for both.
    shutil.copy(blp.path / "ca.crt", pg.path / "ca.crt")
    with wired(folder / "blp", port) as wire:
        found = Deployed(wire, folder, pilots)
        for server in (blp, pg):
            assert enrol(server, wire.address) == USERS
        everybody = [device.path for device in folders_of(blp) + folders_of(pg)]
        serving = wire.devices(everybody, "devices", "--seeded")
        wire.run(blp, folder / "blp-out")
        await_that(lambda: wire.log("superlink").count("Finished task") == 1, wire)
        wire.run(pg, folder / "pg-out")
        # Between rounds, when the last device of a turn has sent its reply: a question that dies with a
        # device that is back at once is asked again only after a while.
        await_that(lambda: wire.log("devices").count("answered train") >= USERS, wire)
        await_that(lambda: wire.log("superlink").count("Push replies") >= 3 * USERS, wire)
        kill(serving)
        before = found.ledgers("blp") + found.ledgers("pg")
        assert len(before[-1]) < PG["protocol"]["rounds"]
        wire.devices(everybody, "devices", "--seeded")
        wire.run(blp, folder / "again")
        await_that(lambda: wire.log("superlink").count("Finished task") == 3, wire)
        after = found.ledgers("blp") + found.ledgers("pg")
        assert [new[: len(old)] for old, new in zip(before, after, strict=True)] == before
        yield found


@pytest.mark.parametrize(("name", "sent"), [("blp", np.float32), ("pg", np.float64)])
def test_bytes_losses_and_predictions_are_those_of_the_simulation(
    deployed: Deployed, name: str, sent: type
) -> None:
    config, server = deployed.pilots[name]
    simulated = run(config, page=False)
    check_same(deployed.files(name), simulated)
    check_predictions(server, simulated, sent=sent)
    for user, spent in enumerate(deployed.ledgers(name)):
        # Killed devices have gone on where they were, and paid once.
        assert [charge.round for charge in spent] == [record.round for record in simulated.record.rounds]
        for unit in ("per_rating", "per_user"):
            total = math.fsum(getattr(charge, unit) or 0.0 for charge in spent)
            assert total == pytest.approx(simulated.traffic[f"epsilon_{unit}"][user], rel=1e-12)


def test_a_run_beyond_the_limits_is_refused_in_codes_and_no_words(deployed: Deployed) -> None:
    assert not (deployed.folder / "again" / "summary.json").exists()
    assert {len(spent) for spent in deployed.ledgers("blp")} == {1}
    heard, log = bytes(deployed.wire.read.kept_up), deployed.wire.log("devices")
    assert heard.count(b"BUDGET_SPENT") >= USERS
    reasons = [line.partition("BUDGET_SPENT, ")[2] for line in log.splitlines() if "BUDGET_SPENT" in line]
    assert len(reasons) == USERS
    for words in [*reasons, "epsilon", "limit", "Traceback", "Error", "Exception", str(deployed.folder)]:
        assert words.encode() not in heard, words


def test_the_network_carries_what_the_model_says(deployed: Deployed) -> None:
    wire = deployed.wire
    delivered, sent = wire.requests("confirm-message-received"), wire.requests("push-messages")
    assert min(delivered, sent) >= USERS * (2 + PG["protocol"]["rounds"])
    counts = {
        "handshake": wire.counted.connections,
        "poll": wire.requests("pull-messages") - delivered,
        "heartbeat": sum(map(wire.requests, ("activate-node", "deactivate-node", "send-node-heartbeat"))),
        "received": delivered,
        "pulled": wire.requests("pull-object"),
        "sent": sent,
        "pushed": wire.requests("push-object"),
    }
    for way, counted in (("up", wire.counted.up), ("down", wire.counted.down)):
        messages = sum(
            int(deployed.files(name).traffic[f"{way}link_message_bytes"].sum()) for name in deployed.pilots
        )
        modelled = sum(getattr(getattr(MEASURED, name), way) * count for name, count in counts.items())
        assert modelled + messages == pytest.approx(counted, rel=MOST_DIFFERENCE), counts
