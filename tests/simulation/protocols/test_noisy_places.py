"""Protocols whose devices are sent what everybody's item sets say: what it costs, what is said of it."""

import copy
from typing import Any

import numpy as np
import pytest

from dprec.accounting import gaussian_epsilon, largest_mu
from dprec.errors import InputError
from simulation import run
from simulation.configuration.loading import load
from simulation.configuration.strict_yaml import read_yaml
from tests.paths import CONFIGS


def values_of(name: str, **protocol: Any) -> dict[str, Any]:
    values = copy.deepcopy(read_yaml(CONFIGS / f"{name}.yaml"))
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


@pytest.mark.parametrize("name", ["best-hidden-set", "user-level-bit", "one-bit-calibrated", "nothing-sent"])
def test_where_nobody_is_told_of_item_sets_nothing_is_said_of_a_table(name: str) -> None:
    assert notes_on_table(name) == []


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("one-bit-calibrated", {}, r"item_embeddings\.epsilon: 1, where the server predicts; .*on-device"),
        (
            "best-hidden-set",
            {},
            r"item_embeddings\.epsilon: 1, where the server does not know who rated which items",
        ),
        (
            "shuffled-on-device",
            {"completion": {"kind": "item-biases"}, "shuffler": {}},
            r"item_embeddings\.epsilon: 1, where the server does not know who rated which items",
        ),
        (
            "sets-only",
            {"item_embeddings": {"epsilon": 1.0, "delta": 1e-4}},
            r"item_embeddings\.delta: 0\.0001; .*at most 1e-06",
        ),
    ],
)
def test_noise_that_protects_nothing_is_refused(name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(values_of(name, **{"item_embeddings": {"epsilon": 1.0}, **changes}), page=False)


@pytest.mark.parametrize(("epsilon", "drawn"), [("null", False), ("2", True)])
def test_noise_of_the_server_alone_is_drawn_from_the_seed_too(epsilon: str, drawn: bool) -> None:
    protocol = load("sets-only", [f"protocol.item_embeddings.epsilon={epsilon}"]).protocol
    assert not protocol.private
    assert protocol.draws_noise is drawn
    result = run(values_of("sets-only", item_embeddings={"epsilon": 2.0} if drawn else {}), page=False)
    notes = result.summary["privacy"]["notes"]
    assert any("drawn from the seed" in note for note in notes) is drawn
