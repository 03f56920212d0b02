"""Seeded devices, each with a folder, send and predict what the simulation does, and spend as much."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.app import client_app
from clients.faults import FaultOptions
from clients.population import write_population
from dprec.accounting import COMPARABLE_UNITS, Loss, PrivacyAccountant
from dprec.exchange import to_json
from dprec.personalization import Devices
from dprec.predictions import Predict
from dprec.randomness import RunKeys
from dprec.wire import TrafficLedger
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from pilot.tests.device.devices import USERS, DeviceGrid, group_on, install, some_ratings
from simulation.configuration.loading import load
from simulation.engine.grids import LocalGrid
from simulation.protocols import Protocol
from simulation.protocols.iterative import OwnFactors
from simulation.protocols.task import ServerTask
from strategies.roster import Roster, identify

RATINGS, SEED = some_ratings(), 5


def task_for(grid: LocalGrid, keys: RunKeys, group: str) -> ServerTask:
    return ServerTask(
        roster=Roster(identify(grid), USERS, 1),
        n_items=RATINGS.n_items,
        scale=RATINGS.scale,
        catalogue=None,
        server_seed=keys.server,
        public_seed=keys.installed.public_seed,
        group=group,
        progress=lambda *_: None,
        ended=lambda _: None,
    )


def simulated(protocol: Protocol, folder: Path, keys: RunKeys, group: str) -> tuple[LocalGrid, ServerTask]:
    write_population(
        folder / group,
        RATINGS,
        users_per_node=1,
        keys=keys.installed,
        faults=FaultOptions(),
        setup=protocol.setup(),
    )
    grid = LocalGrid(client_app(str(folder)), USERS)
    return grid, task_for(grid, keys, group)


def devices_of(protocol: Protocol, folder: Path, keys: RunKeys) -> list[Device]:
    setup = protocol.setup()
    folders = [
        install(folder / f"u{user}", setup, RATINGS, user, seeded=keys.installed) for user in range(USERS)
    ]
    return [Device(DeviceFolder(each.path), seeded=True) for each in folders]


def predictions_of(device: Device) -> dict[str, float]:
    with device.folder.predictions_file.open() as file:
        return {row["item"]: float(row["prediction"]) for row in csv.DictReader(file)}


CELLS = np.indices((USERS, RATINGS.n_items)).reshape(2, -1)


def both(preset: str, *overrides: str, folder: Path) -> tuple[Any, Any, Any, list[Device]]:
    """Return a protocol, what it served in the simulation and to devices, and the devices."""
    protocol: Any = load(preset, overrides).protocol.picked
    keys = RunKeys.derive(SEED, to_json(protocol))
    group = group_on(protocol.setup(), RATINGS)
    grid, task = simulated(protocol, folder / "simulated", keys, group)
    devices = devices_of(protocol, folder / "devices", keys)
    real = DeviceGrid(devices)
    return protocol, protocol.serve(grid, task), protocol.serve(real, task_for(real, keys, group)), devices


def check_traffic(expected: TrafficLedger, got: TrafficLedger) -> None:
    assert int(expected.uplink_payload.sum()) > 0
    for column in ("uplink_payload", "uplink_message", "downlink_payload", "downlink_message", "messages"):
        assert np.array_equal(getattr(expected, column), getattr(got, column)), column


def check_ledgers(expected: PrivacyAccountant, devices: list[Device]) -> None:
    spent_by = [Loss.composed(charge.loss for charge in device.charges) for device in devices]
    for unit in COMPARABLE_UNITS:
        spent = [getattr(one, f"per_{unit}") for one in spent_by]
        assert spent == expected.get_epsilon(per=unit).tolist()
        assert min(spent) > 0


@pytest.mark.parametrize(("preset", "charges"), [("blp-mf", 1), ("counts-and-bits", 2)])
def test_one_shot_protocols(tmp_path: Path, preset: str, charges: int) -> None:
    _, expected, got, devices = both(preset, folder=tmp_path)
    predicted, again = (held.learned.completed.predict(*CELLS) for held in (expected, got))
    assert np.array_equal(predicted, again)
    check_traffic(expected.collected.traffic, got.collected.traffic)
    check_ledgers(got.facts(RATINGS.counts)["accountant"], devices)
    assert {len(device.charges) for device in devices} == {charges}


def test_rounds(tmp_path: Path) -> None:
    protocol, expected, got, devices = both("pg-mf", "protocol.rounds=3", folder=tmp_path)
    assert np.array_equal(expected.factors, got.factors)
    check_traffic(expected.traffic, got.traffic)
    check_ledgers(expected.accountant, devices)
    received = protocol.downlink.rounded(expected.factors).astype(np.float64)
    check_predictions(OwnFactors(RATINGS, received, protocol.ridge), devices)


def test_statistics(tmp_path: Path) -> None:
    protocol, expected, got, devices = both("dp-als", folder=tmp_path)
    learned = expected.learner.learned_bytes()
    assert learned == got.learner.learned_bytes()
    check_traffic(expected.traffic, got.traffic)
    half = protocol.method.device(learned, RATINGS.n_items, RATINGS.scale)
    check_predictions(protocol.predictions_of(RATINGS, half)["predict"], devices)
    assert {charge.loss for device in devices for charge in device.charges} == {Loss(math.inf, math.inf)}


def test_a_report_that_protects_itself_is_charged_in_the_round_of_its_turn(tmp_path: Path) -> None:
    overrides = "protocol.aggregation={kind: local}", "protocol.privacy={epsilon: 4, per: user}"
    _, expected, got, devices = both("dp-als", *overrides, folder=tmp_path)
    check_traffic(expected.traffic, got.traffic)
    check_ledgers(got.accountant, devices)
    costly = [[charge for charge in device.charges if charge.loss.per_user] for device in devices]
    assert [len(own) for own in costly] == [1] * USERS
    assert {charge.loss.per_user for (charge,) in costly} == {got.accountant.get_epsilon()[0]}
    # Some have their turn in the first round, and some later.
    assert len({charge.round > 1 for (charge,) in costly}) == 2


def test_predictions_from_a_table(tmp_path: Path) -> None:
    protocol, expected, _, devices = both("one-bit-on-device", folder=tmp_path)
    check_predictions(Devices(protocol.process, expected.learned.sent_table, RATINGS).predict, devices)


def check_predictions(predict: Predict, devices: list[Device]) -> None:
    """Check that each user is given the predictions of the simulation for the unrated items, best first."""
    expected = predict(*CELLS).reshape(USERS, -1)
    for user, device in enumerate(devices):
        given = predictions_of(device)
        rated = RATINGS.items[RATINGS.indptr[user] : RATINGS.indptr[user + 1]]
        unrated = np.setdiff1d(np.arange(RATINGS.n_items), rated).tolist()
        assert given == {str(RATINGS.item_ids[item]): expected[user, item] for item in unrated}
        assert list(given.values()) == sorted(given.values(), reverse=True)
