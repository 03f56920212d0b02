"""Runs of bits and counts: two exchanges, one promise per rating."""

import copy
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import run
from simulation.configuration.strict_yaml import read_yaml
from tests.paths import CONFIGS


@pytest.fixture
def values() -> dict[str, Any]:
    read = copy.deepcopy(read_yaml(CONFIGS / "counts-and-bits.yaml"))
    read["dataset"] = {"kind": "synthetic", "users": 60, "items": 60, "ratings": 1200}
    read["simulation"] = {"backend": "local", "users_per_node": 25}
    return read


def changed(values: dict[str, Any], **protocol: Any) -> dict[str, Any]:
    return {**values, "protocol": {**values["protocol"], **protocol}}


def test_counts_cost_no_more_than_bits_per_rating(values: dict[str, Any]) -> None:
    values["protocol"]["privacy"]["epsilon"] = 0.3
    counts, bits = run(values), run(changed(values, mechanism={"kind": "threshold-bit"}))
    for result in (counts, bits):
        assert result.summary["privacy"]["epsilon_per_rating"] == pytest.approx(0.3)
        assert result.summary["privacy"]["epsilon_per_rating"] <= 0.3
    per_user, composed = (counts.traffic[f"epsilon_{name}"] for name in ("per_user", "composed"))
    assert (per_user <= bits.traffic["epsilon_per_user"]).all()
    assert per_user == pytest.approx(bits.traffic["epsilon_per_user"], rel=1e-3)
    assert (composed <= per_user).all()
    # A small count moves with all of its ratings, so it composes like a sum.
    assert composed.mean() > bits.traffic["epsilon_composed"].mean()


def test_both_exchanges_are_charged(values: dict[str, Any]) -> None:
    result = run(values)
    first, second = result.rounds
    assert (first["round"], second["round"]) == (1, 2)
    assert second["replies"] == 60
    # Two counts of 6 bits each, and a bit for each of 60 items.
    assert second["uplink"]["payload_bytes"] == 60 * 2
    assert second["downlink"]["payload_bytes"] == 60 * 8
    # A request and an answer each, and for what the server predicts.
    assert (result.traffic["messages"] == 6).all()


def test_users_whose_reports_or_counts_are_lost_are_left_out(values: dict[str, Any]) -> None:
    values["simulation"]["faults"] = {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.1}
    result = run(values)
    first, second = result.rounds
    assert second["replies"] + second["failures"] == first["replies"]
    assert 0 < second["failures"] < first["replies"]
    assert any("counts were missing" in note for note in result.summary["privacy"]["notes"])
    absent = result.traffic["uplink_payload_bytes"] == 0
    assert (result.traffic["epsilon_per_user"][absent] == 0).all()


def test_counts_do_not_share_a_composed_budget(values: dict[str, Any]) -> None:
    privacy = {"epsilon": 1.0, "per": "user", "composition": "pld"}
    with pytest.raises(InputError, match=r"protocol\.privacy\.composition: 'pld', with mechanism bits-and-"):
        run(changed(values, privacy=privacy))
