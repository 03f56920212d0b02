"""Lists from randomised sets, whole or with sampled negatives: what is promised, charged and sent back."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.exchange import DELIVER, RefusalCode
from dprec.lists.model import ListModel, PairTable
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from simulation import audit
from tests.builders import OneNode, populated
from tests.make import synthetic
from tests.simulation.conftest import run_of_sets


def run(name: str, copies: int, epsilon: float) -> dict[str, Any]:
    overrides = [f"protocol.privacy.epsilon={epsilon}"] if epsilon else []
    summary: dict[str, Any] = run_of_sets(name, copies=copies, overrides=overrides).summary
    return summary


def test_epsilon_is_for_a_cell_and_whole_sets_cost_what_they_differ_in() -> None:
    privacy = run("randomized-sets", 300, 0.5)["privacy"]
    assert privacy["epsilon_per_rating"] == pytest.approx(0.5)
    assert privacy["epsilon_per_user"]["max"] == pytest.approx(40 * 0.5)
    assert privacy["epsilon_composed"]["max"] < 40 * 0.5
    (said,) = [note for note in privacy["notes"] if "add or remove one" in note]
    assert "(add or remove one): of 10 items 5, and" in said
    assert f"(replace one) {privacy['epsilon_composed']['max']:.4g}, for all 40 cells" in said


def test_what_is_claimed_of_sampled_negatives_is_not_charged() -> None:
    privacy = run("sampled-negatives", 10, 0.5)["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("claimed", "local")
    assert (privacy["epsilon_per_rating"], privacy["epsilon_per_user"]["max"]) == (None, None)
    assert privacy["epsilon_claimed"] == {"per_rating": 0.5, "per_user": 0.5 * 40}
    (said,) = [note for note in privacy["notes"] if note.startswith("The median user has")]
    size = int(said.split()[4])
    assert f"epsilon is {0.5 + math.log((40 - size) / size):.3g} and not 0.5" in said


def test_an_audit_finds_that_the_claim_does_not_hold() -> None:
    found = audit("sampled-negatives", trials=400, seed=1)
    assert not found.holds
    broken = {finding.test for finding in found.findings if not finding.holds}
    assert {"an item of 64, had or not, from the probabilities", "one item rated or not"} <= broken
    assert all(finding.charged is None for finding in found.findings)


def test_lists_come_near_those_of_clear_sets_as_answers_become_true() -> None:
    clear, *noisy = (
        run(name, 100, epsilon)["accuracy"]["ndcg_at_10"]
        for name, epsilon in (("ease", 0.0), ("sampled-negatives", 0.1), ("sampled-negatives", 12.0))
    )
    assert noisy[0] < noisy[1] == pytest.approx(clear, abs=0.01)


def test_a_device_takes_what_it_can_rank_by_and_refuses_anything_else(tmp_path: Path) -> None:
    protocol = RandomizedSetsProtocol(privacy=PrivacyBudget(epsilon=1.0, per="cell"))
    populated(tmp_path / "run", synthetic(5, 8, 20, positive=">= 4"), protocol.installed)
    node = OneNode(tmp_path)
    model, larger = (
        ListModel.of(1.0 + np.arange(items), None, PairTable.nothing()).encode() for items in (8, 9)
    )
    assert node.told(DELIVER, factors=model) == []
    for wrong in (b"", model[:-1], model + b"\0", larger):
        assert node.told(DELIVER, factors=wrong) == RefusalCode.MALFORMED_REQUEST
