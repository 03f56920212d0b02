"""Runs in which users choose their own budgets: who sends, what it costs, and who predicts all the same."""

import html
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import DelimitedTable
from dprec.datasets.table import UserColumns
from simulation import audit, load, run
from simulation.result import RunResult
from tests.refusals import refused_at
from tests.simulation.conftest import run_of_ratings

NAME = "own-budgets-on-device"


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run_of_ratings(NAME)


def test_losses_and_bytes_are_each_users_own(result: RunResult) -> None:
    counts, refused = result.traffic["ratings"], np.isnan(result.traffic["epsilon_per_rating"])
    epsilons = np.where(refused, 0.0, np.round(result.traffic["epsilon_per_rating"], 6))
    chosen, users = np.unique(epsilons, return_counts=True)
    assert chosen.tolist() == [0, 0.1, 1, 3]
    assert users.tolist() == [40, 60, 80, 20]
    np.testing.assert_allclose(result.traffic["epsilon_per_user"], epsilons * counts, rtol=1e-6)
    assert (result.traffic["uplink_payload_bytes"][refused] == 0).all()
    assert (result.traffic["uplink_payload_bytes"][~refused] > 1).all()


def test_every_epsilon_is_a_group_with_its_figures(result: RunResult) -> None:
    groups = result.summary["groups"]["epsilon"]
    assert [each["group"] for each in groups] == ["0", "0.1", "1", "3"]
    assert groups[0]["epsilon_per_user"] == 0
    assert groups[0]["message_bytes"] < groups[1]["message_bytes"]
    squares = sum(each["rmse"] ** 2 * each["test_ratings"] for each in groups)
    whole = sum(each["test_ratings"] for each in groups)
    assert np.sqrt(squares / whole) == pytest.approx(result.summary["accuracy"]["rmse"])


def test_newcomers_are_told_how_everybody_rates(result: RunResult) -> None:
    """Where critics refuse, or have more noise, item means would else be .3 stars too high."""
    critics = run_of_ratings(NAME, "privacy={epsilon: {0: .4, .1: .2, 3: .4}, choice: {by: taste}}")
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


USERS, ITEMS = 60, 30
EPSILONS = np.array([0, 0.5, 3])[np.arange(USERS) % 3]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DelimitedTable:
    """Return ratings, and a file in which every third user refuses, has .5, or has 3, in another order."""
    folder = tmp_path_factory.mktemp("column")
    rng = np.random.default_rng(1)
    lines = [
        f"{user},{item},{rng.integers(1, 6)}"
        for user in range(USERS)
        for item in np.sort(rng.permutation(ITEMS)[:20])
    ]
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]))
    rows = [f"{user},{EPSILONS[user]},{'high' if user == 7 else 1}" for user in reversed(range(USERS))]
    (folder / "users.csv").write_text("\n".join(["user,chosen,wish", *rows]))
    users = UserColumns(path=str(folder / "users.csv"))
    return DelimitedTable(path=str(folder / "ratings.csv"), low=1.0, high=5.0, users=users)


def by_column(
    dataset: DelimitedTable, column: str = "chosen", output: Path | None = None, **parts: Any
) -> Any:
    overrides = [f"protocol.privacy.epsilon={column}", "simulation.backend=local"]
    return run(NAME, output, dataset=dataset, overrides=overrides, page=output is not None, **parts)


def test_every_user_loses_the_epsilon_of_its_row(dataset: DelimitedTable, tmp_path: Path) -> None:
    done = by_column(dataset, output=tmp_path / "run")
    lost = np.nan_to_num(done.traffic["epsilon_per_rating"])
    np.testing.assert_allclose(lost, EPSILONS, rtol=1e-6)
    assert (done.traffic["uplink_payload_bytes"] == 0).tolist() == (EPSILONS == 0).tolist()
    groups = done.summary["groups"]["epsilon"]
    assert [(each["group"], each["users"]) for each in groups] == [("0", 20), ("0.5", 20), ("3", 19)]
    again = run(tmp_path / "run" / "config.yaml", overrides=["simulation.backend=local"], page=False)
    assert again.predictions["prediction"].tolist() == done.predictions["prediction"].tolist()
    resumed = by_column(dataset, output=tmp_path / "run", resume=True)
    assert resumed.summary == done.summary
    page = html.unescape((tmp_path / "run" / "report.html").read_text())
    assert "epsilon: chosen" in page


def test_best_picks_by_the_largest_epsilon_of_the_column(dataset: DelimitedTable) -> None:
    done = run(
        "best",
        dataset=dataset,
        overrides=["protocol.privacy={epsilon: chosen}", "simulation.backend=local"],
        page=False,
    )
    np.testing.assert_allclose(np.nan_to_num(done.traffic["epsilon_per_rating"]), EPSILONS, rtol=1e-6)


@pytest.mark.parametrize("column", ["wish", "nobody", "user"])
def test_a_column_of_no_epsilons_is_refused(dataset: DelimitedTable, tmp_path: Path, column: str) -> None:
    with refused_at("protocol.privacy.epsilon"):
        by_column(dataset, column, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_each_epsilon_of_a_column_is_audited(dataset: DelimitedTable) -> None:
    config = load("own-budgets-on-device", ["simulation.backend=local", "protocol.privacy.epsilon=chosen"])
    found = audit(config.model_copy(update={"dataset": dataset}), trials=200).findings
    assert {each.test.partition(":")[0] for each in found} == {"epsilon 0.5", "epsilon 3"}
    assert all(each.holds for each in found)


def test_a_run_says_what_is_claimed_and_what_a_seen_sample_loses() -> None:
    done = run_of_ratings("personalised-sampling")
    lost = np.nan_to_num(done.traffic["epsilon_per_rating"])
    assert np.unique(np.round(lost, 6), return_counts=True)[1].tolist() == [40, 160]
    assert lost.max() == pytest.approx(3, rel=1e-6)
    assert done.summary["privacy"]["status"] == "claimed"
    assert any("a rating that was sampled loses t" in note for note in done.summary["privacy"]["notes"])
    sizes = done.traffic["uplink_payload_bytes"]
    assert np.count_nonzero(sizes <= 3) > 0  # at .1, hardly any rating takes part


@pytest.mark.thorough
def test_an_audit_finds_that_no_smaller_epsilon_holds() -> None:
    found = audit(load("personalised-sampling", ["simulation.backend=local"]), trials=200).findings
    exact = [each for each in found if each.exact and each.unit == "rating" and each.charged is None]
    assert [each.promised for each in exact] == [0.1, 1, 3]
    assert [each.at_least for each in exact] == pytest.approx([3, 3, 3], rel=1e-6)
    assert [each.holds for each in exact] == [False, False, True]
