"""Promises about all ratings of a user together, or about counts of them: what is charged and sent."""

import numpy as np
import pytest

from tests.simulation.conftest import run_of_ratings


def test_a_user_is_charged_the_budget_for_one_rating_as_for_all() -> None:
    result = run_of_ratings("user-level-on-device", "privacy.epsilon=4")
    for unit in ("epsilon_per_rating", "epsilon_per_user"):
        np.testing.assert_allclose(result.traffic[unit], 4.0, rtol=1e-9)
    assert 3.9 < result.summary["privacy"]["epsilon_composed"]["max"] <= 4.0


def test_a_composed_budget_is_spent_on_more_bits_than_a_sum() -> None:
    composed = "privacy={epsilon: 2.0, per: user, composition: pld, delta: 1e-6}"
    privacy = run_of_ratings("user-level-on-device", composed, "mechanism.bits=20").summary["privacy"]
    assert 1.9 < privacy["epsilon_composed"]["max"] <= 2.0
    assert privacy["epsilon_per_user"]["max"] > 2.0


def test_all_send_the_same_number_of_bytes_and_lose_the_budget() -> None:
    result = run_of_ratings("user-level-bit", "privacy.epsilon=6")
    assert set(result.traffic["uplink_payload_bytes"]) == {2}
    np.testing.assert_allclose(result.traffic["epsilon_per_user"], 6.0, rtol=1e-6)
    privacy = result.summary["privacy"]
    assert (privacy["hides_rated_items"], privacy["trust"]) == (True, "local")


COUNTED = {"users": 60, "count": 1200}


def test_counts_cost_no_more_than_bits_per_rating() -> None:
    counts, bits = (
        run_of_ratings("counts-and-bits", "privacy.epsilon=0.3", f"mechanism={{kind: {kind}}}", **COUNTED)
        for kind in ("bits-and-counts", "threshold-bit")
    )
    for result in (counts, bits):
        assert result.summary["privacy"]["epsilon_per_rating"] == pytest.approx(0.3)
        assert result.summary["privacy"]["epsilon_per_rating"] <= 0.3
    per_user, composed = (counts.traffic[f"epsilon_{name}"] for name in ("per_user", "composed"))
    assert (per_user <= bits.traffic["epsilon_per_user"]).all()
    assert per_user == pytest.approx(bits.traffic["epsilon_per_user"], rel=1e-3)
    assert (composed <= per_user).all()
    # A small count moves with all of its ratings, so it composes like a sum.
    assert composed.mean() > bits.traffic["epsilon_composed"].mean()


def test_both_exchanges_are_charged() -> None:
    result = run_of_ratings("counts-and-bits", **COUNTED)
    first, second = result.rounds
    assert (first["round"], second["round"], second["replies"]) == (1, 2, 60)
    # Two counts of 6 bits each, and a bit for each of 60 items.
    assert second["uplink"]["payload_bytes"] == 60 * 2
    assert second["downlink"]["payload_bytes"] == 60 * 8
    # A request and an answer each, and for what the server predicts.
    assert (result.traffic["messages"] == 6).all()


def test_users_whose_reports_or_counts_are_lost_are_left_out() -> None:
    faulty = {"backend": "local", "faults": {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.1}}
    result = run_of_ratings("counts-and-bits", **COUNTED, simulation=faulty)
    first, second = result.rounds
    assert second["replies"] + second["failures"] == first["replies"]
    assert 0 < second["failures"] < first["replies"]
    absent = result.traffic["uplink_payload_bytes"] == 0
    assert (result.traffic["epsilon_per_user"][absent] == 0).all()
