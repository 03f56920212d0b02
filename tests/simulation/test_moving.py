"""Scheduled runs of populations that move."""

from typing import Any

import pytest

from simulation import run
from simulation.result import RunResult

ARRIVALS = {"days": 90, "returning": 0.6, "rated_again": 0.3}


def moved(
    arrivals: dict[str, Any] = ARRIVALS,
    users: int = 60,
    faults: dict[str, Any] | None = None,
    **schedule: Any,
) -> RunResult:
    """Run a small population over nine periods or so."""
    return run(
        {
            "name": "moving",
            "seed": 1,
            "dataset": {
                "kind": "synthetic",
                "users": users,
                "items": 50,
                "ratings": 20 * users,
                "arrivals": arrivals,
            },
            "schedule": {"kind": "increments", "days": 10, **schedule},
            "protocol": {
                "kind": "one-shot",
                "privacy": {"epsilon": 1.0, "per": "rating"},
                "mechanism": {"kind": "threshold-bit"},
                "completion": {"kind": "calibrated", "sweeps": 3, "dimensions": 4, "features": 2},
                "personalization": "on-device",
            },
            "simulation": {"backend": "local", "faults": faults or {}},
        }
    )


def test_a_rating_that_is_changed_loses_epsilon_twice_only_where_changes_are_told() -> None:
    kept, told = moved().summary["privacy"], moved(on_change="update").summary["privacy"]
    assert kept["epsilon_per_rating"] == pytest.approx(1.0)
    assert told["epsilon_per_rating"] == pytest.approx(2.0)
    assert told["epsilon_per_user"]["mean"] > kept["epsilon_per_user"]["mean"]
    assert any("sees that it was changed" in note for note in told["notes"])
    assert not any("sees that it was changed" in note for note in kept["notes"])


def test_users_who_have_left_are_neither_asked_nor_sent_anything() -> None:
    stayed, left = moved(), moved(leave_after=1)
    for before, after in zip(stayed.rounds, left.rounds, strict=True):
        assert after["replies"] <= before["replies"]
        assert after["downlink"]["message_bytes"] <= before["downlink"]["message_bytes"]
    assert left.rounds[-1]["replies"] < 0.7 * stayed.rounds[-1]["replies"]
    # All ratings are answered all the same, each in its own period.
    losses = [each.summary["privacy"]["epsilon_per_user"] for each in (stayed, left)]
    assert losses[0] == losses[1]
    assert any("take no part until they rate again" in note for note in left.summary["privacy"]["notes"])


@pytest.mark.parametrize("kind", ["increments", "fresh"])
def test_a_period_in_which_nobody_is_there_has_no_collection(kind: str) -> None:
    few = {"days": 300, "returning": 0.0}
    result = run(
        {
            "name": "empty",
            "seed": 1,
            "dataset": {"kind": "synthetic", "users": 12, "items": 30, "ratings": 200, "arrivals": few},
            "schedule": {"kind": kind, "days": 0.7, "leave_after": 1},
            "protocol": {
                "kind": "one-shot",
                "privacy": {"epsilon": 3.0, "per": "rating"},
                "mechanism": {"kind": "threshold-bit"},
                "completion": {"kind": "calibrated", "sweeps": 2, "dimensions": 2, "features": 1},
                "personalization": "on-device",
            },
            "simulation": {"backend": "local"},
        }
    )
    empty = [line for line in result.rounds if not line["replies"]]
    assert len(empty) > 0.9 * len(result.rounds)
    assert all(line["uplink"]["message_bytes"] == line["downlink"]["message_bytes"] == 0 for line in empty)
