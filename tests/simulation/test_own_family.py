"""A family of reports from a user's file goes wherever ours go, with no line of the source changed."""

from typing import Any

import pytest

from simulation import audit, run

OWN = "tests.own_family:OwnBits"
EPSILON = 4.0

VALUES: dict[str, Any] = {
    "name": "own-bits",
    "seed": 3,
    "dataset": {"kind": "synthetic", "users": 30, "items": 20, "ratings": 240},
    "split": {"kind": "holdout", "test_fraction": 0.2},
    "protocol": {
        "kind": "one-shot",
        "privacy": {"epsilon": EPSILON, "per": "user"},
        "mechanism": {"kind": OWN, "bits": 2},
        "completion": {"kind": "calibrated", "sweeps": 4},
        "personalization": "on-device",
    },
    "simulation": {"backend": "local", "users_per_node": 7},
}


def test_its_loss_is_declared() -> None:
    here = run(VALUES, page=False)
    privacy = here.summary["privacy"]
    assert (privacy["status"], [own["component"] for own in privacy["declared_by"]]) == ("declared", [OWN])
    assert privacy["epsilon_claimed"]["per_user"] == pytest.approx(EPSILON)
    (record,) = here.record.rounds
    assert (record.replies, record.failures) == (30, 0)


def test_it_is_audited() -> None:
    found = audit(VALUES, trials=2000)
    assert found.holds
    assert [*found.declared_by] == [OWN]
    measured = {finding.test: finding for finding in found.findings if not finding.exact}
    assert measured["all of three ratings"].promised == pytest.approx(EPSILON)
    assert measured["all of three ratings"].at_least > 0.2 * EPSILON
