"""The protocol dp-als: what it promises, what it charges, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import MatchedBudget, PrivacyBudget, gaussian_epsilon, largest_mu
from dprec.datasets import Synthetic
from dprec.errors import SettingError
from dprec.private_als import FactorizationOptions
from simulation import run
from simulation.protocols.private_als import PrivateAlsProtocol
from simulation.result import RunResult
from tests.simulation.divisions import bits, compare, divided

BUDGET = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-6)
PROTOCOL = PrivateAlsProtocol(privacy=BUDGET)
TRAIN = Synthetic(users=30, items=20, ratings=300).load()


def values(simulation: dict[str, Any] | None = None, **protocol: Any) -> dict[str, Any]:
    privacy = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-5}
    own: dict[str, Any] = {"kind": "dp-als", "privacy": privacy, **protocol}
    return {
        "name": "sums",
        "seed": 1,
        "dataset": {"kind": "synthetic", "users": 60, "items": 30, "ratings": 900},
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "protocol": own,
        "simulation": {"backend": "local", **(simulation or {})},
    }


def ran(simulation: dict[str, Any] | None = None, **protocol: Any) -> RunResult:
    return run(values(simulation, **protocol), page=False)


def test_the_bits_do_not_depend_on_cohorts_whatever_fails(tmp_path: Path) -> None:
    shape = {"rank": 2, "factor_rounds": 1, "bias_rounds": 1, "popular_from": 0.0}
    config = values(
        {"faults": {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2}},
        factorization={**shape, "sampling": "tail", "ratings_per_user": 6},
    )
    expected = bits(None, divided(config, "local", 1, "all"), tmp_path / "all")
    assert expected["rounds"][1]["failures"] > 0
    compare(expected, bits(None, divided(config, "local", 1, 7), tmp_path / "sevens"))


def test_the_rounds_compose_to_what_was_asked() -> None:
    base = 1 / largest_mu(1.0, 1e-6)
    multipliers = np.array(PROTOCOL.multipliers)
    assert multipliers.size == PROTOCOL.factorization.rounds
    assert np.sum(multipliers**-2.0) == pytest.approx(base**-2, rel=1e-6)
    assert np.all(np.array(replace(PROTOCOL, adjacency="replace-one").multipliers) == 2 * multipliers)
    assert set(replace(PROTOCOL, privacy=None).multipliers) == {0.0}


def test_everybody_is_charged_for_the_rounds_it_took_part_in() -> None:
    result = ran()
    assert result.summary["privacy"]["epsilon_composed"]["max"] == pytest.approx(2.0, rel=1e-6)
    assert result.summary["privacy"]["epsilon_composed"]["max"] <= 2.0
    assert result.summary["privacy"]["epsilon_per_user"]["max"] is None
    assert (result.summary["privacy"]["status"], result.summary["privacy"]["trust"]) == ("proved", "central")
    lossy = ran({"faults": {"dropout": 0.3}}, factorization={"rank": 0, "bias_rounds": 2})
    spent = set(np.round(lossy.traffic["epsilon_composed"], 9).tolist())
    once = round(gaussian_epsilon(largest_mu(2.0, 1e-5) / np.sqrt(2), 1e-5), 9)
    assert sorted(spent) == pytest.approx([0.0, once, 2.0], rel=1e-6)


def test_without_a_budget_nothing_is_promised() -> None:
    result = ran(privacy=None, factorization={"rank": 1, "factor_rounds": 1})
    assert result.summary["privacy"]["status"] == "none"
    assert result.summary["accuracy"]["rmse"] < 1.3


def test_between_any_two_profiles_epsilon_is_that_of_twice_the_distance() -> None:
    promised = PROTOCOL.guarantee((1000, 50))
    twice = gaussian_epsilon(2 * largest_mu(1.0, 1e-6), 1e-6)
    assert f"between any two profiles it is {twice:.4g}" in promised.statements[1]
    either = replace(PROTOCOL, adjacency="replace-one").guarantee((1000, 50))
    assert "any two profiles of a user" in either.statements[1]


@pytest.mark.parametrize(("delta", "warnings"), [(1e-5, 0), (0.1, 1)])
def test_a_delta_that_is_too_large_is_warned_about_once(delta: float, warnings: int) -> None:
    privacy = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": delta}
    notes = ran(privacy=privacy, factorization={"rank": 0}).summary["privacy"]["notes"]
    assert sum(note.startswith("Delta = ") for note in notes) == warnings


def test_a_limit_above_a_users_ratings_is_noted() -> None:
    result = ran(factorization={"rank": 0, "ratings_per_user": 1000})
    notes = result.summary["privacy"]["notes"]
    assert "60 of 60 users have at most 1000 ratings and contribute all in a round." in notes


@pytest.mark.parametrize(
    ("protocol", "key", "found"),
    [
        (replace(PROTOCOL, privacy=PrivacyBudget(epsilon=1.0)), "privacy.per", "rating"),
        (replace(PROTOCOL, privacy=replace(BUDGET, composition="sum")), "privacy.composition", "sum"),
        (
            replace(PROTOCOL, privacy=replace(BUDGET, epsilon=1e-8, delta=1e-9)),
            "privacy.epsilon",
            "times what a user contributes",
        ),
        (replace(PROTOCOL, factorization=FactorizationOptions(rank=21)), "factorization.rank", "21"),
    ],
)
def test_what_cannot_be_kept_is_refused(protocol: PrivateAlsProtocol, key: str, found: str) -> None:
    PROTOCOL.check(TRAIN)
    with pytest.raises(SettingError) as refusal:
        protocol.check(TRAIN)
    assert refusal.value.key == key
    assert found in refusal.value.found


@pytest.mark.parametrize("delta", [None, 1e-5])
def test_a_matched_budget_is_per_user_and_composes(delta: float | None) -> None:
    matched = PROTOCOL.at_budget(MatchedBudget(4.0, "user", delta))
    assert matched.privacy is not None
    assert (matched.privacy.epsilon, matched.privacy.per) == (4.0, "user")
    assert (matched.privacy.composition, matched.privacy.delta) == ("pld", delta or 1e-6)
    matched.check(TRAIN)
    assert (
        replace(PROTOCOL, privacy=None).at_budget(MatchedBudget(4.0, "user", delta)).privacy
        == matched.privacy
    )
