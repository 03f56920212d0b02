"""The verbs from Python, on ratings that a caller holds, and what a notebook shows of their results."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array

from dprec.datasets import Dataset, Synthetic
from dprec.errors import InputError
from dprec.ratings import Ratings
from dprec.splits import Split
from simulation import compare, plot, run
from simulation.configuration.loading import load
from tests.refusals import refused_at

RATINGS = Synthetic(users=30, items=20, ratings=400).load()
FRAME = RATINGS.to_pandas()
LOCAL = {"backend": "local"}


def notes(summary: dict[str, Any]) -> str:
    return " ".join([*summary["dataset"]["notes"], *summary["privacy"]["notes"]])


def test_a_data_frame_runs_as_the_same_ratings_do_in_a_file(tmp_path: Path) -> None:
    RATINGS.to_csv(tmp_path / "mine.csv")
    held = run("blp-mf", dataset=FRAME, simulation=LOCAL)
    read = run("blp-mf", dataset={"kind": "csv", "path": str(tmp_path / "mine.csv")}, simulation=LOCAL)
    np.testing.assert_array_equal(held.predictions["prediction"], read.predictions["prediction"])
    assert held.summary["dataset"]["kind"] == "in-memory"
    assert held.config.simulation.backend == "local"
    assert held.config.simulation.workers is None
    assert "Scale: one of 1, 2, 3, 4, 5" in notes(held.summary)
    assert "To test on: 80 of 400 ratings (split: holdout test_fraction 0.2)" in notes(held.summary)


drawn = np.random.default_rng(2)
COUNTS = drawn.geometric(0.01, (12, 9)) * (drawn.random((12, 9)) < 0.8)
HAVING, HAD = COUNTS.nonzero()


@pytest.mark.parametrize(
    "held",
    [coo_array(COUNTS), pd.DataFrame({"user": HAVING, "item": HAD, "rating": COUNTS[HAVING, HAD]})],
)
def test_counts_become_pairs_by_an_override(held: Any) -> None:
    summary = run(
        "popularity", dataset=held, overrides=["dataset.positive='>= 40'"], simulation=LOCAL
    ).summary
    pairs = summary["dataset"]["train_ratings"] + summary["dataset"]["test_ratings"]
    assert pairs == np.count_nonzero(COUNTS >= 40)
    with pytest.raises(InputError, match=r'positive=">= 1" if they count plays'):
        run("popularity", dataset=held)


@pytest.mark.parametrize(
    ("where", "verb", "arguments"),
    [
        *(("config", compare, (config,)) for config in (None, 3, ["any-ratings"])),
        *(("config", verb, (name,)) for verb in (run, compare) for name in ("", "  ")),
        ("config", run, (None,)),
        *(("output", verb, ("any-ratings", 3)) for verb in (run, compare)),
    ],
)
def test_what_names_nothing_is_refused(where: str, verb: Any, arguments: tuple[Any, ...]) -> None:
    with refused_at(where):
        verb(*arguments)


def test_the_argument_that_is_meant_is_named() -> None:
    with pytest.raises(TypeError, match=r"no argument 'out'; .*; did you mean output\?$"):
        run("blp-mf", dataset=FRAME, out="here")  # type: ignore[call-arg]


class Both(Split):
    """All ratings, twice."""

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        return dataset.load(), dataset.load()


def test_a_run_refuses_a_split_of_ones_own_that_shares_ratings() -> None:
    with refused_at(f"{__name__}:Both") as refused:
        run("blp-mf", dataset=FRAME, split=Both(), simulation=LOCAL)
    assert refused.value.found.startswith("its split returned 400 of 400 test ratings in the train part too")


def test_a_train_and_a_test_part_are_kept_apart(tmp_path: Path) -> None:
    tested = np.arange(len(FRAME)) % 5 == 0
    parts: dict[str, Any] = {"dataset": FRAME[~tested], "test": FRAME[tested], "simulation": LOCAL}
    result = run("nothing-sent", tmp_path / "run", **parts, page=False)
    assert len(result.predictions["prediction"]) == tested.sum()
    assert "(split: predefined fold given)" in notes(result.summary)
    again = run("nothing-sent", tmp_path / "run", **parts, resume=True, page=False)
    np.testing.assert_array_equal(again.predictions["prediction"], result.predictions["prediction"])
    parts["dataset"] = FRAME[~tested].assign(rating=6 - FRAME[~tested]["rating"])
    with pytest.raises(InputError, match=r"config.yaml: dataset.sha256: '\w+' there and '\w+' now"):
        run("nothing-sent", tmp_path / "run", **parts, resume=True)


def test_a_written_configuration_needs_the_ratings_again(tmp_path: Path) -> None:
    frame = FRAME.assign(rating=6 - FRAME["rating"])
    run("nothing-sent", tmp_path / "run", dataset=frame, simulation=LOCAL, page=False)
    config = tmp_path / "run" / "config.yaml"
    with pytest.raises(
        InputError, match=r"400 ratings of 19 items by 30 users that were in memory; accepted: "
    ):
        run(config)
    assert run(config, dataset=frame).config.dataset == load(config).dataset


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset": "absent.csv"}, "absent.csv: no such file or folder"),
        ({"dataset": FRAME, "test": "mine.csv"}, "test: a value of type str"),
        ({"dataset": "mine.csv", "test": FRAME}, "test: a test part, beside a data set of another form"),
        ({"dataset": {"kind": "csv", "path": "x"}, "test": FRAME}, "test: a test part, beside a data set"),
        ({"test": FRAME}, "test: a test part without a train part"),
        ({"split": 3}, "split: a value of type int; accepted: a mapping"),
        ({"simulation": {"bakcend": "local"}}, "simulation.bakcend: an unknown key"),
        (
            {"dataset": FRAME, "split": {"kind": "predefined", "fold": "u1"}},
            "split.fold: 'u1', but in-memory",
        ),
        (
            {"dataset": FRAME.rename(columns={"item": "zork"})},
            r"item_column: .* is not clear; accepted: .*InMemory.of\(..., item_column=...\)",
        ),
    ],
)
def test_what_is_given_is_refused_in_one_line(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run("blp-mf", **given)


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
    axes, _ = plot(result).axes
    line = next(line for line in axes.lines if len(line.get_xdata()) == 2 and np.ptp(line.get_xdata()) > 0)  # type: ignore[arg-type]
    np.testing.assert_allclose(line.get_xdata(), [1, 2])
    np.testing.assert_allclose(line.get_ydata(), [row["rmse"] for row in result.rows])
    del result, axes, line
    gc.collect()
    assert not folder.exists()


def test_a_run_is_a_small_table_and_data_frames(tiny: dict[str, Any]) -> None:
    result = run({**tiny, "name": "a-name"})
    html = result._repr_html_()
    assert html.count("<tr>") == 2
    for words in ("a-name", "RMSE", "ε per rating", "bytes up", f"{result.summary['accuracy']['rmse']:.4f}"):
        assert words in html
    assert repr(result).splitlines()[0].split() == ["run", "a-name"]
    assert f"{result.summary['accuracy']['rmse']:.4f}" in repr(result)
    assert repr(result).splitlines()[-1].startswith("bits per value")
    frame = result.to_pandas()
    assert list(frame.columns) == ["user", "item", "rating", "prediction"]
    assert len(frame) == result.summary["dataset"]["test_ratings"]
    assert len(result.to_pandas("traffic")) == 40
    assert result.to_pandas("rounds")["round"].tolist() == [1]
    with refused_at("table"):
        result.to_pandas("nothing")  # type: ignore[arg-type]
    assert len(plot(result).axes) == len(result.plot().axes)
    assert len(plot(result.channel).axes) >= 2  # type: ignore[arg-type]
