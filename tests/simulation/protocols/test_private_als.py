"""The protocol dp-als: what it promises, what it charges, and what it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import MatchedBudget, PrivacyBudget, gaussian_epsilon, largest_mu
from dprec.datasets import Synthetic
from dprec.errors import RunError, SettingError
from dprec.private_als import FactorizationOptions, ItemModel
from dprec.secure_aggregation import MessageSizes, graph_size
from dprec.sums import SecureAggregation, ShuffledAggregation
from simulation import load, run
from simulation.protocols.private_als import ImplicitAlsProtocol, PrivateAlsProtocol
from simulation.result import RunResult
from tests.refusals import refused_at
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


def test_devices_that_drop_out_within_the_tolerance_do_no_harm() -> None:
    result = secure({"dropout": 0.1}, dropouts=0.4, colluders=0)
    assert result.summary["accuracy"]["rmse"] is not None
    assert " failed, as too many" not in " ".join(result.summary["privacy"]["notes"])


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


def test_nothing_is_deployed_whose_devices_would_send_unmasked_numbers() -> None:
    protocol().check_deployed()
    proved = replace(protocol(), aggregation=SecureAggregation(proofs="norm"))
    shuffled = replace(protocol(), aggregation=ShuffledAggregation())
    for refused, key in ((proved, "aggregation.proofs"), (shuffled, "aggregation.kind")):
        with refused_at(key):
            refused.check_deployed()
    with pytest.raises(SettingError, match="1 users"):
        SecureAggregation().among(1)
    assert np.isfinite(protocol().multipliers).all()


def test_where_no_epsilon_between_two_profiles_is_proved_it_is_said() -> None:
    at_twenty = replace(protocol(), privacy=replace(SECURE_BUDGET, epsilon=20.0, delta=1e-6))
    assert "between any two profiles none is proved" in at_twenty.guarantee((943, ITEMS)).statements[1]
    assert "between any two profiles it is " in protocol().guarantee((943, ITEMS)).statements[1]


SETS = {"kind": "synthetic", "users": 60, "items": 30, "ratings": 700, "positive": ">= 4"}


@pytest.mark.parametrize(
    ("kind", "trust"),
    [
        ("trusted", "central"),
        ("secure", "secure-aggregation"),
        ("local", "local"),
        ("shuffle", "shuffle"),
    ],
)
def test_factors_of_sets_are_learned_whoever_adds_up(kind: str, trust: str) -> None:
    privacy: dict[str, Any] = {"epsilon": 2.0, "per": "user"}
    protocol = {
        "kind": "dp-ials",
        "privacy": privacy if kind == "local" else {**privacy, "composition": "pld", "delta": 1e-6},
        "factorization": {"rank": 2, "rounds": 2, "item_share": 0.4},
        "aggregation": {"kind": kind},
    }
    config = {
        "name": "sets",
        "seed": 1,
        "dataset": SETS,
        "split": {"kind": "user-holdout"},
        "protocol": protocol,
        "simulation": {"backend": "local"},
    }
    privacy = run(config, page=False).summary["privacy"]
    assert (privacy["status"], privacy["trust"], privacy["hides_rated_items"]) == ("proved", trust, True)
    spent = privacy["epsilon_per_user" if kind == "local" else "epsilon_composed"]["max"]
    assert 1.9 < spent <= 2.0


@pytest.mark.parametrize(("adjacency", "times"), [("add-or-remove-one", 1.0), ("replace-one", 2.0)])
def test_the_noise_of_sets_keeps_epsilon_under_both_adjacencies(adjacency: str, times: float) -> None:
    protocol = load("dp-ials", [f"protocol.adjacency={adjacency}"]).protocol
    assert isinstance(protocol, ImplicitAlsProtocol)
    composed = 1 / np.sqrt((1 / np.array(protocol.multipliers) ** 2).sum())
    assert gaussian_epsilon(times / composed, 1e-6) == pytest.approx(1.0, abs=1e-6)


def test_guarded_lists_are_of_other_items_and_predictions_stay_as_they_are() -> None:
    """The first round has the same noise, and what liars could add is taken off afterwards."""
    ranked = {"evaluation": {"ranking": {"cutoffs": [10]}}}
    plain = run(values(factorization={"rank": 0}) | ranked, page=False)
    guarded = run(values(factorization={"rank": 0}, guard={"liars": 0.1}) | ranked, page=False)
    np.testing.assert_array_equal(plain.predictions["prediction"], guarded.predictions["prediction"])
    more = guarded.traffic["downlink_payload_bytes"] - plain.traffic["downlink_payload_bytes"]
    assert (more > 0).all()
    assert (more <= 30 + 4 + 16).all()
    assert guarded.summary["accuracy"]["rmse"] == plain.summary["accuracy"]["rmse"]
    assert guarded.summary["accuracy"]["ranking"] != plain.summary["accuracy"]["ranking"]
