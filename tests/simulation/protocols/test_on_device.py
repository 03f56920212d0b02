"""One-shot protocols whose devices predict: what is broadcast, charged, and used."""

import copy
from typing import Any

import numpy as np
import pytest

from dprec.accounting import gaussian_epsilon, largest_mu
from simulation import run
from simulation.configuration.loading import load
from simulation.configuration.strict_yaml import read_yaml
from tests.paths import preset_file
from tests.refusals import refused_at


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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "one-bit-on-device",
            "Devices predict from what is reported, which items were rated and their own ratings.",
        ),
        (
            "one-bit-on-device protocol.personalization=none",
            "The server predicts from what is reported and which items were rated.",
        ),
        ("sets-only", "Devices predict from which items were rated and their own ratings."),
    ],
)
def test_a_guarantee_says_that_the_visible_set_is_read_and_where_it_is_not(name: str, words: str) -> None:
    name, *settings = name.split()
    notes = load(name, settings).protocol.guarantee((10, 10)).notes
    (note,) = [note for note in notes if note.startswith(words)]
    assert "Where the set of rated items is hidden, none of that gain holds." in note
    assert ("baseline sets-only" in note) is (name != "sets-only")
    predicting = load(
        name, ["protocol.completion={kind: item-average}", "protocol.personalization=on-device"]
    )
    assert any("that gain" in note for note in predicting.protocol.guarantee((10, 10)).notes)
    blind = load(name, ["protocol.completion={kind: item-average}", "protocol.personalization=none"])
    assert not any("that gain" in note for note in blind.protocol.guarantee((10, 10)).notes)


@pytest.mark.parametrize("kind", ["mf", "item-average", "user-average"])
def test_devices_predict_behind_a_completion_that_predicts_ratings(
    on_device: dict[str, Any], kind: str
) -> None:
    settings = {"mechanism": {"kind": "bounded-laplace"}, "completion": {"kind": kind}}
    device = run(changed(on_device, **settings), page=False)
    server = run(changed(on_device, **settings, personalization="none", delivery=None), page=False)
    assert device.summary["accuracy"]["rmse"] < server.summary["accuracy"]["rmse"] - 0.1
    for unit in ("epsilon_per_rating", "epsilon_per_user"):
        assert device.summary["privacy"][unit] == server.summary["privacy"][unit]
    charged = device.traffic["downlink_payload_bytes"] - server.traffic["downlink_payload_bytes"]
    assert 60 * 10 < charged.min() == charged.max() < 60 * 22 + 200


def test_devices_predict_behind_hidden_item_sets_without_places(on_device: dict[str, Any]) -> None:
    settings = {
        "mechanism": {"kind": "zheng-randomized-response"},
        "completion": {"kind": "item-average"},
        "privacy": {"epsilon": 1.0, "per": "cell"},
    }
    device = run(changed(on_device, **settings), page=False)
    server = run(changed(on_device, **settings, personalization="none"), page=False)
    assert device.summary["accuracy"]["rmse"] < server.summary["accuracy"]["rmse"]
    # The mean, the deviation and the same popularity of every item, and no place.
    assert device.traffic["downlink_payload_bytes"].max() < 60 * 3 + 100


def test_devices_predict_signs(on_device: dict[str, Any]) -> None:
    values = changed(
        on_device, mechanism={"kind": "randomized-response"}, completion={"kind": "one-bit", "rank": 1}
    )
    values["binarization"] = {"kind": "mean"}
    device = run(values, page=False).summary["accuracy"]["sign_accuracy"]
    server = run(changed(values, personalization="none"), page=False).summary["accuracy"]["sign_accuracy"]
    assert device > server


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


def test_with_the_set_hidden_devices_gain_and_are_never_worse_off_than_alone() -> None:
    values = copy.deepcopy(read_yaml(preset_file("best-hidden-set")))
    values["dataset"] = {"kind": "synthetic", "users": 500, "items": 60, "ratings": 6000}
    values["simulation"] = {"backend": "local", "users_per_node": 170}
    nothing = run({**values, "protocol": {"kind": "nothing-sent"}}).summary["accuracy"]["rmse"]
    errors = {}
    for epsilon in (0.01, 4.0):
        result = run(changed(values, privacy={"epsilon": epsilon, "per": "cell"}))
        errors[epsilon] = result.summary["accuracy"]["rmse"]
        assert result.summary["privacy"]["hides_rated_items"] is True
        assert result.summary["privacy"]["epsilon_per_rating"] <= epsilon
    assert errors[0.01] < nothing
    assert errors[4.0] < nothing - 0.02


def test_reports_that_carry_nothing_predict_what_the_visible_set_says(on_device: dict[str, Any]) -> None:
    least = run(changed(on_device, privacy={"epsilon": 1e-6}), page=False).summary["accuracy"]["rmse"]
    sets = changed(on_device, mechanism={"kind": "set-only"})
    sets["protocol"].pop("privacy")
    assert least == pytest.approx(run(sets, page=False).summary["accuracy"]["rmse"], abs=0.05)
    with refused_at("protocol.privacy.epsilon"):
        run(changed(on_device, privacy={"epsilon": 1e-10}), page=False)


def values_of(name: str, **protocol: Any) -> dict[str, Any]:
    values = copy.deepcopy(read_yaml(preset_file(name)))
    values["dataset"] = {"kind": "synthetic", "users": 150, "items": 60, "ratings": 3000}
    values["simulation"] = {"backend": "local", "users_per_node": 70}
    return {**values, "protocol": {**values["protocol"], **protocol}}


def notes_on_table(name: str, *settings: str) -> list[str]:
    notes = load(name, [f"protocol.{each}" for each in settings]).protocol.guarantee((100, 50)).notes
    return [note for note in notes if note.startswith("All users are sent a table")]


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


def test_places_change_no_report_and_nothing_where_the_server_predicts() -> None:
    identities = {
        load("one-bit-on-device", [f"protocol.item_embeddings.least_raters={n}"]).protocol.identity
        for n in (1, 9)
    }
    assert len(identities) == 1
    server = [
        run(
            values_of("one-bit-on-device", personalization="none", item_embeddings={"least_raters": least}),
            page=False,
        )
        for least in (1, 60)
    ]
    np.testing.assert_array_equal(*(result.predictions["prediction"] for result in server))
    device = [
        run(values_of("one-bit-on-device", item_embeddings={"least_raters": least}), page=False).predictions[
            "prediction"
        ]
        for least in (1, 60)
    ]
    assert not np.array_equal(*device)


@pytest.mark.parametrize(
    "name",
    [
        "sets-only",
        "one-bit-on-device",
        "optimal-on-device",
        "best-on-device",
        "user-level-on-device",
        "shuffled-on-device",
    ],
)
def test_whoever_is_sent_the_table_is_named_with_what_it_tells(name: str) -> None:
    (note,) = notes_on_table(name)
    assert "without noise" in note
    assert "at least 5 raters" in note
    (noisy,) = notes_on_table(name, "item_embeddings.epsilon=2")
    assert "epsilon = 2 with delta = 1e-06" in noisy
    assert "without noise" not in noisy
    assert ("Nothing else in the table" in noisy) is (name == "sets-only")
    assert ("does not cover them" in noisy) is (name != "sets-only")


def test_groups_of_items_that_counts_are_asked_over_are_named() -> None:
    (note,) = notes_on_table("counts-and-bits", "personalization=on-device", "item_embeddings.epsilon=2")
    assert "rated about as often is told everybody without noise" in note


@pytest.mark.parametrize("name", ["best-hidden-set", "user-level-bit", "blp-mf", "nothing-sent"])
def test_where_nobody_is_told_of_item_sets_nothing_is_said_of_a_table(name: str) -> None:
    assert notes_on_table(name) == []


@pytest.mark.parametrize(("epsilon", "drawn"), [("null", False), ("2", True)])
def test_noise_of_the_server_alone_is_drawn_from_the_seed_too(epsilon: str, drawn: bool) -> None:
    protocol = load("sets-only", [f"protocol.item_embeddings.epsilon={epsilon}"]).protocol
    assert not protocol.private
    assert protocol.draws_noise is drawn
    result = run(values_of("sets-only", item_embeddings={"epsilon": 2.0} if drawn else {}), page=False)
    notes = result.summary["privacy"]["notes"]
    assert any("drawn from the seed" in note for note in notes) is drawn


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
