"""Baselines: everybody is predicted the mean of the means that arrived, or by the own device alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.ordinal import level_shares
from dprec.protocols.baselines import NothingSentProtocol
from dprec.ratings import Ratings
from simulation import run
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from tests.make import small_run

MEAN = small_run({"kind": "global-mean"})
ALONE = small_run({"kind": "nothing-sent"})
STEP = 4 / 200
"""Of the scale on which means of 1 to 5 stars are sent."""


def parts_of(values: dict[str, Any]) -> tuple[Ratings, Ratings]:
    return load_ratings(parse_config(values))


def mean_of_means(values: dict[str, Any]) -> float:
    """Return the mean over the users of their mean train ratings, every user counted once."""
    train, _ = parts_of(values)
    return float(np.mean([train.values[train.users == user].mean() for user in np.unique(train.users)]))


def test_everybody_sends_one_number_and_is_predicted_the_mean_of_all() -> None:
    result = run(MEAN)
    (predicted,) = set(result.predictions["prediction"].tolist())
    assert predicted == pytest.approx(mean_of_means(MEAN), abs=STEP / 2)
    assert set(result.traffic["messages"].tolist()) == {2}
    sent = result.traffic["uplink_payload_bytes"]
    assert sent.max() <= 3
    assert np.unique(sent).size == 1


def test_a_scaled_population_has_the_mean_of_those_who_stand_for_it() -> None:
    users = MEAN["dataset"]["users"]
    scaled = {**MEAN, "dataset": {**MEAN["dataset"], "copies": 100 * users, "simulated_up_to": users}}
    found, alone = (run(values).summary["completion_diagnostics"]["mean"] for values in (scaled, MEAN))
    assert found == pytest.approx(alone, abs=0.05)


@pytest.mark.parametrize("mechanism", ["laplace", "bounded-laplace", "clamped-laplace"])
def test_the_mean_is_learned_through_noise_without_its_bias(mechanism: str) -> None:
    budget = {"epsilon": 4.0, "per": "user"}
    own = {"kind": "global-mean", "mechanism": {"kind": mechanism}, "privacy": budget}
    noisy = small_run(own, 3000, 30, 30_000)
    result = run(noisy)
    # The mean of 3,000 draws of Laplace noise of scale 1 has a standard deviation of 0.026, and a line leaves
    # a bias of 0.03 of what is bounded, whose own is 0.2: with five deviations, a false alarm in a million.
    assert result.summary["completion_diagnostics"]["mean"] == pytest.approx(mean_of_means(noisy), abs=0.16)
    assert result.summary["privacy"]["status"] == "proved"
    for unit in ("epsilon_per_rating", "epsilon_per_user"):
        spent = result.traffic[unit][np.isfinite(result.traffic[unit])]
        assert 3.9 < spent.max() <= 4 * (1 + 1e-6)


def test_a_device_that_reads_public_shares_starts_from_their_mean() -> None:
    values = {**ALONE, "protocol": {"kind": "nothing-sent", "shares": True}}
    train, _ = parts_of(values)
    protocol = parse_config(values).protocol
    assert isinstance(protocol, NothingSentProtocol)
    nobody = train.select(np.zeros(train.count, dtype=np.bool_))
    predicted = protocol.alone(nobody, None).predict(np.zeros(3, dtype=int), np.arange(3))
    shares = np.array(level_shares("netflix", 5)) / 100
    assert predicted == pytest.approx(shares @ np.arange(1, 6), abs=0.02)
    # Without them, from the middle of the scale.
    protocol = replace(protocol, shares=False)
    assert protocol.alone(nobody, None).predict(np.zeros(1, dtype=int), np.arange(1)) == pytest.approx(3.0)


def test_without_a_value_the_server_is_trusted_with_none() -> None:
    result = run(small_run({"kind": "global-mean", "mechanism": {"kind": "set-only"}}), page=False)
    privacy = result.summary["privacy"]
    found = privacy["status"], privacy["trust"], privacy["epsilon_per_user"]["max"]
    assert found == ("proved", "local", 0)
    # The symbol that everybody sends reads as the middle of the scale.
    assert set(result.predictions["prediction"].tolist()) == {3.0}


@pytest.mark.parametrize("domains", [False, True], ids=["one domain", "new to the target domain"])
def test_a_user_is_predicted_from_own_ratings(domains: bool) -> None:
    dataset = {"kind": "synthetic-domains", "users": 40, "items": 60, "ratings": 800}
    split = {"kind": "cold-start", "test_fraction": 0.4}
    values = {**ALONE, "dataset": dataset, "split": split} if domains else ALONE
    train, test = parts_of(values)
    sums = np.bincount(train.users, train.values, train.n_users)[test.users]
    expected = (sums + 2 * (train.scale.low + train.scale.high) / 2) / (train.counts[test.users] + 2)
    assert run(values).predictions["prediction"] == pytest.approx(expected)
    assert np.unique(expected).size > 5


def test_nothing_crosses_the_network_and_nothing_is_spent() -> None:
    result = run(ALONE)
    assert result.rounds == []
    assert all((result.traffic[name] == 0).all() for name in result.traffic if name.endswith("_bytes"))
    privacy = result.summary["privacy"]
    assert privacy["epsilon_per_rating"] == 0
    assert set(privacy["epsilon_per_user"].values()) == {0}
    assert (privacy["trusts_server"], privacy["hides_rated_items"]) == (False, True)
