"""A deployed run, with devices in this process: its run directory is that of the simulation."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.protocols.base import Public
from dprec.protocols.gram import GramProtocol
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, write_enrolment
from dprec_pilot.server.serving import serve
from pilot.tests.make import (
    BLP,
    GRAM,
    GRAM_LOCAL,
    OF_ONES_OWN,
    PG,
    RANDOMIZED_SETS,
    SECRET_SET,
    USERS,
    WEEKLY,
    folders_of,
    grid_of,
    pilot,
)
from pilot.tests.server.test_secure_sums import check_predictions, check_same
from simulation import run
from simulation.execution import load_ratings
from simulation.storage.run_files import read_run
from tests.refusals import refused_at
from tests.simulation.conftest import presets
from tests.simulation.test_own_family import OWN, VALUES

TABLE = {**BLP, "name": "one-bit-on-device", "protocol": presets()["one-bit-on-device"]["protocol"]}
PROTECTED = {
    **BLP,
    "name": "dp-als",
    "seed": 6,
    "protocol": {
        **presets()["dp-als"]["protocol"],
        "aggregation": {"kind": "local"},
        "privacy": {"epsilon": 4.0, "per": "user"},
    },
}


@pytest.mark.parametrize(
    "values",
    [BLP, PG, GRAM, GRAM_LOCAL, SECRET_SET, RANDOMIZED_SETS, TABLE, VALUES, OF_ONES_OWN],
    ids=lambda values: values["name"],
)
def test_the_run_directory_is_that_of_the_simulation(tmp_path: Path, values: dict[str, Any]) -> None:
    config, server = pilot(values, tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    simulated = run(config, page=False)
    check_same(read_run(tmp_path / "out"), simulated)
    # What follows from sizes is written down: a server sees others, later, too.
    suited = config.protocol.suited(Public.of(load_ratings(config)[0], content=False))
    expected = config.model_copy(update={"protocol": suited}).to_yaml()
    assert (tmp_path / "out" / "config.yaml").read_text() == expected
    if values not in (SECRET_SET, VALUES):
        check_predictions(server, simulated, sent=np.float32 if values == BLP else np.float64)
    for own, reference in ((VALUES, OWN), (OF_ONES_OWN, OF_ONES_OWN["protocol"]["kind"])):
        if values is own:
            # A family of reports, or a protocol, from a user's file, which the installations name.
            assert json.loads(folders_of(server)[0].options_file.read_text())["classes"] == [reference]


def test_a_report_that_protects_itself_is_charged_in_the_round_of_its_turn(tmp_path: Path) -> None:
    config, server = pilot(PROTECTED, tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    simulated = run(config, page=False)
    check_same(read_run(tmp_path / "out"), simulated)
    costly = [[charge for charge in charges if charge["per_user"]] for charges in charges_of(server)]
    assert [len(charges) for charges in costly] == [1] * USERS
    assert [charge["per_user"] for (charge,) in costly] == simulated.traffic["epsilon_per_user"].tolist()
    # Some have their turn in the first round, and some later.
    assert len({charge["round"] > 1 for (charge,) in costly}) == 2


@pytest.mark.parametrize("values", [GRAM, GRAM_LOCAL], ids=lambda values: values["name"])
def test_what_follows_from_sizes_is_agreed_on_and_others_may_come(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    _, server = pilot(values, tmp_path / "pilot")
    protocol = folders_of(server)[0].agreement.protocol
    assert isinstance(protocol, GramProtocol)
    assert protocol.table.items == 12
    assert protocol.table.popularity_share
    grid = grid_of(server)
    write_enrolment(server.enrolment_file, [*server.enrolled(), Enrolled("later", None)])
    assert server.protocol().installed == protocol
    serve(grid, server, tmp_path / "out")
    # Who never came is absent, and costs nothing.
    files = read_run(tmp_path / "out")
    assert [record.causes for record in files.rounds] == [{"absent": 1}] * 2
    assert (files.bytes_per_user > 0).tolist() == [True] * USERS + [False]


def runs_of(server: ServerFolder, *runs: int) -> list[list[float]]:
    """Run a pilot again and again, with devices that start anew; return what they are told to expect."""
    told = []
    for number in runs:
        serve(grid_of(server), server, server.path / f"out{number}")
        lists = [own.predictions_file.read_text().split()[1:] for own in folders_of(server)]
        pairs = (dict(line.split(",") for line in own) for own in lists)
        told.append([float(own[item]) for own in pairs for item in sorted(own)])
    return told


def alike(one: list[float], other: list[float]) -> bool:
    """Return whether the same answers were read: fits begin elsewhere in every run, and end within .002."""
    return len(one) == len(other) and bool(np.abs(np.subtract(one, other)).max() < 0.05)


def charges_of(server: ServerFolder) -> list[list[dict[str, Any]]]:
    ledgers = [own.ledger_file for own in folders_of(server)]
    return [[json.loads(line) for line in ledger.read_text().splitlines()] for ledger in ledgers]


def test_a_pilot_with_a_schedule_is_answered_alike_in_every_run_and_charged_once(tmp_path: Path) -> None:
    _, server = pilot(WEEKLY, tmp_path / "pilot", seeded=False)
    first, second = runs_of(server, 1, 2)
    assert alike(first, second)
    assert [len(charges) for charges in charges_of(server)] == [1] * USERS
    notes = read_run(server.path / "out2").summary.privacy.notes
    assert any(note.startswith("Each rating is answered once") for note in notes)
    # Without a schedule, each run is another question.
    once = {**WEEKLY, "schedule": None, "split": BLP["split"]}
    _, server = pilot(once, tmp_path / "fresh", seeded=False, runs=2)
    first, second = runs_of(server, 1, 2)
    assert not alike(first, second)
    assert [len(charges) for charges in charges_of(server)] == [2] * USERS


def test_a_device_that_has_spent_its_budget_refuses_and_the_run_goes_on(tmp_path: Path) -> None:
    _, server = pilot(PG, tmp_path / "pilot")
    limits = folders_of(server)[1].options_file
    limits.write_text(limits.read_text().replace('"per_user": 1.6', '"per_user": 0.6'))
    serve(grid_of(server), server, tmp_path / "out")
    files = read_run(tmp_path / "out")
    assert [record.causes for record in files.rounds] == [{}, {"budget-spent": 1}, {"budget-spent": 1}]
    assert any("2 budget-spent" in note for note in files.summary.privacy.notes)


@pytest.mark.parametrize(
    ("changed", "old", "new"),
    [("config.yaml", "1.0", "1.5"), ("catalogue.txt", "1\n", "31\n"), ("deployment.json", "1.0,", "1.5,")],
)
def test_a_folder_of_another_protocol_is_refused(tmp_path: Path, changed: str, old: str, new: str) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    grid = grid_of(server)
    path = server.path / changed
    path.write_text(path.read_text().replace(old, new, 1))
    with refused_at("server: config.yaml, catalogue.txt, directory.txt and deployment.json"):
        serve(grid, server, tmp_path / "out")
