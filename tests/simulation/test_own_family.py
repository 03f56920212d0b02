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


@pytest.mark.thorough
def test_it_runs_here_and_on_ray_alike() -> None:
    here = run(VALUES, page=False)
    there = run({**VALUES, "simulation": {"backend": "ray", "workers": 1, "users_per_node": 30}}, page=False)
    for column in ("user", "item", "prediction"):
        assert (here.predictions[column] == there.predictions[column]).all()
    privacy = here.summary["privacy"]
    assert (privacy["status"], [own["component"] for own in privacy["declared_by"]]) == ("declared", [OWN])
    assert privacy["epsilon_claimed"]["per_user"] == pytest.approx(EPSILON)
    (record,) = here.record.rounds
    assert (record.replies, record.failures) == (30, 0)
    assert (here.traffic["uplink_payload_bytes"] == there.traffic["uplink_payload_bytes"]).all()


def test_it_is_audited() -> None:
    found = audit(VALUES, trials=2000)
    assert found.holds
    assert [*found.declared_by] == [OWN]
    measured = {finding.test: finding for finding in found.findings if not finding.exact}
    assert measured["all of three ratings"].promised == pytest.approx(EPSILON)
    assert measured["all of three ratings"].at_least > 0.2 * EPSILON
