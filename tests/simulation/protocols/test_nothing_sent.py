"""What devices predict alone: no message, no byte, no round, no privacy spent."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from flwr.serverapp import Grid

from clients.population import open_population
from dprec.errors import SettingError
from dprec.exchange import ReportSetup
from simulation import run
from simulation.configuration.models import parse_config
from simulation.execution import load_ratings
from simulation.protocols import Task
from simulation.protocols.nothing_sent import NothingSentProtocol
from tests.builders import populated

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


def test_signs_are_predicted_by_the_sign_of_the_majority(alone: dict[str, Any]) -> None:
    alone["binarization"] = {"kind": "mean"}
    predictions, expected = predicted(alone)
    assert predictions == pytest.approx(expected)
    _, test = load_ratings(parse_config(alone))
    share = np.mean(np.where(expected >= 0, 1, -1) == test.values)
    assert run(alone).summary["accuracy"] == {"sign_accuracy": pytest.approx(share), "relative_error": None}


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


def test_a_page_projects_no_traffic(tmp_path: Path, alone: dict[str, Any]) -> None:
    run(alone, tmp_path, population=1e6)
    page = (tmp_path / "report.html").read_text()
    assert "Projected traffic of 1,000,000 users a day" in page
    assert "network, both" not in page


def test_no_grid_is_needed(alone: dict[str, Any]) -> None:
    train, _ = load_ratings(parse_config(alone))
    outcome = NothingSentProtocol().run(cast(Grid, None), cast(Task, SimpleNamespace(train=train)))
    assert outcome.rounds == ()
    assert not outcome.traffic.messages.any()


def test_devices_answer_no_request(tmp_path: Path, alone: dict[str, Any]) -> None:
    train, _ = load_ratings(parse_config(alone))
    setup = NothingSentProtocol().setup()
    populated(tmp_path / "key", train, setup, 40)
    with pytest.raises(ValueError, match="not for devices set up for nothing-sent"):
        open_population(str(tmp_path / "key")).installed(ReportSetup)


def test_a_stated_prior_is_that_of_users_without_ratings(alone: dict[str, Any]) -> None:
    train, _ = load_ratings(parse_config(alone))
    nobody = train.select(np.zeros(train.count, dtype=np.bool_))
    task = cast(Task, SimpleNamespace(train=nobody))
    outcome = NothingSentProtocol(prior=4.0).run(cast(Grid, None), task)
    assert outcome.predict(np.arange(40), np.zeros(40, dtype=np.int64)).tolist() == [4.0] * 40


def test_an_audit_has_nothing_to_listen_to() -> None:
    with pytest.raises(SettingError, match="kind"):
        NothingSentProtocol().audited()
