"""User-defined components and metrics: what is refused in one line, digested, and shown."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError
from simulation import compare, load, run
from tests.make import small_run
from tests.refusals import refused_at

MODULE = """
from dataclasses import dataclass

import numpy as np

from dprec.completion import Completed, Completion, ItemAverage
from dprec.mechanisms import Channel, Mechanism, RandomizedResponse

class Wrong(Completed):
    def predict(self, users, items):
        {predict}

class OwnCompletion(Completion):
    def fit(self, observations, seed, progress=None):
        {fit}

class OwnMechanism(Mechanism):
    def channel(self, scale, epsilon):
        good = RandomizedResponse().channel(scale, epsilon)
        {channel}

class Lying(Channel):
    pass
"""

GOOD = {"predict": "return np.ones(users.size)", "fit": "return Wrong()", "channel": "return good"}


@pytest.fixture
def own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[..., Any]:
    """Return a function that runs components of one's own."""
    module = f"own_defects_{abs(hash(request.node.name))}"
    monkeypatch.syspath_prepend(str(tmp_path))

    def ran(**bodies: str) -> object:
        (tmp_path / f"{module}.py").write_text(MODULE.format(**{**GOOD, **bodies}))
        parts = {
            "completion": {"kind": f"{module}:OwnCompletion"},
            "mechanism": {"kind": f"{module}:OwnMechanism"},
        }
        budget = {"epsilon": 1.0, "per": "rating"}
        return run(small_run({"kind": "one-shot", "privacy": budget, **parts}, 40, 30, 400), page=False)

    return ran


def test_what_is_right_runs(own: Callable[..., Any]) -> None:
    assert own()


DAMAGED = """done = ItemAverage().fit(observations, seed)
        for name, value in vars(done).items():
            if isinstance(value, np.ndarray): value[...] = np.nan
        return done"""


@pytest.mark.parametrize(
    ("method", "body", "found"),
    [
        ("predict", "return np.full(users.size, np.nan)", "predictions that are NaN or infinite"),
        ("predict", "return np.ones(users.size + 1)", "Wrong: predictions of shape"),
        ("predict", "return 1 / 0", "Wrong: ZeroDivisionError: division by zero"),
        ("fit", "return None", "OwnCompletion: its fit returned NoneType"),
        ("fit", DAMAGED, "predictions that are NaN or infinite"),
        ("channel", "return None", "OwnMechanism: its channel is a value of type NoneType"),
        ("channel", "return Lying(good.weights, good.inputs, good.values)", "a value of type Lying"),
        ("channel", "return Channel(good.weights[:2], good.inputs[:2], good.values)", "inputs [1.0, 2.0]"),
        ("channel", "return Channel(good.weights // 2, good.inputs, good.values)", "rows that are no dist"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    own: Callable[..., Any], method: str, body: str, found: str
) -> None:
    with pytest.raises(InputError) as caught:
        own(**{method: body})
    assert found in str(caught.value)
    assert "\n" not in str(caught.value)


CHANGING = """
from dprec.mechanisms import Mechanism, RandomizedResponse

class Own(RandomizedResponse):
    def channel(self, scale, epsilon):
        return super().channel(scale, {share} * epsilon)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that writes a module with a mechanism that spends a share of its budget."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def written(share: float) -> None:
        (tmp_path / "own_changing.py").write_text(CHANGING.format(share=share))
        sys.modules.pop("own_changing", None)
        importlib.invalidate_caches()

    return written


def test_a_run_does_not_go_on_with_other_code(
    tmp_path: Path, tiny: dict[str, Any], write: Callable[[float], None]
) -> None:
    tiny["simulation"] = {"backend": "local"}
    tiny["protocol"]["mechanism"] = {"kind": "own_changing:Own"}
    write(0.5)
    first = run(tiny, tmp_path / "run", page=False)
    config = load(tmp_path / "run" / "config.yaml")
    assert config == load(tiny)
    again = run(tiny, tmp_path / "run", resume=True, page=False)
    assert again.summary["accuracy"] == first.summary["accuracy"]
    write(0.25)
    assert load(tiny).sources != config.sources
    with refused_at("config.yaml: sources.own_changing:Own"):
        run(tiny, tmp_path / "run", resume=True, page=False)
    other = run(tmp_path / "run" / "config.yaml", tmp_path / "other", page=False)
    assert other.summary["accuracy"] != first.summary["accuracy"]


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
def few(ratings): return 0.0
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
    (row,) = compare(config, tmp_path / "mine", page=False).rows
    assert row["scores_reach"] == 1.0
    assert {"errors_bias", "scores_spread"} <= {*row}
    source.write_text(SOURCE + "# changed\n")
    with refused_at("comparison.yaml: sources.measures_of_mine:bias"):
        compare(config, tmp_path / "mine", resume=True)


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        (
            ["measures_of_mine:nan"],
            "evaluation.errors: measures_of_mine:nan: it returned nan; accepted: a fun",
        ),
        (["measures_of_mine:text"], "measures_of_mine:text: it returned a str; accepted: .* a finite number"),
        (["measures_of_mine:few"], r"measures_of_mine:few: TypeError: few\(\) takes 1 positional"),
        (["measures_of_mine:absent"], "evaluation.errors: no function absent in measures_of_mine"),
        (["measures_of_mine:value"], "evaluation.errors: no function value in measures_of_mine"),
        (["no_such_module:bias"], "evaluation.errors: no module 'no_such_module'"),
        (["bias"], "evaluation.errors: .*'bias'.*; accepted: module:function"),
        (["__main__:bias"], "evaluation.errors: '__main__:bias', a function of a notebook or script"),
        (["measures_of_mine:bias", "measures_of_mine:Sub.bias"], "evaluation.errors: two functions named"),
    ],
)
def test_what_is_no_metric_is_refused_before_anything_runs(
    errors: list[Any], message: str, tiny: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run(tiny | {"evaluation": {"errors": errors}}, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
