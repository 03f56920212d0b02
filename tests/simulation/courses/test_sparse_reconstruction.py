"""A claim that does not hold, in a run and an audit."""

import pytest

from simulation import audit, run
from tests.simulation.conftest import presets


def test_what_is_lost_stands_beside_what_is_claimed() -> None:
    privacy = run(presets()["dpsr"]).summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("claimed", "local")
    assert privacy["epsilon_per_rating"] == pytest.approx(1.3, abs=1e-6)
    assert privacy["epsilon_claimed"]["per_rating"] == 1.0
    assert privacy["epsilon_per_user"]["max"] == pytest.approx(1.3 * privacy["epsilon_claimed"]["per_user"])


def test_an_audit_finds_that_the_claim_does_not_hold() -> None:
    """Exactly, from the matrix; that needs no samples."""
    found = audit("dpsr", trials=400, seed=1)
    broken = {finding.test: finding.at_least for finding in found.findings if not finding.holds}
    assert broken["all pairs of levels, from the matrix"] == pytest.approx(1.3, abs=1e-6)
    assert not found.holds
