"""One-shot protocols whose devices predict: what is broadcast, charged, and used."""

from typing import Any

import numpy as np
import pytest

from dprec.accounting import gaussian_epsilon, largest_mu
from simulation import run
from simulation.result import RunResult
from tests.simulation.conftest import run_of_ratings

BY_SERVER = "personalization=none"
PLACES = "item_embeddings={epsilon: 3.0}"


def same(one: RunResult, other: RunResult, *columns: str) -> bool:
    """Return whether two runs have the same bits in columns of their traffic."""
    return all(np.array_equal(one.traffic[name], other.traffic[name], equal_nan=True) for name in columns)


def test_devices_know_their_own_ratings_and_predict_better_than_the_server() -> None:
    more = {"users": 600, "count": 18_000}
    device, server = (run_of_ratings("one-bit-on-device", *who, **more) for who in ((), (BY_SERVER,)))
    nothing = run_of_ratings("nothing-sent", **more)
    reached, by_server, alone = (each.summary["accuracy"]["rmse"] for each in (device, server, nothing))
    assert reached < by_server - 0.015
    assert reached < alone
    assert same(device, server, "uplink_payload_bytes", "epsilon_per_rating")


def test_the_table_is_charged_in_full_to_everybody() -> None:
    result = run_of_ratings("one-bit-on-device")
    server = run_of_ratings("one-bit-on-device", BY_SERVER, "delivery=null")
    table = np.unique(result.traffic["downlink_payload_bytes"] - server.traffic["downlink_payload_bytes"])
    assert table.size == 1
    assert 60 * 12 < table[0] < 60 * 22 + 200
    assert (result.traffic["messages"] - server.traffic["messages"] == 2).all()
    # The round includes what is sent after it.
    assert result.rounds[0]["downlink"]["payload_bytes"] == result.traffic["downlink_payload_bytes"].sum()


@pytest.mark.parametrize(
    ("name", "who", "more"),
    [
        ("one-bit-on-device", "on-device", 80),
        ("one-bit-on-device", "none", 0),
        ("cells-on-device", "on-device", 80),
    ],
)
def test_guarded_lists_are_of_other_items_and_predictions_stay_as_they_are(
    name: str, who: str, more: int
) -> None:
    """The guard is a matter of ranking: what devices send is the same to the bit, as its noise is."""
    evaluation = {"ranking": {"cutoffs": [10]}}
    settings = f"personalization={who}", "privacy.epsilon=2"
    plain = run_of_ratings(name, *settings, evaluation=evaluation)
    guarded = run_of_ratings(name, *settings, "guard={malicious: 0.05}", evaluation=evaluation)
    np.testing.assert_array_equal(plain.predictions["prediction"], guarded.predictions["prediction"])
    assert same(plain, guarded, "uplink_payload_bytes")
    added = guarded.traffic["downlink_payload_bytes"] - plain.traffic["downlink_payload_bytes"]
    assert (added > 0).all() == (more > 0)
    assert (added <= more).all()
    accuracy, before = guarded.summary["accuracy"], plain.summary["accuracy"]
    assert accuracy["rmse"] == before["rmse"]
    assert accuracy["ranking"] != before["ranking"]


def test_with_the_set_alone_nothing_about_values_is_spent() -> None:
    result, one_bit = run_of_ratings("sets-only"), run_of_ratings("one-bit-on-device")
    privacy = result.summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("proved", "local")
    assert privacy["epsilon_per_user"]["max"] == 0
    assert privacy["hides_rated_items"] is False
    # A symbol without a choice costs nothing: the reports are the item sets.
    assert (result.traffic["uplink_payload_bytes"] < one_bit.traffic["uplink_payload_bytes"]).all()


def test_the_histogram_is_learned_from_the_same_reports_at_the_same_loss() -> None:
    mechanism = "mechanism={kind: threshold-bit, other_thresholds: 0.2}"
    completion = "completion={kind: calibrated, learn_histogram: true}"
    learned, stated = (run_of_ratings("one-bit-on-device", *how) for how in ((mechanism, completion), ()))
    diagnostics = learned.summary["completion_diagnostics"]
    assert diagnostics["histogram"] == "learned from the reports"
    # Without a public histogram the prior is equal shares, which no data set here has.
    assert max(diagnostics["level_shares"]) > 0.25
    for unit in ("epsilon_per_rating", "epsilon_per_user"):
        assert learned.traffic[unit] == pytest.approx(stated.traffic[unit], abs=1e-9)


def test_the_loss_to_all_users_is_charged_to_everybody_who_reported() -> None:
    privacy = run_of_ratings("sets-only", "item_embeddings={epsilon: 2.0}").summary["privacy"]
    assert privacy["epsilon_per_rating"] == 0
    # Normal noise bounds nothing without a delta.
    assert privacy["epsilon_per_user"] == {"max": None, "mean": None, "median": None}
    # Reports, which say nothing of values here, have no share of it.
    assert privacy["epsilon_composed"]["max"] == pytest.approx(2.0, rel=1e-9)


def test_the_loss_to_all_users_adds_to_that_of_the_reports() -> None:
    few = {"users": 150, "count": 3000}
    alone, noisy = (run_of_ratings("one-bit-on-device", *how, **few) for how in ((), (PLACES,)))
    assert np.isinf(noisy.traffic["epsilon_per_user"]).all()
    # What is told of the reports changes nothing about them.
    assert same(noisy, alone, "epsilon_per_rating", "uplink_payload_bytes")
    released = gaussian_epsilon(largest_mu(3.0, 1e-6), 5e-7)
    assert 3.0 < released < 3.2
    added = noisy.traffic["epsilon_composed"] - alone.traffic["epsilon_composed"]
    # Reports cost a little more at half of delta too.
    assert (added[alone.traffic["epsilon_composed"] > 0] >= 3.0 - 1e-9).all()
    assert added.max() < released + 1.0


def test_noise_of_places_does_not_depend_on_how_users_are_divided_among_nodes() -> None:
    def places(size: int, seed: int) -> Any:
        divided = {"backend": "local", "users_per_node": size}
        return run_of_ratings("sets-only", PLACES, simulation=divided, seed=seed).predictions["prediction"]

    whole = places(200, 1)
    np.testing.assert_array_equal(whole, places(40, 1))
    assert not np.array_equal(whole, places(200, 2))


def test_what_is_delivered_changes_bytes_and_nothing_else(tiny: dict[str, Any]) -> None:
    with_lists = run(tiny, page=False)
    tiny["protocol"]["delivery"] = None
    without = run(tiny, page=False)
    np.testing.assert_array_equal(with_lists.predictions["prediction"], without.predictions["prediction"])
    assert same(with_lists, without, "uplink_payload_bytes", "epsilon_per_user")
    more = with_lists.traffic["downlink_payload_bytes"] - without.traffic["downlink_payload_bytes"]
    # Ten items of 5 bits, and ten ratings.
    assert set(more.tolist()) == {47}
