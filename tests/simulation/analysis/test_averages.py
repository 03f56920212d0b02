"""Averages over folds and seeds."""

import math
from typing import Any

import pytest

from simulation.analysis.vocabulary import Average, Spread, average


def rows(*values: Any) -> list[dict[str, Any]]:
    return [{"seed": seed, "fold": None, "rmse": value} for seed, value in enumerate(values)]


def test_the_deviation_is_that_of_a_sample() -> None:
    found = average(rows(1.0, "3", None, "", math.inf), "rmse")
    assert found == Average(2.0, 2, seeds=Spread(math.sqrt(2), 2))
    assert found.deviation == math.sqrt(2)


def test_a_single_value_does_not_deviate_and_none_has_no_average() -> None:
    found = average(rows(4), "rmse")
    assert found == Average(4.0, 1)
    assert found.deviation == 0
    assert average(rows("", None), "rmse") is None
    assert average(rows(4), "mae") is None


def test_folds_deviate_apart_from_seeds_and_show_where_there_is_one_seed() -> None:
    folds = [
        {"seed": 1, "fold": fold, "rmse": value} for fold, value in (("u1", 1.0), ("u2", 2.0), ("u3", 3.0))
    ]
    found = average(folds, "rmse")
    assert found == Average(2.0, 3, folds=Spread(1.0, 3))
    assert found.deviation == pytest.approx(1.0)
