"""User-defined metrics: what they are given, where they appear, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError
from simulation import compare, load, run
from simulation.analysis.vocabulary import headlines, metrics_in

SOURCE = """
import numpy as np

def bias(ratings, predictions):
    predictions.sort()  # of a copy
    return np.mean(predictions) - np.mean(ratings)

def reach(ratings, predictions, items, users):
    return len(set(zip(users.tolist(), items.tolist()))) / ratings.size + users.max() * 0

def spread(ratings, predictions):
    return predictions.std()

def nan(ratings, predictions): return float("nan")
def text(ratings, predictions): return "0.5"
def flag(ratings, predictions): return True
def few(ratings): return 0.0
def broken(ratings, predictions): return ratings / 0 / "x"
value = 3
class Sub:
    @staticmethod
    def bias(ratings, predictions): return 0.0
"""

OWN = {"errors": ["measures_of_mine:bias"], "scores": ["measures_of_mine:reach", "measures_of_mine:spread"]}


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "measures_of_mine.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "measures_of_mine", raising=False)
    return path


def test_a_run_has_them_in_its_summary_and_tables(tiny: dict[str, Any], tmp_path: Path) -> None:
    plain, result = run(tiny), run(tiny | {"evaluation": OWN}, tmp_path / "run")
    accuracy, columns = result.summary["accuracy"], result.predictions
    assert accuracy["errors"] == {"bias": pytest.approx(np.mean(columns["prediction"] - columns["rating"]))}
    assert accuracy["scores"] == {"reach": 1.0, "spread": pytest.approx(columns["prediction"].std())}
    np.testing.assert_array_equal(plain.predictions["prediction"], columns["prediction"])
    assert {*accuracy} - {*plain.summary["accuracy"]} == {"errors", "scores"}
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["accuracy"] == accuracy
    assert f"{accuracy['scores']['spread']:.4f}" in str(result)
    assert "spread" in (tmp_path / "run" / "report.html").read_text()


def test_a_comparison_has_a_column_each_and_notices_a_changed_function(
    tiny: dict[str, Any], tmp_path: Path, source: Path
) -> None:
    shared = {key: tiny[key] for key in ("dataset", "split", "simulation")}
    config = {"name": "mine", **shared, "evaluation": OWN, "protocols": ["nothing-sent"], "baselines": False}
    (row,) = compare(config, tmp_path / "mine").rows
    assert row["scores_reach"] == 1.0
    assert {"errors_bias", "scores_spread"} <= {*row}
    assert "spread" in (tmp_path / "mine" / "report.html").read_text()
    compare(config, tmp_path / "mine", resume=True, page=False)
    with pytest.raises(InputError, match=r"evaluation\.errors"):
        compare(config | {"evaluation": {**OWN, "errors": []}}, tmp_path / "mine", resume=True)
    source.write_text(SOURCE + "# changed\n")
    with pytest.raises(InputError, match=r"sources\.measures_of_mine:bias: '.*' there and '.*' now"):
        compare(config, tmp_path / "mine", resume=True)


def test_their_columns_say_which_way_is_better() -> None:
    metrics = metrics_in(["scores_reach", "rmse", "errors_bias", "errors", "scored_x"])
    assert [each.column for each in metrics] == ["rmse", "errors_bias", "scores_reach"]
    assert [each.label for each in metrics] == ["RMSE", "bias", "reach"]
    assert [each.lower_is_better for each in metrics] == [True, True, False]
    assert headlines(metrics) == metrics


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        (
            ["measures_of_mine:nan"],
            "evaluation.errors: measures_of_mine:nan: it returned nan; accepted: a fun",
        ),
        (["measures_of_mine:text"], "measures_of_mine:text: it returned a str; accepted: .* a finite number"),
        (["measures_of_mine:flag"], "measures_of_mine:flag: it returned True"),
        (["measures_of_mine:few"], r"measures_of_mine:few: TypeError: few\(\) takes 1 positional"),
        (["measures_of_mine:broken"], "measures_of_mine:broken: "),
        (["measures_of_mine:absent"], "evaluation.errors: no function absent in measures_of_mine"),
        (["measures_of_mine:value"], "evaluation.errors: no function value in measures_of_mine"),
        (["measures_of_mine:Sub"], "evaluation.errors: no function Sub in measures_of_mine"),
        (["no_such_module:bias"], "evaluation.errors: no module 'no_such_module'"),
        (["bias"], "evaluation.errors: .*'bias'.*; accepted: module:function"),
        (["__main__:bias"], "evaluation.errors: '__main__:bias', a function of a notebook or script"),
        (
            ["measures_of_mine:bias", "measures_of_mine:Sub.bias"],
            "evaluation.errors: two functions named bias",
        ),
        ([5], r"evaluation.errors\[0\]: 5; accepted: text"),
    ],
)
def test_what_is_no_metric_is_refused_before_anything_runs(
    errors: list[Any], message: str, tiny: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run(tiny | {"evaluation": {"errors": errors}}, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_name_is_either_an_error_or_a_score(tiny: dict[str, Any]) -> None:
    twice = {"errors": ["measures_of_mine:bias"], "scores": ["measures_of_mine:bias"]}
    with pytest.raises(InputError, match=r"evaluation\.scores: two functions named bias"):
        load(tiny | {"evaluation": twice})
