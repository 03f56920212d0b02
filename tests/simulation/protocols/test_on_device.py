"""One-shot protocols whose devices predict: what is broadcast, charged, and used."""

import copy
from typing import Any

import numpy as np
import pytest

from dprec.accounting import gaussian_epsilon, largest_mu
from simulation import run
from simulation.configuration.strict_yaml import read_yaml
from tests.paths import preset_file


@pytest.fixture
def on_device() -> dict[str, Any]:
    values = copy.deepcopy(read_yaml(preset_file("one-bit-on-device")))
    values["dataset"] = {"kind": "synthetic", "users": 200, "items": 60, "ratings": 6000}
    values["simulation"] = {"backend": "local", "users_per_node": 70}
    return values


def changed(values: dict[str, Any], **protocol: Any) -> dict[str, Any]:
    return {**values, "protocol": {**values["protocol"], **protocol}}


def test_devices_know_their_own_ratings_and_predict_better_than_the_server(on_device: dict[str, Any]) -> None:
    on_device["dataset"] |= {"users": 600, "ratings": 18000}
    device = run(on_device, page=False)
    server = run(changed(on_device, personalization="none"), page=False)
    nothing = run({**on_device, "protocol": {"kind": "nothing-sent"}}, page=False)
    assert device.summary["accuracy"]["rmse"] < server.summary["accuracy"]["rmse"] - 0.02
    assert device.summary["accuracy"]["rmse"] < nothing.summary["accuracy"]["rmse"]
    assert device.summary["privacy"]["epsilon_per_rating"] == server.summary["privacy"]["epsilon_per_rating"]
    np.testing.assert_array_equal(
        device.traffic["uplink_payload_bytes"], server.traffic["uplink_payload_bytes"]
    )


def test_the_table_is_charged_in_full_to_everybody(on_device: dict[str, Any]) -> None:
    result = run(on_device)
    server = run(changed(on_device, personalization="none", delivery=None))
    table = np.unique(result.traffic["downlink_payload_bytes"] - server.traffic["downlink_payload_bytes"])
    assert table.size == 1
    assert 60 * 12 < table[0] < 60 * 22 + 200
    assert (result.traffic["messages"] - server.traffic["messages"] == 2).all()
    # The round includes what is sent after it.
    assert result.rounds[0]["downlink"]["payload_bytes"] == result.traffic["downlink_payload_bytes"].sum()


HIDDEN = {
    "mechanism": {"kind": "hidden-threshold"},
    "completion": {"kind": "calibrated"},
    "privacy": {"epsilon": 2.0, "per": "cell"},
}


@pytest.mark.parametrize(("who", "reports"), [("on-device", {}), ("none", {}), ("on-device", HIDDEN)])
def test_guarded_lists_are_of_other_items_and_predictions_stay_as_they_are(
    on_device: dict[str, Any], who: str, reports: dict[str, Any]
) -> None:
    """The guard is a matter of ranking: what devices send is the same to the bit, as its noise is."""
    evaluation = {"ranking": {"cutoffs": [10]}}
    values = {**changed(on_device, personalization=who, **reports), "evaluation": evaluation}
    plain = run(values, page=False)
    guarded = run(changed(values, guard={"liars": 0.05}), page=False)
    np.testing.assert_array_equal(plain.predictions["prediction"], guarded.predictions["prediction"])
    np.testing.assert_array_equal(
        plain.traffic["uplink_payload_bytes"], guarded.traffic["uplink_payload_bytes"]
    )
    more = guarded.traffic["downlink_payload_bytes"] - plain.traffic["downlink_payload_bytes"]
    assert (more > 0).all() == (who == "on-device")
    assert (more <= 60 + 4 + 16).all()
    accuracy, before = guarded.summary["accuracy"], plain.summary["accuracy"]
    assert accuracy["rmse"] == before["rmse"]
    assert accuracy["ranking"] != before["ranking"]


def test_with_the_set_alone_nothing_about_values_is_spent(on_device: dict[str, Any]) -> None:
    values = changed(on_device, mechanism={"kind": "set-only"})
    values["protocol"].pop("privacy")
    result = run(values)
    privacy = result.summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("proved", "local")
    assert privacy["epsilon_per_user"]["max"] == 0
    assert privacy["hides_rated_items"] is False
    # A symbol without a choice costs nothing: the reports are the item sets.
    one_bit = run(on_device)
    assert (result.traffic["uplink_payload_bytes"] < one_bit.traffic["uplink_payload_bytes"]).all()


def test_the_histogram_is_learned_from_the_same_reports_at_the_same_loss(on_device: dict[str, Any]) -> None:
    mechanism = {"kind": "threshold-bit", "other_thresholds": 0.2}
    completion = {"kind": "calibrated", "learn_histogram": True}
    learned = run(changed(on_device, mechanism=mechanism, completion=completion), page=False)
    diagnostics = learned.summary["completion_diagnostics"]
    assert diagnostics["histogram"] == "learned from the reports"
    # Without a public histogram the prior is equal shares, which no data set here has.
    assert max(diagnostics["level_shares"]) > 0.25
    stated = run(on_device, page=False).summary
    assert stated["completion_diagnostics"]["histogram"] == "public"
    for unit in ("epsilon_per_rating", "epsilon_per_user"):
        assert learned.summary["privacy"][unit] == pytest.approx(stated["privacy"][unit], abs=1e-9)


def values_of(name: str, **protocol: Any) -> dict[str, Any]:
    values = copy.deepcopy(read_yaml(preset_file(name)))
    values["dataset"] = {"kind": "synthetic", "users": 150, "items": 60, "ratings": 3000}
    values["simulation"] = {"backend": "local", "users_per_node": 70}
    return {**values, "protocol": {**values["protocol"], **protocol}}


def test_the_loss_to_all_users_is_charged_to_everybody_who_reported() -> None:
    result = run(values_of("sets-only", item_embeddings={"epsilon": 2.0}), page=False)
    privacy = result.summary["privacy"]
    assert privacy["epsilon_per_rating"] == 0
    assert privacy["epsilon_per_user"] == {"max": 2.0, "mean": 2.0, "median": 2.0}
    # Half of delta is for reports, which say nothing of values here.
    assert privacy["epsilon_composed"]["max"] == 2.0
    assert (privacy["status"], privacy["hides_rated_items"]) == ("proved", False)


def test_the_loss_to_all_users_adds_to_that_of_the_reports() -> None:
    alone, noisy = (
        run(values_of("one-bit-on-device", item_embeddings=places), page=False)
        for places in ({}, {"epsilon": 3.0})
    )
    np.testing.assert_allclose(noisy.traffic["epsilon_per_user"], alone.traffic["epsilon_per_user"] + 3.0)
    np.testing.assert_array_equal(noisy.traffic["epsilon_per_rating"], alone.traffic["epsilon_per_rating"])
    released = gaussian_epsilon(largest_mu(3.0, 1e-6), 5e-7)
    assert 3.0 < released < 3.2
    added = noisy.traffic["epsilon_composed"] - alone.traffic["epsilon_composed"]
    # Reports cost a little more at half of delta too.
    assert (added[alone.traffic["epsilon_composed"] > 0] >= 3.0 - 1e-9).all()
    assert added.max() < released + 1.0
    # What is told of the reports changes nothing about them.
    np.testing.assert_array_equal(
        noisy.traffic["uplink_payload_bytes"], alone.traffic["uplink_payload_bytes"]
    )


def test_noise_does_not_depend_on_how_users_are_divided_among_nodes() -> None:
    results = []
    for size in (150, 40):
        values = values_of("sets-only", item_embeddings={"epsilon": 8.0})
        values["simulation"]["users_per_node"] = size
        results.append(run(values, page=False))
    np.testing.assert_array_equal(*(result.predictions["prediction"] for result in results))
    other = run({**values, "seed": 2}, page=False)
    assert not np.array_equal(results[0].predictions["prediction"], other.predictions["prediction"])


def test_what_is_delivered_changes_bytes_and_nothing_else(tiny: dict[str, Any]) -> None:
    with_lists = run(tiny, page=False)
    tiny["protocol"]["delivery"] = None
    without = run(tiny, page=False)
    np.testing.assert_array_equal(with_lists.predictions["prediction"], without.predictions["prediction"])
    for column in ("uplink_payload_bytes", "epsilon_per_user"):
        np.testing.assert_array_equal(with_lists.traffic[column], without.traffic[column])
    more = with_lists.traffic["downlink_payload_bytes"] - without.traffic["downlink_payload_bytes"]
    # Ten items of 5 bits, and ten ratings.
    assert set(more.tolist()) == {47}
