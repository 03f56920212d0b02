"""Lists from sets with sampled negatives: what is claimed stands beside a ledger without a bound."""

import math
from typing import Any

import pytest

import simulation
from simulation import audit

SMALL = {"kind": "synthetic", "users": 60, "items": 40, "ratings": 900, "positive": ">= 4"}


def run(name: str, *overrides: str, copies: int = 10) -> Any:
    here, population = {"backend": "local"}, {**SMALL, "copies": copies}
    return simulation.run(name, page=False, dataset=population, simulation=here, overrides=list(overrides))


def test_what_is_claimed_is_not_charged() -> None:
    privacy = run("sampled-negatives", "protocol.privacy.epsilon=0.5").summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("claimed", "local")
    assert privacy["epsilon_per_rating"] is None
    assert privacy["epsilon_per_user"]["max"] is None
    assert privacy["epsilon_claimed"] == {"per_rating": 0.5, "per_user": 0.5 * 40}
    (said,) = [note for note in privacy["notes"] if note.startswith("The median user has")]
    size = int(said.split()[4])
    assert f"epsilon is {0.5 + math.log((40 - size) / size):.3g} and not 0.5" in said


def test_lists_come_near_those_of_clear_sets_as_answers_become_true() -> None:
    clear = run("ease", copies=100).summary["accuracy"]["ndcg_at_10"]
    noisy, nearly = (
        run("sampled-negatives", f"protocol.privacy.epsilon={epsilon}", copies=100).summary["accuracy"]
        for epsilon in (0.1, 12.0)
    )
    assert noisy["ndcg_at_10"] < nearly["ndcg_at_10"] == pytest.approx(clear, abs=0.01)


def test_an_audit_finds_that_the_claim_does_not_hold() -> None:
    found = audit("sampled-negatives", trials=400, seed=1)
    assert not found.holds
    broken = {finding.test for finding in found.findings if not finding.holds}
    assert {"an item of 64, had or not, from the probabilities", "one item rated or not"} <= broken
    assert all(finding.charged is None for finding in found.findings)
