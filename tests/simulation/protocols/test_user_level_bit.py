"""Whole profiles behind a few answers: what is promised, sent and refused, and what many users buy."""

from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError
from simulation import load, run
from simulation.protocols.sent import Example

SMALL = "dataset={kind: synthetic, users: 300, items: 60, ratings: 9000}"


def outcome(*settings: str) -> Any:
    return run(load("user-level-bit", [SMALL, "simulation.backend=local", *settings]), page=False)


def test_all_send_the_same_number_of_bytes_and_lose_the_budget() -> None:
    result = outcome("protocol.privacy.epsilon=6")
    assert set(result.traffic["uplink_payload_bytes"]) == {2}
    np.testing.assert_allclose(result.traffic["epsilon_per_user"], 6.0, rtol=1e-6)
    privacy = result.summary["privacy"]
    assert privacy["hides_rated_items"]
    assert privacy["trust"] == "local"


def test_answers_of_many_users_tell_what_no_device_knows_alone() -> None:
    """Holds for these seeds, at a budget at which half of the answers are of the profile."""
    many = "dataset={kind: synthetic, users: 4000, items: 60, ratings: 90000}"
    quiet = outcome(many, "protocol.privacy.epsilon=0.001").summary["accuracy"]["rmse"]
    assert outcome(many, "protocol.privacy.epsilon=4").summary["accuracy"]["rmse"] < quiet - 0.02


def test_what_a_device_sends_is_described() -> None:
    config = load("user-level-bit", ["protocol.privacy.epsilon=2"])
    sent = config.protocol.sent(Example(config.dataset.known_scale(), 943, 1682, 106))
    assert sent is not None
    assert (sent.answers, sent.per) == (1, "user")
    assert sent.epsilon == pytest.approx(2.0)
    assert sent.bits <= 24


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("protocol.completion={kind: mf}", r"completion\.kind: 'mf', with mechanism user-level-bit"),
        ("protocol.privacy.per=rating", r"privacy\.per: 'rating', with mechanism user-level-bit"),
        ("protocol.mechanism.profile=0", r"mechanism\.profile: 0"),
        ("protocol.mechanism.answers=65", r"mechanism\.answers: 65"),
        ("protocol.completion.factors=3", r"factors: 3, with mechanism user-level-bit"),
    ],
)
def test_what_makes_no_sense_is_refused(setting: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        outcome(setting)
