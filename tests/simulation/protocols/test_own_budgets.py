"""Runs in which users choose their own budgets: who sends, what it costs, and who predicts all the same."""

import numpy as np
import pytest

from simulation import audit, load, run

SMALL = {"kind": "synthetic", "users": 200, "items": 60, "ratings": 6000}
LOCAL = {"backend": "local"}


def mixed(*overrides: str, **parts):
    return run(
        "own-budgets-on-device", dataset=SMALL, simulation=LOCAL, overrides=overrides, page=False, **parts
    )


@pytest.fixture(scope="module")
def result():
    return mixed()


def test_losses_and_bytes_are_each_users_own(result) -> None:
    counts, refused = result.traffic["ratings"], np.isnan(result.traffic["epsilon_per_rating"])
    epsilons = np.where(refused, 0.0, np.round(result.traffic["epsilon_per_rating"], 6))
    chosen, users = np.unique(epsilons, return_counts=True)
    assert chosen.tolist() == [0, 0.1, 1, 3]
    assert users.tolist() == [40, 60, 80, 20]
    np.testing.assert_allclose(result.traffic["epsilon_per_user"], epsilons * counts, rtol=1e-6)
    assert (result.traffic["uplink_payload_bytes"][refused] == 0).all()
    assert (result.traffic["uplink_payload_bytes"][~refused] > 1).all()


def test_every_epsilon_is_a_group_with_its_figures(result) -> None:
    groups = result.summary["groups"]["epsilon"]
    assert [each["group"] for each in groups] == ["0", "0.1", "1", "3"]
    assert groups[0]["epsilon_per_user"] == 0
    assert groups[0]["message_bytes"] < groups[1]["message_bytes"]
    squares = sum(each["rmse"] ** 2 * each["test_ratings"] for each in groups)
    whole = sum(each["test_ratings"] for each in groups)
    assert np.sqrt(squares / whole) == pytest.approx(result.summary["accuracy"]["rmse"])


def test_newcomers_are_told_how_everybody_rates(result) -> None:
    """Where critics refuse, or have more noise, item means would else be .3 stars too high."""
    critics = mixed("protocol.privacy={epsilon: {0: .4, .1: .2, 3: .4}, choice: {by: taste}}")
    for each in (result, critics):
        assert abs(each.summary["completion_diagnostics"]["bias_of_item_means"]) < 0.15


@pytest.mark.thorough
def test_each_epsilon_is_audited_against_its_own_promise() -> None:
    found = audit(load("own-budgets-on-device", ["simulation.backend=local"]), trials=200).findings
    for epsilon in (0.1, 1.0, 3.0):
        own = [each for each in found if each.test.startswith(f"epsilon {epsilon:g}: ")]
        promised = {each.promised for each in own if each.unit == "rating"}
        assert sorted(promised) == pytest.approx([epsilon] * len(promised))
        exact = [each.at_least for each in own if each.exact and each.unit == "rating"]
        assert max(exact) == pytest.approx(epsilon, rel=1e-6)
    assert all(each.holds for each in found)
