"""Runs in which a column of the users' table has the epsilons."""

import html
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import DelimitedTable
from dprec.datasets.files import UserColumns
from dprec.errors import InputError
from simulation import audit, load, run

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


def by_column(dataset: DelimitedTable, *overrides: str, output: Path | None = None, **parts: Any) -> Any:
    return run(
        "own-budgets-on-device",
        output,
        dataset=dataset,
        overrides=["protocol.privacy.epsilon=chosen", *overrides],
        page=output is not None,
        **{"simulation": {"backend": "local"}, **parts},
    )


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
    assert "from column 'chosen'" in page


def test_best_picks_by_the_largest_epsilon_of_the_column(dataset: DelimitedTable) -> None:
    done = run(
        "best-on-device",
        dataset=dataset,
        overrides=["protocol.privacy={epsilon: chosen}", "simulation.backend=local"],
        page=False,
    )
    np.testing.assert_allclose(np.nan_to_num(done.traffic["epsilon_per_rating"]), EPSILONS, rtol=1e-6)


@pytest.mark.parametrize("column", ["wish", "nobody", "user"])
def test_a_column_of_no_epsilons_is_refused(dataset: DelimitedTable, tmp_path: Path, column: str) -> None:
    with pytest.raises(InputError) as caught:
        by_column(dataset, f"protocol.privacy.epsilon={column}", output=tmp_path / "run")
    assert caught.value.where == "protocol.privacy.epsilon"
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_each_epsilon_of_a_column_is_audited(dataset: DelimitedTable) -> None:
    config = load("own-budgets-on-device", ["simulation.backend=local", "protocol.privacy.epsilon=chosen"])
    found = audit(config.model_copy(update={"dataset": dataset}), trials=200).findings
    assert {each.test.partition(":")[0] for each in found} == {"epsilon 0.5", "epsilon 3"}
    assert all(each.holds for each in found)
