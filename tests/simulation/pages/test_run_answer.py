"""The sentence that a run's page begins with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulation.pages.run_page import answer_sentence
from simulation.storage.summary import read_summary

_ALONE = "RMSE 1.100 on 400 held-out ratings, against 1.063 with nothing sent (lower is better)"
_UNKNOWN = {"privacy.epsilon_per_rating": None, "privacy.epsilon_per_user.max": None}


@pytest.mark.parametrize(
    ("settings", "altered", "words"),
    [
        (
            {},
            {},
            f"{_ALONE}, at ε = 1 per rating and at most 163 per user on the same items (40.75 with δ = "
            "1e-06), for 285 B up and 110 B down per user; the server sees rated items, noise.",
        ),
        (
            {"per": "user"},
            {"privacy.epsilon_composed.max": 1.0},
            f"{_ALONE}, at ε = 1 per user on the same items, for 285 B up and 110 B down per user; the "
            "server sees rated items, noise.",
        ),
        (
            {"mechanism": "none", "epsilon": None, "completion": "mf"},
            {"privacy.epsilon_composed.max": None},
            f"{_ALONE}, without privacy, for 285 B up and 110 B down per user; the server sees true ratings.",
        ),
        (
            {"trust": "secure-aggregation"},
            {**_UNKNOWN, "privacy.hides_rated_items": True},
            f"{_ALONE}, at ε = 40.75 per user with δ = 1e-06, for 285 B up and 110 B down per user; the "
            "server sees noisy sums only.",
        ),
        (
            {"trust": "central"},
            {
                **_UNKNOWN,
                "privacy.status": "claimed",
                "privacy.epsilon_claimed": {"per_rating": 2.0, "per_user": 1154.2},
            },
            f"{_ALONE}, at ε = 2 per rating and at most 1,154 per user on the same items, claimed and not "
            "proved, for 285 B up and 110 B down per user; the server sees true ratings.",
        ),
        (
            {"trust": "central"},
            {
                "privacy.status": "claimed",
                "privacy.epsilon_per_rating": 900.0,
                "privacy.epsilon_claimed": {"per_rating": 1.0, "per_user": None},
            },
            f"{_ALONE}, at ε = 1 per rating, claimed; proved is 900 per rating, for 285 B up and 110 B down "
            "per user; the server sees true ratings.",
        ),
        (
            {},
            {"traffic.uplink.message_bytes": 0},
            "RMSE 1.100 on 400 held-out ratings, with nothing sent.",
        ),
        (
            {"per": "user"},
            {"devices": "deployed", "accuracy": {"rmse": None}, "privacy.epsilon_composed.max": 1.0},
            "At ε = 1 per user on the same items, for 285 B up and 110 B down per user; the server sees "
            "rated items, noise. Only the devices know the accuracy.",
        ),
        (
            {"metric": "sign_accuracy", "per": "user"},
            {"privacy.epsilon_composed.max": 1.0, "accuracy.sign_accuracy": 0.7, "nothing_sent": 0.64},
            "Sign accuracy 0.700 on 400 held-out ratings, against 0.640 with nothing sent (higher is "
            "better), at ε = 1 per user on the same items, for 285 B up and 110 B down per user; the server "
            "sees rated items, noise.",
        ),
    ],
)
def test_a_run_is_answered_in_a_sentence(
    run_directory: Callable[..., Path], settings: dict[str, Any], altered: dict[str, Any], words: str
) -> None:
    summary = read_summary(run_directory(**settings, altered=altered))
    assert answer_sentence(summary) == words
