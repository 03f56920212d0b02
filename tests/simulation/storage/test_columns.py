"""The declared columns of results: made, read, checked and documented from one place."""

import json
from pathlib import Path

import polars
import pytest

from dprec.errors import InputError
from simulation import run
from simulation.analysis.columns import every_column, run_table
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import METRICS
from simulation.comparison.tabulation import METRICS_OF_USERS
from simulation.storage.columns import (
    ACROSS,
    CELL,
    COLUMNS,
    FIGURES,
    OVER_USERS,
    column,
    figure,
    figures_of,
    read_rows,
    write_parquet,
)
from tests.refusals import refused_at

SMALL = {
    "name": "small",
    "dataset": {"kind": "synthetic", "users": 30, "items": 20, "ratings": 300},
    "split": {"kind": "holdout"},
    "protocol": {
        "kind": "one-shot",
        "privacy": {"epsilon": 1.0, "per": "rating"},
        "mechanism": {"kind": "bounded-laplace"},
        "completion": {"kind": "item-biases"},
    },
    "simulation": {"backend": "local"},
    "evaluation": {"top_k": 1, "ranking": {"cutoffs": [2, 5]}},
}


def test_every_name_is_declared_once_and_has_a_meaning() -> None:
    assert len(COLUMNS) == len(CELL) + len(FIGURES) + len(ACROSS) + 1
    assert all(each.meaning.endswith(".") or "(`" in each.meaning for each in COLUMNS.values())
    assert set(OVER_USERS) == set(METRICS_OF_USERS)
    assert figure(lambda run: run.privacy.epsilon_per_user.max) is COLUMNS["epsilon_per_user_max"]
    assert figure(lambda run: run.dataset.kind) is COLUMNS["dataset"]


def test_the_figures_of_a_run_are_the_declared_columns_of_its_summary() -> None:
    result = run(SMALL)
    row, timing = figures_of(result.summary), figures_of(result.summary, timing=True)
    assert row["rmse"] == result.summary["accuracy"]["rmse"]
    assert row["ranking_ndcg_at_5"] == result.summary["accuracy"]["ranking"]["ndcg_at"]["5"]
    assert row["epsilon_per_user_max"] == result.summary["privacy"]["epsilon_per_user"]["max"]
    assert timing["total_s"] == result.summary["time"]["total_s"]
    assert not row.keys() & timing.keys()
    assert all(column(name).meaning for name in (*row, *timing))
    titles = {each.title for each in run_table(result.summary).columns}
    assert {"RMSE", "NDCG at 2, catalogue", "ε, any two profiles", "network up"} <= titles
    shown = every_column(METRICS[0], [ProtocolResult("small", 1.0, (row,))])
    named = {name for each in shown for name in each.figures}
    assert {each.name for each in FIGURES if each.where == "everywhere" and row.get(each.name)} <= named


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rmse", "0.5", 0.5),
        ("rounds", "3", 3),
        ("hides_rated_items", "False", False),
        ("seed", "1", "1"),
        ("trust", "shuffle", "shuffle"),
        ("rmse_gain", "-0.25", -0.25),
        ("mae", "", None),
    ],
)
def test_a_cell_is_read_as_it_is_declared(tmp_path: Path, name: str, text: str, value: object) -> None:
    (tmp_path / "t.csv").write_text(f"name,{name}\nx,{text}\n")
    assert read_rows(tmp_path / "t.csv") == [{"name": "x", name: value}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("rmse", text) for text in ("-1", "nan", "many")),
        ("rounds", "1.5"),
        *(("hides_rated_items", "perhaps"), ("trust", "nobody"), ("status", "Proved"), ("epsilon", "0")),
        ("baseline", "mine"),
        ("of_another_version", "text"),
    ],
)
def test_a_damaged_cell_is_refused_by_line_and_column(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "t.csv").write_text(f"name,{name}\nx,{text}\n")
    with refused_at(f"{tmp_path / 't.csv'}, line 2: {name}") as refused:
        read_rows(tmp_path / "t.csv")
    assert refused.value.found == repr(text)


def test_parquet_holds_the_same_with_types_and_meanings(tmp_path: Path) -> None:
    rows = [{"name": "x", "fold": None, "rounds": 3, "rmse": 0.5, "quick": True}, {"name": "y", "rmse": None}]
    write_parquet(tmp_path / "t.parquet", rows)
    table = polars.read_parquet(tmp_path / "t.parquet")
    assert table.to_dicts() == [{**dict.fromkeys(rows[0]), **row} for row in rows]
    types = [polars.String, polars.String, polars.Int64, polars.Float64, polars.Boolean]
    assert table.schema.dtypes() == types
    about = json.loads(polars.read_parquet_metadata(tmp_path / "t.parquet")["columns"])
    assert about["rounds"] == {"meaning": column("rounds").meaning, "unit": ""}
    with pytest.raises(InputError):
        write_parquet(tmp_path / "absent" / "t.parquet", rows)
