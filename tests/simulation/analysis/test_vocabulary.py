"""Metrics, averages, and the words and numbers that every table, page and advice share."""

import math
from typing import Any

import pytest

from simulation.analysis.columns import (
    LOSSES,
    STATUS,
    every_column,
    losses_of,
    spread_column,
)
from simulation.analysis.protocol_results import ProtocolResult, metrics_of
from simulation.analysis.vocabulary import (
    METRICS,
    average,
    loss,
    number,
    size,
    with_spread,
)


def test_seeds_and_folds_are_distinguished() -> None:
    rows = [
        {"name": "blp", "epsilon": 1.0, "fold": fold, "seed": seed, "rmse": 1.0 + far + 0.1 * seed}
        for fold, far in (("u1", 0.0), ("u2", 0.4))
        for seed in (1, 2, 3)
    ]
    both, one_seed = ProtocolResult("blp", 1.0, tuple(rows)), ProtocolResult("blp", 1.0, tuple(rows[::3]))
    # A sample's deviation: 0.1 of (0.1, 0.2, 0.3), and 0.4 / sqrt(2) of two folds 0.4 apart.
    average = both.average("rmse")
    assert average is not None
    assert average.seeds == (pytest.approx(0.1), 3)
    assert average.folds == (pytest.approx(0.4 / 2**0.5), 2)
    column = spread_column(METRICS[0], [both])
    assert column.text(both) == "1.4000 ± 0.1000 ± 0.2828"
    assert column.unit == "± standard deviation over 3 seeds, then over 2 folds"
    assert spread_column(METRICS[0], [one_seed]).unit == "± standard deviation over 2 folds"
    assert spread_column(METRICS[0], [one_seed]).text(one_seed) == "1.3000 ± 0.2828"


def test_a_deviation_of_nothing_is_not_written() -> None:
    means = {
        spread: with_spread(
            average([{"seed": seed, "rmse": 1 + spread * seed} for seed in (1, 2)], "rmse"), 4
        )
        for spread in (0.0, 0.00001, 0.1)
    }
    assert means == {0.0: "1.0000", 0.00001: "1.0000 ± 0.0000", 0.1: "1.1500 ± 0.0707"}


def test_a_claimed_loss_stands_beside_what_is_proved_and_the_weakest_run_decides() -> None:
    rows = tuple(
        {
            "status": status,
            "epsilon_per_rating": proved,
            "epsilon_per_user_max": None,
            "epsilon_claimed_per_rating": 1.0,
            "epsilon_claimed_per_user": claimed,
        }
        for status, proved, claimed in (("proved", 864.0, 90.0), ("claimed", 900.0, 2500.0))
    )
    result = ProtocolResult("output", 1.0, rows)
    texts = [column.text(result) for column in (STATUS, *LOSSES)]
    assert texts == ["claimed", "900 (claimed 1)", "– (claimed 2,500), same items"]
    assert LOSSES[0].value(result) == 900
    assert result.falls_short
    assert not ProtocolResult("output", 1.0, rows[:1]).falls_short


def test_of_lists_a_loss_is_of_an_item() -> None:
    rated = ProtocolResult("stars", 1.0, ({"epsilon_per_rating": 1.0, "rmse": 0.9},))
    listing = ProtocolResult("sets", 1.0, ({"epsilon_per_rating": 1.0, "ndcg_at_10": 0.3},))
    assert [losses_of([each])[0].title for each in (rated, listing)] == ["ε per rating", "ε per item"]
    assert losses_of([rated, listing])[0].title == "ε per rating"
    lists, stars = (
        [each.title for each in every_column(metrics_of([own])[0], [own])] for own in (listing, rated)
    )
    assert "ε per item" in lists
    assert "ε per rating" not in lists
    assert "ε per rating" in stars


def test_what_is_written_of_a_value() -> None:
    written = {None: "–", 0.0: "0.000", 0.0005: "0.001", 0.00049: "0.00049", -1e-5: "-1e-05"}
    assert {value: number(value, 3) for value in written} == written
    assert [loss(value) for value in (None, 0.5, 999.96, 12_345.6)] == ["–", "0.5", "1000", "12,346"]
    assert [size(value) for value in (0, 1234, 6.8e7, 4e12)] == ["0 B", "1.23 kB", "68 MB", "4 TB"]


def rows(*values: Any) -> list[dict[str, Any]]:
    return [{"seed": seed, "fold": None, "rmse": value} for seed, value in enumerate(values)]


def test_the_deviation_is_that_of_a_sample() -> None:
    found = average(rows(1.0, "3", None, "", math.inf), "rmse")
    assert (found.mean, found.seeds, found.folds) == (2.0, (math.sqrt(2), 2), None)
    assert found.deviation == math.sqrt(2)
