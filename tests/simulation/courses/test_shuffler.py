"""Reports through shufflers: the same predictions, more bytes, and losses that hold if one is honest."""

from typing import Any

import numpy as np
import pytest

from dprec.accounting import ShuffledChannel, clones_delta, least_epsilon
from dprec.protocols.one_shot import OneShotProtocol
from simulation import run
from simulation.configuration.models import parse_config

HISTOGRAM = {"histogram": "netflix"}


@pytest.fixture
def one_bit(tiny: dict[str, Any]) -> dict[str, Any]:
    """Many users of few items, whose devices predict."""
    tiny["dataset"] = {"kind": "synthetic", "users": 150, "items": 12, "ratings": 900}
    tiny["protocol"] |= {
        "mechanism": {"kind": "threshold-bit"},
        "completion": {"kind": "item-biases", **HISTOGRAM},
        "personalization": "on-device",
    }
    return tiny


def through(values: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """Return a configuration with a shuffler."""
    return {**values, "protocol": {**values["protocol"], "shuffler": settings}}


def test_a_shuffler_changes_what_is_lost_and_no_prediction(one_bit: dict[str, Any]) -> None:
    plain, shuffled = run(one_bit), run(through(one_bit, reports="per-item"))
    assert (plain.predictions["prediction"] == shuffled.predictions["prediction"]).all()
    before, after = plain.summary["privacy"], shuffled.summary["privacy"]
    assert (before["trust"], after["trust"]) == ("local", "shuffle")
    assert before["epsilon_per_user"] == after["epsilon_per_user"]
    assert before["epsilon_per_rating"] == after["epsilon_per_rating"]
    composed = shuffled.traffic["epsilon_composed"]
    assert (composed <= plain.traffic["epsilon_composed"] + 1e-12).all()
    assert np.median(composed) < 0.8 * np.median(plain.traffic["epsilon_composed"])
    per_rating = after["epsilon_per_rating_shuffled"]
    assert per_rating["mean"] < per_rating["max"] <= after["epsilon_per_rating"]
    assert "epsilon_per_rating_shuffled" not in before
    assert after["unlinked"]
    assert "unlinked" not in before


def test_a_rating_is_hidden_among_those_of_the_same_item(one_bit: dict[str, Any]) -> None:
    result = run(through(one_bit))
    config = parse_config(one_bit)
    assert isinstance(config.protocol, OneShotProtocol)
    from simulation.execution import load_ratings

    train, _ = load_ratings(config)
    raters = np.bincount(train.items, minlength=train.n_items)
    channel = config.protocol.family(train.scale, train.n_items).channel(1)
    shuffled = ShuffledChannel(channel)
    expected = np.array([shuffled.epsilon(int(count), 1e-6) if count else 0.0 for count in raters])
    own = expected[train.items]
    found = result.summary["privacy"]["epsilon_per_rating_shuffled"]
    assert found["mean"] == pytest.approx(own.mean(), rel=0.06)
    assert found["mean"] >= own.mean()
    # Most users have fewer ratings than composition gains from: together they lose less than their sum.
    lost = result.traffic["epsilon_composed"][train.counts > 0]
    assert (lost <= np.bincount(train.users, own, minlength=train.n_users)[train.counts > 0] * 1.3).all()


def test_reports_that_the_server_knows_hide_nothing(one_bit: dict[str, Any]) -> None:
    honest, half = (run(through(one_bit, known=known)).traffic["epsilon_composed"] for known in (0.0, 0.5))
    assert (half >= honest - 1e-12).all()
    assert np.median(half) > 1.1 * np.median(honest)


def test_every_report_is_charged_as_a_message_with_its_layers(one_bit: dict[str, Any]) -> None:
    plain = run(one_bit)
    few, many = (run(through(one_bit, hops=hops)) for hops in (1, 3))
    ratings = plain.traffic["ratings"]
    assert (few.traffic["uplink_payload_bytes"] == ratings).all()
    added = many.traffic["uplink_message_bytes"] - few.traffic["uplink_message_bytes"]
    # Two more layers of 48 bytes, and more bytes for lengths above 127 in the records around them.
    assert (added >= 96 * ratings).all()
    assert (added <= 100 * ratings).all()
    assert (few.traffic["messages"] == plain.traffic["messages"] + ratings - 1).all()
    for result in (plain, few, many):
        uplink = result.summary["traffic"]["uplink"]["message_bytes"]
        assert sum(line["uplink"]["message_bytes"] for line in result.rounds) == uplink


def test_whole_reports_hide_among_the_same_items_only(one_bit: dict[str, Any]) -> None:
    one_bit["protocol"] |= {"completion": {"kind": "calibrated", **HISTOGRAM}}
    plain, bulk = run(one_bit), run(through(one_bit, reports="per-user"))
    assert (plain.predictions["prediction"] == bulk.predictions["prediction"]).all()
    assert bulk.summary["privacy"]["trust"] == "shuffle"
    assert (bulk.traffic["epsilon_composed"] == plain.traffic["epsilon_composed"]).all()
    assert (bulk.traffic["uplink_payload_bytes"] == plain.traffic["uplink_payload_bytes"]).all()
    assert (bulk.traffic["messages"] == plain.traffic["messages"]).all()
    assert np.unique(bulk.traffic["uplink_message_bytes"]).size <= 2


def test_whole_reports_that_hide_their_items_hide_among_all(one_bit: dict[str, Any]) -> None:
    one_bit["protocol"] |= {
        "privacy": {"epsilon": 1.0, "per": "user"},
        "mechanism": {"kind": "user-level-bit"},
        "completion": {"kind": "calibrated", **HISTOGRAM},
    }
    plain, bulk = run(one_bit), run(through(one_bit, reports="per-user"))
    assert (plain.predictions["prediction"] == bulk.predictions["prediction"]).all()
    lost = np.unique(bulk.traffic["epsilon_composed"])
    local = float(plain.traffic["epsilon_per_user"].max())
    expected = least_epsilon(lambda epsilon: clones_delta(epsilon, 150, local), local, 1e-6)
    assert lost == pytest.approx(expected, rel=1e-3)
    assert expected < 0.6 * local
