"""The protocol dp-als: what it promises, what it charges, and what it refuses."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget, gaussian_epsilon, largest_mu
from dprec.errors import RunError
from dprec.private_als import FactorizationOptions, ItemModel
from dprec.secure_aggregation import MessageSizes, graph_size
from dprec.sums import SecureAggregation
from simulation import load, run
from simulation.protocols.private_als import ImplicitAlsProtocol, PrivateAlsProtocol
from simulation.result import RunResult

BUDGET = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-6)
PROTOCOL = PrivateAlsProtocol(privacy=BUDGET)


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


def test_between_any_two_profiles_epsilon_is_that_of_twice_the_distance() -> None:
    promised = PROTOCOL.guarantee((1000, 50))
    twice = gaussian_epsilon(2 * largest_mu(1.0, 1e-6), 1e-6)
    assert f"between any two profiles it is {twice:.4g}" in promised.statements[1]
    either = replace(PROTOCOL, adjacency="replace-one").guarantee((1000, 50))
    assert "any two profiles of a user" in either.statements[1]


USERS, ITEMS, ROUNDS = 60, 12, 2
SECURE_BUDGET = PrivacyBudget(epsilon=4.0, per="user", composition="pld", delta=1e-5)


def secure(faults: dict[str, float] | None = None, **aggregation: Any) -> RunResult:
    config = {
        "name": "sums",
        "seed": 1,
        "dataset": {"kind": "synthetic", "users": USERS, "items": ITEMS, "ratings": 500},
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "protocol": {
            "kind": "dp-als",
            "privacy": {"epsilon": 4.0, "per": "user", "composition": "pld", "delta": 1e-5},
            "factorization": {"rank": 0, "bias_rounds": ROUNDS},
            "aggregation": {"kind": "secure", **aggregation},
        },
        "simulation": {"backend": "local", "faults": faults or {}},
    }
    return run(config, page=False)


def protocol(**aggregation: Any) -> PrivateAlsProtocol:
    return PrivateAlsProtocol(
        privacy=SECURE_BUDGET,
        factorization=FactorizationOptions(rank=0, bias_rounds=ROUNDS),
        aggregation=SecureAggregation(**aggregation),
    )


def test_everybody_is_charged_for_every_message_of_a_secure_sum() -> None:
    result = secure(modulus_bits=20)
    degree = graph_size(USERS, 0.1, 5).degree
    # Counts and sums in the first round, sums alone in the second.
    sizes = [MessageSizes(degree, ITEMS * width, 20) for width in (2, 1)]
    up = sum(sum(size.uplink) for size in sizes)
    assert set(result.traffic["uplink_payload_bytes"]) == {up}
    down = sum(sum(size.downlink) for size in sizes)
    models = (ROUNDS + 1) * len(ItemModel.begin(ITEMS, 0, 3.0).encode())
    assert set(result.traffic["downlink_payload_bytes"]) == {models + down}
    assert result.summary["privacy"]["trust"] == "secure-aggregation"
    assert result.summary["privacy"]["epsilon_composed"]["max"] <= 4.0


def test_with_more_dropouts_the_round_fails_and_its_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmasked(*_: Any) -> None:
        pytest.fail("a total was released")

    monkeypatch.setattr(SecureAggregation, "release", unmasked)
    with pytest.raises(RunError, match=r"too many devices dropped out in every round \(rounds: 2\)"):
        secure({"dropout": 0.5})


def test_damaged_reports_count_as_dropouts_as_their_noise_is_not_in_the_total() -> None:
    with pytest.raises(RunError, match="too many devices dropped out in every round"):
        secure({"corrupt": 0.5})
    assert secure({"corrupt": 0.1}, dropouts=0.4, colluders=0).summary["accuracy"]["rmse"] is not None


def test_a_failed_release_among_others_is_charged_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        SecureAggregation, "can_release", lambda self, present, added_up, done, seed: done == 1
    )
    result = secure()
    assert "Of 2 releases 1 failed" in " ".join(result.summary["privacy"]["notes"])
    assert result.summary["privacy"]["epsilon_composed"]["max"] == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize(("adjacency", "times"), [("add-or-remove-one", 1.0), ("replace-one", 2.0)])
def test_the_noise_of_sets_keeps_epsilon_under_both_adjacencies(adjacency: str, times: float) -> None:
    protocol = load("dp-ials", [f"protocol.adjacency={adjacency}"]).protocol
    assert isinstance(protocol, ImplicitAlsProtocol)
    composed = 1 / np.sqrt((1 / np.array(protocol.multipliers) ** 2).sum())
    assert gaussian_epsilon(times / composed, 1e-6) == pytest.approx(1.0, abs=1e-6)
