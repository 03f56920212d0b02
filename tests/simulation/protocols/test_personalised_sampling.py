"""A run in which ratings are sampled by their users' own epsilons: what is claimed, and what is lost."""

import numpy as np
import pytest

from simulation import audit, load, run

LOCAL = ["simulation.backend=local"]


def test_a_run_says_what_is_claimed_and_what_a_seen_sample_loses() -> None:
    small = {"kind": "synthetic", "users": 200, "items": 60, "ratings": 6000}
    done = run("personalised-sampling", dataset=small, overrides=LOCAL, page=False)
    lost = np.nan_to_num(done.traffic["epsilon_per_rating"])
    assert np.unique(np.round(lost, 6), return_counts=True)[1].tolist() == [40, 160]
    assert lost.max() == pytest.approx(3, rel=1e-6)
    assert done.summary["privacy"]["status"] == "claimed"
    assert any("a rating that was sampled loses t" in note for note in done.summary["privacy"]["notes"])
    sizes = done.traffic["uplink_payload_bytes"]
    assert np.count_nonzero(sizes <= 3) > 0  # at .1, hardly any rating takes part


@pytest.mark.thorough
def test_an_audit_finds_that_no_smaller_epsilon_holds() -> None:
    found = audit(load("personalised-sampling", LOCAL), trials=200).findings
    exact = [each for each in found if each.exact and each.unit == "rating" and each.charged is None]
    assert [each.promised for each in exact] == [0.1, 1, 3]
    assert [each.at_least for each in exact] == pytest.approx([3, 3, 3], rel=1e-6)
    assert [each.holds for each in exact] == [False, False, True]
