"""Lists from randomised sets: what is promised and charged, what is sent back, and how the lists are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, RecordDict

import simulation
from clients.app import client_app
from dprec.accounting import PrivacyBudget
from dprec.datasets import Synthetic
from dprec.exchange import DELIVER, RandomizedSetsSetup, RefusalCode
from dprec.lists.model import ItemTable, ListModel
from dprec.mechanisms import RandomizedSet
from simulation.engine.grids import LocalGrid
from tests.builders import populated

SMALL = {"kind": "synthetic", "users": 60, "items": 40, "ratings": 900, "positive": ">= 4"}


def run(name: str, *overrides: str, users_per_node: int | str = "all", copies: int = 300) -> Any:
    here = {"backend": "local", "users_per_node": users_per_node}
    population = {**SMALL, "copies": copies}
    return simulation.run(name, page=False, dataset=population, simulation=here, overrides=list(overrides))


def test_epsilon_is_for_a_cell_and_whole_sets_cost_what_they_differ_in() -> None:
    privacy = run("randomized-sets", "protocol.privacy.epsilon=0.5").summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("proved", "local")
    assert privacy["hides_rated_items"]
    assert privacy["epsilon_per_rating"] == pytest.approx(0.5)
    assert privacy["epsilon_per_user"]["max"] == pytest.approx(40 * 0.5)
    assert privacy["epsilon_composed"]["max"] < 40 * 0.5
    (said,) = [note for note in privacy["notes"] if "add or remove one" in note]
    assert "(add or remove one): of 10 items 5, and" in said
    assert f"(replace one) {privacy['epsilon_composed']['max']:.4g}, for all 40 cells" in said


def test_lists_are_better_with_less_noise_and_better_than_a_random_order() -> None:
    figures = [
        run("randomized-sets", f"protocol.privacy.epsilon={epsilon}", copies=1500).summary["accuracy"]
        for epsilon in (0.05, 4.0)
    ]
    noisy, clear = (accuracy["ndcg_at_10"] for accuracy in figures)
    assert noisy < clear
    assert clear > 1.2 * run("random-list", copies=1500).summary["accuracy"]["ndcg_at_10"]


def test_a_device_takes_what_it_can_rank_by_and_refuses_anything_else(tmp_path: Path) -> None:
    setup = RandomizedSetsSetup(mechanism=RandomizedSet(), privacy=PrivacyBudget(epsilon=1.0, per="cell"))
    populated(tmp_path / "run", Synthetic(users=5, items=8, ratings=20, positive=">= 4").load(), setup, 5)
    grid = LocalGrid(client_app(str(tmp_path)), 1)

    def told(payload: bytes) -> int | None:
        content = RecordDict({"request": ConfigRecord({"factors": payload})})
        question = Message(content, next(iter(grid.get_node_ids())), DELIVER, group_id="run")
        (reply,) = grid.send_and_receive([question])
        return reply.error.code if reply.has_error() else None

    model = ListModel.of(np.ones(8), None, ItemTable.nothing()).encode()
    assert told(model) is None
    for wrong in (
        b"",
        model[:-1],
        model + b"\0",
        ListModel.of(np.ones(9), None, ItemTable.nothing()).encode(),
    ):
        assert told(wrong) == RefusalCode.MALFORMED_REQUEST
