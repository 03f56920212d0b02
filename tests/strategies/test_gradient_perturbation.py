"""Gradient perturbation as a Flower strategy: `start` runs the same rounds as one after the other."""

from pathlib import Path

import numpy as np
import pytest
from flwr.app import ArrayRecord

from clients.app import client_app
from dprec.accounting import PrivacyBudget
from dprec.binarization import binary_scale
from dprec.completion import slope_channel
from dprec.protocols.base import Public
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from simulation.engine.grids import LocalGrid
from strategies.roster import Roster, identify
from strategies.training import RowRounds
from tests.builders import populated
from tests.make import random_ratings

USERS, ITEMS, SIZE, ROUNDS, GROUP = 12, 9, 5, 3, "run"
CLAMP, SYMBOLS, EPSILON = 0.5, 64, 1.0


def begin(folder: Path) -> tuple[LocalGrid, RowRounds]:
    ratings = random_ratings(USERS, ITEMS, 0.4, 1, binary_scale())
    protocol = GradientPerturbationProtocol(
        clamp=CLAMP, symbols=SYMBOLS, rounds=ROUNDS, privacy=PrivacyBudget(epsilon=ROUNDS * EPSILON)
    )
    populated(folder / GROUP, ratings, protocol, SIZE, seed=2)
    grid = LocalGrid(client_app(str(folder)), -(-USERS // SIZE))
    strategy = RowRounds(
        protocol=protocol,
        public=Public.of(ratings),
        seed=2,
        public_seed=3,
        group=GROUP,
        roster=Roster(identify(grid), USERS, SIZE),
        rated=ratings.counts > 0,
        counts=ratings.counts,
    )
    return grid, strategy


def entries(strategy: RowRounds) -> list[float]:
    users, items = np.divmod(np.arange(USERS * ITEMS), ITEMS)
    hidden: list[float] = strategy.server.matrix.hidden(users, items).tolist()
    return hidden


def test_flower_runs_the_same_rounds(tmp_path: Path) -> None:
    grid, alone = begin(tmp_path / "alone")
    for _ in range(ROUNDS):
        alone.run_round(grid)
    grid, started = begin(tmp_path / "started")
    result = started.start(grid, ArrayRecord(), num_rounds=ROUNDS)
    assert entries(started) == entries(alone)
    assert any(entries(started))
    assert started.traffic.uplink_message.tolist() == alone.traffic.uplink_message.tolist()
    assert started.accountant.get_epsilon().tolist() == alone.accountant.get_epsilon().tolist()
    assert [record.replies for record in started.records] == [USERS] * ROUNDS
    assert {index: dict(record) for index, record in result.train_metrics_clientapp.items()} == {
        index: {"replies": USERS, "asked": USERS} for index in range(1, ROUNDS + 1)
    }


def test_what_is_recorded_adds_up_to_the_traffic(tmp_path: Path) -> None:
    grid, strategy = begin(tmp_path)
    for _ in range(ROUNDS):
        strategy.run_round(grid)
    for column in ("uplink_payload", "uplink_message", "downlink_payload", "downlink_message"):
        total = sum(getattr(record, f"{column}_bytes") for record in strategy.records)
        assert total == getattr(strategy.traffic, column).sum()
    # From the second round on, devices are sent the entries at their items and need not tell these.
    first, second = strategy.records[:2]
    assert first.downlink_payload_bytes == 0
    assert second.downlink_payload_bytes > 0
    assert second.uplink_payload_bytes < first.uplink_payload_bytes
    # Every rating of a profile is charged in every round.
    loss = slope_channel(CLAMP, SYMBOLS, EPSILON).epsilon
    counts = strategy.counts
    assert counts is not None
    assert strategy.accountant.get_epsilon() == pytest.approx(ROUNDS * counts * loss)
