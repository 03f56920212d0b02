"""Runs of dp-als whose sums the server cannot look into: bytes, dropouts, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.errors import RunError, SettingError
from dprec.private_als import FactorizationOptions, ItemModel, SecureAggregation
from dprec.secure_aggregation import MessageSizes, graph_size
from simulation import run
from simulation.protocols.private_als import PrivateAlsProtocol
from simulation.result import RunResult

USERS, ITEMS, ROUNDS = 60, 12, 2
BUDGET = PrivacyBudget(epsilon=4.0, per="user", composition="pld", delta=1e-5)


def ran(faults: dict[str, float] | None = None, **aggregation: Any) -> RunResult:
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
        privacy=BUDGET,
        factorization=FactorizationOptions(rank=0, bias_rounds=ROUNDS),
        aggregation=SecureAggregation(**aggregation),
    )


def test_everybody_is_charged_for_every_message_of_a_secure_sum() -> None:
    result = ran(modulus_bits=20)
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
    result = ran({"dropout": 0.1}, dropouts=0.4, colluders=0)
    assert result.summary["accuracy"]["rmse"] is not None
    assert " failed, as too many" not in " ".join(result.summary["privacy"]["notes"])


def test_with_more_dropouts_the_round_fails_and_its_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmasked(*_: Any) -> None:
        pytest.fail("a total was released")

    monkeypatch.setattr(SecureAggregation, "release", unmasked)
    with pytest.raises(RunError, match=r"too many devices dropped out in every round \(rounds: 2\)"):
        ran({"dropout": 0.5})


def test_damaged_reports_count_as_dropouts_as_their_noise_is_not_in_the_total() -> None:
    with pytest.raises(RunError, match="too many devices dropped out in every round"):
        ran({"corrupt": 0.5})
    assert ran({"corrupt": 0.1}, dropouts=0.4, colluders=0).summary["accuracy"]["rmse"] is not None


def test_a_failed_release_among_others_is_charged_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        SecureAggregation, "can_release", lambda self, present, added_up, done, seed: done == 1
    )
    result = ran()
    assert "Of 2 releases 1 failed" in " ".join(result.summary["privacy"]["notes"])
    assert result.summary["privacy"]["epsilon_composed"]["max"] == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        (
            {"modulus_bits": 12},
            r"protocol.aggregation.modulus_bits: 12, although a sum with its noise can need",
        ),
        ({"colluders": 55}, r"protocol.aggregation: 60 users, of whom 6 may drop out and 55 collude"),
        (
            {"dropouts": 0.49, "colluders": 5},
            r"protocol.aggregation: 60 users, of whom 29 may drop out and 5",
        ),
        ({"norm": 2}, r"protocol.aggregation.norm: 2, for contributions of up to 24 numbers"),
    ],
)
def test_settings_that_cannot_hold_are_refused_in_one_line(settings: dict[str, Any], refused: str) -> None:
    with pytest.raises(SettingError, match=refused):
        ran(**settings)


def test_nothing_is_deployed_whose_devices_would_send_unmasked_numbers() -> None:
    with pytest.raises(SettingError, match=r"aggregation.kind: 'secure', .*accepted: 'trusted'"):
        protocol().check_deployed()
    with pytest.raises(SettingError, match="1 users"):
        SecureAggregation().among(1)
    assert np.isfinite(protocol().multipliers).all()


def test_where_no_epsilon_between_two_profiles_is_proved_it_is_said() -> None:
    at_twenty = replace(protocol(), privacy=replace(BUDGET, epsilon=20.0, delta=1e-6))
    assert "between any two profiles none is proved" in at_twenty.guarantee((943, ITEMS)).statements[1]
    assert "between any two profiles it is " in protocol().guarantee((943, ITEMS)).statements[1]
