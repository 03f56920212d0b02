"""One-shot protocols whose devices predict: what is broadcast, charged, and used."""

import copy
from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError
from simulation import run
from simulation.configuration.loading import load
from simulation.configuration.strict_yaml import read_yaml
from tests.paths import CONFIGS


@pytest.fixture
def on_device() -> dict[str, Any]:
    values = copy.deepcopy(read_yaml(CONFIGS / "one-bit-on-device.yaml"))
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
            "one-bit-calibrated",
            "The server predicts from what is reported and which items were rated.",
        ),
        ("sets-only", "Devices predict from which items were rated and their own ratings."),
    ],
)
def test_a_guarantee_says_that_the_visible_set_is_read_and_where_it_is_not(name: str, words: str) -> None:
    protocol = load(name).protocol
    notes = protocol.guarantee((10, 10)).notes
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


def test_the_histogram_of_the_table_belongs_to_the_scale(on_device: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"protocol\.table\.histogram: 2 shares, for a scale of 5 levels"):
        run(changed(on_device, completion={"kind": "mf"}, table={"histogram": [1.0, 2.0]}), page=False)


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


@pytest.mark.parametrize(
    ("mechanism", "privacy"),
    [({"kind": "set-only"}, None), ({"kind": "zheng-laplace"}, {"epsilon": 1.0, "per": "cell"})],
)
def test_no_histogram_is_learned_from_reports_that_are_not_of_ratings_alone(
    on_device: dict[str, Any], mechanism: dict[str, Any], privacy: dict[str, Any] | None
) -> None:
    completion = {"kind": "calibrated", "learn_histogram": True}
    values = changed(on_device, mechanism=mechanism, completion=completion, privacy=privacy)
    with pytest.raises(
        InputError, match=r"completion\.learn_histogram: true, with mechanism .*all of ratings"
    ):
        run(values, page=False)


def test_with_the_set_hidden_devices_gain_and_are_never_worse_off_than_alone() -> None:
    values = copy.deepcopy(read_yaml(CONFIGS / "best-hidden-set.yaml"))
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
    with pytest.raises(
        InputError, match=r"privacy\.epsilon: 1e-10 leaves 1e-10 per cell, .*a larger epsilon"
    ):
        run(changed(on_device, privacy={"epsilon": 1e-10}), page=False)


@pytest.mark.parametrize("key", ["slopes", "factors"])
@pytest.mark.parametrize(
    ("name", "mechanism"),
    [("best-hidden-set", "hidden-threshold"), ("user-level-on-device", "residual-bits")],
)
def test_what_reports_do_not_tell_is_not_asked_for(key: str, name: str, mechanism: str) -> None:
    values = copy.deepcopy(read_yaml(CONFIGS / f"{name}.yaml"))
    values["protocol"]["completion"][key] = 2
    with pytest.raises(InputError, match=rf"completion.{key}: 2, with mechanism {mechanism}; .*shows"):
        run(values, page=False)
