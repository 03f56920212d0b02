"""Baselines: everybody is predicted the mean of the means that arrived, or by the own device alone."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from flwr.serverapp import Grid

from simulation import run
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from simulation.protocols import Task
from simulation.protocols.baselines import NothingSentProtocol

STEP = 4 / 200
"""Of the scale on which means of 1 to 5 stars are sent."""


@pytest.fixture
def mean(tiny: dict[str, Any]) -> dict[str, Any]:
    return {**tiny, "protocol": {"kind": "global-mean"}}


@pytest.fixture
def noisy(mean: dict[str, Any]) -> dict[str, Any]:
    """Many people with a budget that leaves some noise."""
    mean["dataset"] = {"kind": "synthetic", "users": 3000, "items": 30, "ratings": 30_000}
    mean["protocol"] |= {"mechanism": {"kind": "laplace"}, "privacy": {"epsilon": 4.0, "per": "user"}}
    return mean


def mean_of_means(values: dict[str, Any]) -> float:
    """Return the mean over the users of their mean train ratings, every user counted once."""
    train, _ = load_ratings(parse_config(values))
    own = [train.values[train.users == user].mean() for user in np.unique(train.users)]
    return float(np.mean(own))


def test_everybody_is_predicted_the_mean_of_the_means(mean: dict[str, Any]) -> None:
    result = run(mean)
    (predicted,) = set(result.predictions["prediction"].tolist())
    assert predicted == pytest.approx(mean_of_means(mean), abs=STEP / 2)
    assert result.summary["completion_diagnostics"] == {"mean": predicted}


def test_one_number_is_sent(mean: dict[str, Any]) -> None:
    result = run(mean)
    assert result.summary["traffic"]["rounds"] == 1
    assert set(result.traffic["messages"].tolist()) == {2}
    sent = result.traffic["uplink_payload_bytes"]
    assert sent.max() <= 3
    assert np.unique(sent).size == 1
    privacy = result.summary["privacy"]
    assert privacy["epsilon_per_user"]["max"] is None
    assert privacy["status"] == "none"
    assert privacy["hides_rated_items"] is True


@pytest.mark.parametrize("mechanism", ["laplace", "bounded-laplace", "clamped-laplace"])
def test_the_mean_is_learned_through_noise_without_its_bias(noisy: dict[str, Any], mechanism: str) -> None:
    noisy["protocol"]["mechanism"] = {"kind": mechanism}
    result = run(noisy)
    # The mean of 3,000 draws of Laplace noise of scale 1 has a standard deviation of 0.026.
    assert result.summary["completion_diagnostics"]["mean"] == pytest.approx(mean_of_means(noisy), abs=0.08)
    assert result.summary["privacy"]["status"] == "proved"
    for unit in ("epsilon_per_rating", "epsilon_per_user"):
        spent = result.traffic[unit][np.isfinite(result.traffic[unit])]
        assert spent.max() <= 4 * (1 + 1e-6)
        assert spent.max() > 3.9


def test_without_a_value_the_server_is_trusted_with_none(mean: dict[str, Any]) -> None:
    mean["protocol"]["mechanism"] = {"kind": "set-only"}
    result = run(mean, page=False)
    privacy = result.summary["privacy"]
    assert (privacy["status"], privacy["trust"], privacy["epsilon_per_user"]["max"]) == (
        "proved",
        "local",
        0,
    )
    assert "Proved: nothing that is sent depends on any rating." in privacy["notes"]
    # The symbol that everybody sends reads as the middle of the scale.
    assert set(result.predictions["prediction"].tolist()) == {3.0}


DOMAINS = {"kind": "synthetic-domains", "users": 40, "items": 60, "ratings": 800}


@pytest.fixture
def alone(tiny: dict[str, Any]) -> dict[str, Any]:
    return {**tiny, "protocol": {"kind": "nothing-sent"}}


def predicted(values: dict[str, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the predictions of a run, and the shrunk means of each rating's user."""
    train, test = load_ratings(parse_config(values))
    expected = []
    for user in test.users.tolist():
        own = train.values[train.users == user]
        middle = (train.scale.low + train.scale.high) / 2
        expected.append((own.sum() + 2 * middle) / (own.size + 2))
    return run(values).predictions["prediction"], np.array(expected)


def test_a_user_is_predicted_from_own_ratings(alone: dict[str, Any]) -> None:
    predictions, expected = predicted(alone)
    assert predictions == pytest.approx(expected)


def test_a_user_new_to_the_target_domain_is_predicted_from_the_source(alone: dict[str, Any]) -> None:
    alone |= {"dataset": DOMAINS, "split": {"kind": "cold-start", "test_fraction": 0.4}}
    predictions, expected = predicted(alone)
    assert predictions == pytest.approx(expected)
    assert np.unique(predictions).size > 5


def test_nothing_crosses_the_network_and_nothing_is_spent(tmp_path: Path, alone: dict[str, Any]) -> None:
    run(alone, tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    for direction in ("uplink", "downlink"):
        network = {key for key in summary["traffic"][direction] if key.startswith("network")}
        assert {summary["traffic"][direction].pop(key) for key in network} == {None}
        assert set(summary["traffic"][direction].values()) == {0}
    assert summary["traffic"]["rounds"] == 0
    assert (tmp_path / "rounds.jsonl").read_text() == ""
    assert summary["privacy"]["epsilon_per_rating"] == 0
    assert set(summary["privacy"]["epsilon_per_user"].values()) == {0}
    assert summary["privacy"]["trusts_server"] is False
    assert summary["privacy"]["hides_rated_items"] is True
    page = (tmp_path / "report.html").read_text()
    assert 'id="rounds-section"' not in page
    assert run(alone, tmp_path, resume=True).rounds == []


def test_a_stated_prior_is_that_of_users_without_ratings(alone: dict[str, Any]) -> None:
    train, _ = load_ratings(parse_config(alone))
    nobody = train.select(np.zeros(train.count, dtype=np.bool_))
    task = cast(Task, SimpleNamespace(train=nobody, judged=nobody, catalogue=None, attacked=False))
    outcome = NothingSentProtocol(prior=4.0).run(cast(Grid, None), task)
    assert outcome.predict(np.arange(40), np.zeros(40, dtype=np.int64)).tolist() == [4.0] * 40
