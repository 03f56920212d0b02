"""A deployed run, with devices in this process: its run directory is that of the simulation."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError
from flwr.superlink.grid import http_grid

from dprec.errors import InputError
from dprec.exchange import SummedSetup
from dprec.lists import ListMethod
from dprec_pilot.computing import COMPUTES
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, write_enrolment
from dprec_pilot.server.serving import bounded_pulls, serve, server_app
from pilot.tests.server.pilots import (
    BLP,
    GRAM,
    GRAM_LOCAL,
    PG,
    RANDOMIZED_SETS,
    SECRET_SET,
    USERS,
    WEEKLY,
    grid_of,
    pilot,
)
from simulation import run
from simulation.pages import report
from simulation.storage.run_files import read_run
from tests.refusals import refused_at

BYTES = [f"{way}link_{what}_bytes" for way in ("up", "down") for what in ("payload", "message")]


@pytest.mark.parametrize(
    "values",
    [BLP, PG, GRAM, GRAM_LOCAL, SECRET_SET, RANDOMIZED_SETS],
    ids=lambda values: values["name"],
)
def test_the_run_directory_is_that_of_the_simulation(tmp_path: Path, values: dict[str, Any]) -> None:
    config, server = pilot(values, tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    deployed, simulated = read_run(tmp_path / "out"), run(config, page=False)
    epsilons = (
        ["epsilon_per_rating", "epsilon_per_user", "epsilon_composed"] if config.protocol.private else []
    )
    for column in [*BYTES, "messages", *epsilons]:
        assert np.array_equal(deployed.traffic[column], simulated.traffic[column]), column
    for got, expected in zip(deployed.rounds, simulated.record.rounds, strict=True):
        assert replace(got, seconds=0.0) == replace(expected, seconds=0.0, accuracy=None)
    assert deployed.summary.completion_diagnostics == simulated.record.summary.completion_diagnostics
    assert (tmp_path / "out" / "config.yaml").read_text() == simulated.record.config.to_yaml()


@pytest.mark.parametrize("values", [GRAM, GRAM_LOCAL], ids=lambda values: values["name"])
def test_devices_write_the_lists_of_the_simulation(tmp_path: Path, values: dict[str, Any]) -> None:
    config, server = pilot(values, tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    simulated = run(config, page=False)
    columns = (simulated.predictions[name].tolist() for name in ("user", "item", "rank"))
    expected = {(str(user), str(item), int(rank)) for user, item, rank in zip(*columns, strict=True)}
    found = set()
    for enrolled, folder in zip(
        server.enrolled(), sorted((tmp_path / "pilot" / "devices").iterdir()), strict=True
    ):
        own = (folder / "profile.csv").read_text().split()[1:]
        with (folder / "predictions.csv").open() as file:
            ranked = [row["item"] for row in csv.DictReader(file)]
        assert sorted([*own, *ranked]) == sorted(server.item_ids)
        found |= {(enrolled.user, item, rank) for rank, item in enumerate(ranked, start=1)}
    assert len(expected) >= USERS
    assert expected <= found
    assert "Deployed: 5 people are enrolled" in report(tmp_path / "out").read_text()


@pytest.mark.parametrize("values", [GRAM, GRAM_LOCAL], ids=lambda values: values["name"])
def test_what_follows_from_sizes_is_agreed_on_and_others_may_come(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    _, server = pilot(values, tmp_path / "pilot")
    setup = DeviceFolder(tmp_path / "pilot" / "devices" / "000000").agreement.setup
    assert isinstance(setup, SummedSetup)
    assert isinstance(setup.method, ListMethod)
    assert setup.method.options.items == 12
    assert setup.method.options.popularity_share
    grid = grid_of(server)
    write_enrolment(server.enrolment_file, [*server.enrolled(), Enrolled("later", None)])
    assert server.protocol().setup() == setup
    serve(grid, server, tmp_path / "out")
    assert [record.causes for record in read_run(tmp_path / "out").rounds] == [{"absent": 1}] * 2


def test_what_a_server_cannot_know_is_null(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["devices"] == "deployed"
    assert summary["accuracy"] == {"rmse": None, "mae": None}
    assert summary["dataset"]["users"] == USERS
    assert summary["dataset"]["train_ratings"] is None
    assert any("A test:" in note for note in summary["privacy"]["notes"])
    files = read_run(tmp_path / "out")
    assert np.isnan(files.traffic["ratings"]).all()
    assert files.predictions["prediction"].size == 0
    assert "Deployed: 5 people are enrolled" in report(tmp_path / "out").read_text()


def test_who_never_came_is_absent_and_costs_nothing(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    grid = grid_of(server)
    enrolled = server.enrolled()
    enrolled[2] = replace(enrolled[2], node_id=None)
    write_enrolment(server.enrolment_file, enrolled)
    serve(grid, server, tmp_path / "out")
    files = read_run(tmp_path / "out")
    assert files.rounds[0].causes == {"absent": 1}
    assert files.bytes_per_user[2] == 0
    assert (np.delete(files.bytes_per_user, 2) > 0).all()


def runs_of(server: ServerFolder, *runs: int) -> list[list[float]]:
    """Run a pilot again and again, with devices that start anew; return what they are told to expect."""
    told = []
    for number in runs:
        serve(grid_of(server), server, server.path / f"out{number}")
        folders = sorted((server.path.parent / "devices").iterdir())
        lists = [(folder / "predictions.csv").read_text().split()[1:] for folder in folders]
        pairs = (dict(line.split(",") for line in own) for own in lists)
        told.append([float(own[item]) for own in pairs for item in sorted(own)])
    return told


def alike(one: list[float], other: list[float]) -> bool:
    """Return whether the same answers were read: fits begin elsewhere in every run, and end within .002."""
    return len(one) == len(other) and bool(np.abs(np.subtract(one, other)).max() < 0.05)


def charges_of(server: ServerFolder) -> list[list[dict[str, Any]]]:
    ledgers = sorted(server.path.parent.glob("devices/*/ledger.jsonl"))
    return [[json.loads(line) for line in ledger.read_text().splitlines()] for ledger in ledgers]


def test_a_pilot_with_a_schedule_is_answered_alike_in_every_run_and_charged_once(tmp_path: Path) -> None:
    _, server = pilot(WEEKLY, tmp_path / "pilot", seeded=False)
    first, second, third = runs_of(server, 1, 2, 3)
    assert alike(first, second)
    assert alike(second, third)
    assert [len(charges) for charges in charges_of(server)] == [1] * USERS
    notes = read_run(server.path / "out3").summary.privacy.notes
    assert any(note.startswith("Each rating is answered once") for note in notes)
    # Without a schedule, each run is another question.
    _, server = pilot(
        {**WEEKLY, "schedule": None, "split": BLP["split"]}, tmp_path / "fresh", seeded=False, runs=2
    )
    first, second = runs_of(server, 1, 2)
    assert not alike(first, second)
    assert [len(charges) for charges in charges_of(server)] == [2] * USERS


@pytest.mark.parametrize(("on_change", "limit"), [("keep", 1.0), ("update", 2.0)])
def test_a_rating_that_is_changed_follows_what_was_agreed_on(
    tmp_path: Path, on_change: str, limit: float
) -> None:
    schedule = {"kind": "increments", "on_change": on_change}
    _, server = pilot({**WEEKLY, "schedule": schedule}, tmp_path / "pilot", seeded=False)
    (before,) = runs_of(server, 1)
    for folder in (tmp_path / "pilot" / "devices").iterdir():
        device = DeviceFolder(folder)
        assert device.options.limits.per_rating == limit
        changed = [f"{line.split(',')[0]},{6 - float(line.split(',')[1])}" for line in rated_on(device)]
        device.profile_file.write_text("\n".join(["item,rating", *changed, ""]))
    (after,) = runs_of(server, 2)
    assert alike(after, before) is (on_change == "keep")
    spent = [sum(charge["per_user"] for charge in charges) for charges in charges_of(server)]
    rated = [rated_on(DeviceFolder(path)) for path in sorted((tmp_path / "pilot" / "devices").iterdir())]
    again = [sum(not line.endswith(",3.0") for line in lines) if limit > 1 else 0 for lines in rated]
    assert spent == pytest.approx([len(lines) + more for lines, more in zip(rated, again, strict=True)])


def rated_on(device: DeviceFolder) -> list[str]:
    return device.profile_file.read_text().splitlines()[1:]


def test_a_device_that_has_spent_its_budget_refuses_and_the_run_goes_on(tmp_path: Path) -> None:
    _, server = pilot(PG, tmp_path / "pilot")
    limits = tmp_path / "pilot" / "devices" / "000001" / "device.json"
    limits.write_text(limits.read_text().replace('"per_user": 1.6', '"per_user": 0.6'))
    serve(grid_of(server), server, tmp_path / "out")
    files = read_run(tmp_path / "out")
    assert [record.causes for record in files.rounds] == [{}, {"budget-spent": 1}, {"budget-spent": 1}]
    lines = (tmp_path / "out" / "rounds.jsonl").read_text().splitlines()
    assert json.loads(lines[1])["causes"] == {"budget-spent": 1}
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


def test_a_folder_of_another_version_is_refused_by_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    grid = grid_of(server)
    monkeypatch.setattr("dprec_pilot.device.folder.COMPUTES", COMPUTES + 1)
    with refused_at("deployment.json") as caught:
        serve(grid, server, tmp_path / "out")
    assert str(COMPUTES) in caught.value.found
    assert str(COMPUTES + 1) in caught.value.accepted


@pytest.mark.parametrize("given", [{}, {"folder": "pilot"}, {"folder": "/pilot", "output": "out"}])
def test_paths_are_those_of_the_server(given: dict[str, str]) -> None:
    from flwr.app import Context, RecordDict

    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=dict(given))
    with pytest.raises(InputError, match="an absolute path"):
        server_app()(None, context)  # type: ignore[arg-type]


def never(object_id: str) -> bytes:
    raise ObjectUnavailableError(object_id)


def test_contents_that_never_come_are_given_up() -> None:
    before = http_grid.pull_objects
    with bounded_pulls(0.05), pytest.raises(ObjectPullError):
        http_grid.pull_objects(["id"], never)
    assert http_grid.pull_objects is before


def test_contents_that_come_are_returned() -> None:
    with bounded_pulls(0.05):
        assert http_grid.pull_objects(["id"], lambda object_id: b"object") == {"id": b"object"}
