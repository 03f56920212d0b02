"""One-shot protocols at a loss per user for all values together: what is promised, charged and compared."""

import copy
from typing import Any

import numpy as np
import pytest

from dprec.accounting import MatchedBudget
from dprec.errors import InputError
from simulation import load, run
from simulation.configuration.strict_yaml import read_yaml
from simulation.protocols.sent import Example
from tests.paths import CONFIGS

SMALL = {"kind": "synthetic", "users": 200, "items": 60, "ratings": 6000}


@pytest.fixture
def user_level() -> dict[str, Any]:
    values = copy.deepcopy(read_yaml(CONFIGS / "user-level-on-device.yaml"))
    values["dataset"] = SMALL
    values["simulation"] = {"backend": "local", "users_per_node": 70}
    return values


def changed(values: dict[str, Any], **protocol: Any) -> dict[str, Any]:
    return {**values, "protocol": {**values["protocol"], **protocol}}


def test_a_user_is_charged_the_budget_for_one_rating_as_for_all(user_level: dict[str, Any]) -> None:
    privacy = {"epsilon": 4.0, "per": "user"}
    result = run(changed(user_level, privacy=privacy), page=False)
    for unit in ("epsilon_per_rating", "epsilon_per_user"):
        np.testing.assert_allclose(result.traffic[unit], 4.0, rtol=1e-9)
    composed = result.summary["privacy"]["epsilon_composed"]["max"]
    assert 3.9 < composed <= 4.0
    note = "epsilon protects the values of all ratings of a user together"
    assert any(note in each for each in result.summary["privacy"]["notes"])


def test_a_composed_budget_is_spent_on_more_bits_than_a_sum(user_level: dict[str, Any]) -> None:
    mechanism = {"kind": "residual-bits", "bits": 20}
    privacy = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-6}
    result = run(changed(user_level, privacy=privacy, mechanism=mechanism), page=False)
    assert 1.9 < result.summary["privacy"]["epsilon_composed"]["max"] <= 2.0
    assert result.summary["privacy"]["epsilon_per_user"]["max"] > 2.0


def test_a_few_bits_tell_more_than_the_set_alone(user_level: dict[str, Any]) -> None:
    """Holds for these seeds: each bit of so few users is loud, so that many are asked for."""
    told = run(
        changed(user_level, privacy={"epsilon": 60.0, "per": "user"}, mechanism={"kind": "residual-bits"}),
        page=False,
    )
    alone = changed(user_level, mechanism={"kind": "set-only"})
    alone["protocol"].pop("privacy")
    assert told.summary["accuracy"]["rmse"] < run(alone, page=False).summary["accuracy"]["rmse"] - 0.01


@pytest.mark.parametrize("unit", ["rating", "user"])
def test_in_a_comparison_the_budget_is_per_user_whatever_others_promise(unit: Any) -> None:
    protocol = load("user-level-on-device").protocol.at_budget(MatchedBudget(3.0, unit))
    assert protocol.privacy is not None
    assert (protocol.privacy.epsilon, protocol.privacy.per) == (3.0, "user")


def test_what_a_device_sends_is_described() -> None:
    protocol = load("user-level-on-device", ["protocol.privacy.epsilon=4"]).protocol
    example = Example(load("user-level-on-device").dataset.known_scale(), 943, 1682, 106)
    sent = protocol.sent(example)
    assert sent is not None
    assert (sent.answers, sent.symbols, sent.per) == (2, 2, "user")
    assert sent.epsilon == pytest.approx(2.0)
    assert 500 < sent.bits < 800


def test_shares_of_levels_are_not_learned_from_residuals(user_level: dict[str, Any]) -> None:
    completion = {"kind": "calibrated", "learn_histogram": True}
    with pytest.raises(InputError, match=r"learn_histogram: true, with mechanism residual-bits"):
        run(changed(user_level, completion=completion), page=False)


def test_a_promise_per_rating_is_refused(user_level: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"privacy\.per: 'rating', with mechanism residual-bits; .*'user'"):
        run(changed(user_level, privacy={"epsilon": 1.0, "per": "rating"}), page=False)
