"""The verbs "compare" and "plot" from Python, and what is said where they are held wrongly."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulation
from dprec.datasets import Synthetic
from dprec.errors import InputError
from simulation import compare, plot, run

RATINGS = Synthetic(users=30, items=20, ratings=400).load()
CONFIG: dict[str, Any] = {
    "name": "mine",
    "dataset": {"kind": "synthetic"},
    "split": {"kind": "holdout"},
    "simulation": {"backend": "local"},
    "epsilons": [1.0, 2.0],
    "protocols": ["blp-mf"],
    "baselines": False,
}


def test_a_comparison_without_a_directory_lives_as_long_as_its_result() -> None:
    result = compare(CONFIG, dataset=RATINGS)
    folder = result.directory
    assert (folder / "comparison.csv").is_file()
    assert not (folder / "report.html").exists()
    (axes,) = plot(result).axes
    (line,) = [line for line in axes.lines if len(line.get_xdata()) == 2 and np.ptp(line.get_xdata()) > 0]  # type: ignore[arg-type]
    np.testing.assert_allclose(line.get_xdata(), [1, 2])
    np.testing.assert_allclose(line.get_ydata(), [row["rmse"] for row in result.rows])
    del result, axes, line
    gc.collect()
    assert not folder.exists()


def test_a_refused_comparison_without_a_directory_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InputError, match=r"absent\.csv: no such file"):
        compare(CONFIG | {"dataset": {"kind": "csv", "path": "absent.csv"}})
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="resume: no directory; accepted: output=DIR"):
        compare(CONFIG, resume=True)


def test_what_has_no_figure_is_refused() -> None:
    with pytest.raises(InputError, match="plot: a value of type str; accepted: a channel, or the result of"):
        plot("runs/mine")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verb", "argument", "setting"),
    [
        (run, {"epsilon": 2}, 'overrides=["protocol.privacy.epsilon=2"]'),
        (compare, {"epsilon": 2}, 'overrides=["epsilons=[2]"]'),
        (run, {"seed": 3}, 'overrides=["seed=3"]'),
    ],
)
def test_an_unknown_argument_is_answered_with_the_setting(verb: Any, argument: Any, setting: str) -> None:
    config = CONFIG if verb is compare else "blp-mf"
    with pytest.raises(TypeError) as caught:
        verb(config, dataset=RATINGS, **argument)
    assert setting in str(caught.value)
    result = verb(config, dataset=RATINGS, overrides=[*_inside(setting), "simulation.backend=local"])
    (value,) = argument.values()
    asked = result.rows[0]["epsilon"] if verb is compare else result.summary["privacy"]["epsilon_per_rating"]
    assert value in (round(asked, 9), 3)


def _inside(setting: str) -> list[str]:
    return [setting.partition('["')[2].partition('"]')[0]]


@pytest.mark.parametrize("name", simulation.__all__)
def test_the_mathematics_says_where_the_verbs_are(name: str) -> None:
    import dprec

    with pytest.raises(ImportError, match=f"use: from simulation import {name}$"):
        getattr(dprec, name)
    with pytest.raises(ImportError, match=f"use: from simulation import {name}$"):
        exec(f"from dprec import {name}")
    assert not hasattr(dprec, "zork")


def test_data_frames_without_pandas_name_what_does(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run("nothing-sent", dataset=RATINGS, simulation={"backend": "local"})
    monkeypatch.setitem(sys.modules, "pandas", None)
    for held, instead in ((made, "predictions, traffic and rounds"), (RATINGS, "to_csv or to_sparse")):
        with pytest.raises(ModuleNotFoundError, match=f"pip install pandas, or use .*{instead}"):
            held.to_pandas()


def test_the_mathematics_alone_imports_no_simulation() -> None:
    code = "import dprec, sys; assert not [name for name in sys.modules if name.startswith('simulation')]"
    subprocess.run([sys.executable, "-c", code], check=True)
