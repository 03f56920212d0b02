"""How far results are from what is reached with nothing sent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simulation.analysis.columns import baseline_columns
from simulation.analysis.gains import Gain, gain, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult, results_of
from simulation.analysis.vocabulary import METRICS

RMSE = METRICS[0]
SIGNS = next(metric for metric in METRICS if metric.column == "sign_accuracy")

Cells = dict[tuple[Any, int], float]


def result(name: str, values: Cells, baseline: str | None = None, column: str = "rmse") -> ProtocolResult:
    rows = [
        {"name": name, "epsilon": None, "fold": fold, "seed": seed, column: value, "baseline": baseline}
        for (fold, seed), value in values.items()
    ]
    return results_of(rows)[0]


def test_differences_are_taken_on_the_same_seed() -> None:
    baseline = result("baseline", {(None, 1): 1.0, (None, 2): 2.0, (None, 3): 3.0}, "nothing-sent")
    # In another order, and with a seed that the baseline has not: only equal seeds are compared.
    other = result("other", {(None, 3): 2.8, (None, 2): 1.9, (None, 1): 1.0, (None, 9): 50.0})
    found = gain(other, baseline, RMSE)
    assert found is not None
    assert found.mean == pytest.approx(0.1)
    # Differences 0, 0.1 and 0.2: standard deviation 0.1, Student's quantile for two degrees of freedom.
    assert found.half_width == pytest.approx(4.302653 * 0.1 / math.sqrt(3))
    assert found.interval == "95 % interval over 3 seeds"
    assert not found.significantly_better


def test_seeds_of_a_fold_are_averaged_before_folds_are_counted() -> None:
    cells = {(fold, seed): 1.0 for fold in ("u1", "u2", "u3") for seed in (1, 2)}
    baseline = result("baseline", cells, "nothing-sent")
    gains = {"u1": 0.1, "u2": 0.2, "u3": 0.3}
    other = result("other", {(fold, seed): 1.0 - gains[fold] + 0.05 * (seed - 1.5) for fold, seed in cells})
    found = gain(other, baseline, RMSE)
    assert found is not None
    assert (found.pairs, found.over) == (3, "fold")
    assert found.half_width == pytest.approx(4.302653 * 0.1 / math.sqrt(3))


def test_an_interval_over_users_in_the_table_is_the_one_that_counts() -> None:
    baseline = result("baseline", {(None, 1): 1.0, (None, 2): 1.0}, "nothing-sent")
    other = result("other", {(None, 1): 0.9, (None, 2): 0.9})
    for row in other.rows:
        row |= {"against": "baseline", "rmse_gain": 0.1, "rmse_gain_low": -0.01, "rmse_gain_high": 0.21}
    found = gain(other, baseline, RMSE)
    assert found is not None
    assert (found.mean, found.low, found.high) == (pytest.approx(0.1), -0.01, 0.21)
    assert found.interval == "95 % interval over users"
    assert not found.significantly_better
    other.rows[0]["against"] = "another baseline"
    assert gain(other, baseline, RMSE).interval == "95 % interval over 2 seeds"  # type: ignore[union-attr]


def test_the_sign_says_better_whichever_way_a_metric_goes() -> None:
    for metric, better in ((RMSE, 0.9), (SIGNS, 1.1)):
        baseline = result("baseline", {(None, 1): 1.0}, "nothing-sent", metric.column)
        found = gain(result("other", {(None, 1): better}, None, metric.column), baseline, metric)
        assert found is not None
        assert found.mean == pytest.approx(0.1)
        assert (found.half_width, found.interval, found.significantly_better) == (None, "", True)


def test_runs_on_other_ratings_are_not_compared() -> None:
    baseline = result("baseline", {(None, 1): 1.0}, "nothing-sent")
    other = result("other", {(None, 1): 0.9})
    for one, test_ratings in ((baseline, 100), (other, 200)):
        one.rows[0]["test_ratings"] = test_ratings
    assert gain(other, baseline, RMSE) is None
    other.rows[0]["test_ratings"] = 100
    assert gain(other, baseline, RMSE) is not None


def test_nothing_to_compare() -> None:
    baseline = result("baseline", {(None, 1): 1.0}, "nothing-sent")
    assert gain(result("other", {(None, 2): 1.0}), baseline, RMSE) is None
    assert gain(result("other", {(None, 1): 1.0}), baseline, SIGNS) is None
    assert nothing_sent([result("mean", {(None, 1): 1.0}, "global-mean")]) is None
    assert baseline_columns(RMSE, [result("other", {(None, 1): 1.0})]) == []


@pytest.mark.parametrize(
    ("against", "text"),
    [
        (Gain(0.0612, 0.0569, 0.0655, "user", 1), "0.061 ± 0.004 better"),
        (Gain(-0.079, None, None, "seed", 1), "0.079 worse"),
        (Gain(0.0, -0.02, 0.02, "fold", 3), "0.000 ± 0.020"),
    ],
)
def test_gains_in_words(against: Gain, text: str) -> None:
    assert against.written(3) == text


def test_the_column_holds_every_result_against_nothing_sent() -> None:
    baseline = result("baseline", {(None, 1): 1.0, (None, 2): 1.0}, "nothing-sent")
    mean = result("mean", {(None, 1): 1.1, (None, 2): 1.1}, "global-mean")
    good = result("good", {(None, 1): 0.9, (None, 2): 0.9})
    (column,) = baseline_columns(RMSE, [good, baseline, mean])
    assert (column.title, column.hint) == ("against nothing sent", "RMSE, ± 95 % interval over 2 seeds")
    shown = [column.text(each) for each in (good, baseline, mean)]
    assert shown == ["0.100 ± 0.000 better", "–", "0.100 ± 0.000 worse"]
    values = [column.value(each) for each in (good, mean)]
    assert values == [pytest.approx(0.1), pytest.approx(-0.1)]
    assert column.value(baseline) is None


def test_a_baseline_is_no_reference_without_privacy() -> None:
    assert not result("baseline", {(None, 1): 1.0}, "item-average").reference
    assert result("plain", {(None, 1): 1.0}).reference


def test_the_interval_holds_as_often_as_it_says() -> None:
    draw = np.random.default_rng(3)
    baseline = result("baseline", {(None, seed): 1.0 for seed in range(4)}, "nothing-sent")
    held = 0
    for _ in range(1000):
        values = {(None, seed): 1.0 - float(draw.normal(0.1, 0.05)) for seed in range(4)}
        found = gain(result("other", values), baseline, RMSE)
        assert found is not None
        assert found.half_width is not None
        held += abs(found.mean - 0.1) <= found.half_width
    assert 0.93 <= held / 1000 <= 0.97
