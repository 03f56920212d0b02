"""dprec advise: the best within limits, what the next better costs, and clear refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation.analysis.advice import Limits, advice_lines, advise, privacy_unit
from simulation.storage.tables import csv_of_rows


def line(
    name: str, epsilon: float | None, rmse: float, *, up: float = 300.0, **changes: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "epsilon": epsilon,
        "fold": None,
        "seed": 1,
        "rmse": rmse,
        "status": "none" if epsilon is None else "proved",
        "epsilon_per_rating": epsilon,
        "epsilon_per_user_max": None if epsilon is None else 100 * epsilon,
        "trusts_server": epsilon is None,
        "hides_rated_items": False,
        "rounds": 1,
        "uplink_message_mean_per_user": up,
        "downlink_message_mean_per_user": 100.0,
        **changes,
    }


ROWS = [
    line("plain", None, 0.9),
    line("cheap", 1.0, 1.2),
    line("cheap", 3.0, 1.0),
    line("dear", 1.0, 1.1, up=5000.0),
    line("whole", 2.0, 1.3, hides_rated_items=True, epsilon_per_user_max=2.0),
]

Table = Callable[..., Path]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    def write(rows: list[dict[str, Any]] = ROWS) -> Path:
        (tmp_path / "comparison.csv").write_text("".join(csv_of_rows(rows)))
        return tmp_path

    return write


def test_what_predicts_other_ratings_is_not_weighed(table: Table) -> None:
    rows = [line("stars", 1.0, 1.2, dataset="stars"), line("genres", 1.0, 0.8, dataset="genres")]
    assert advise(table(rows), Limits(1.0, "rating", 1000)).best.setting.name == "stars"


def test_best_within_the_limits_and_the_price_of_the_next(table: Table) -> None:
    advice = advise(table(), Limits(1.0, "rating", 1000))
    assert (advice.best.setting.name, advice.best.epsilon) == ("cheap", 1.0)
    assert advice.for_epsilon is not None
    assert (advice.for_epsilon.setting.name, advice.for_epsilon.epsilon) == ("cheap", 3.0)
    assert advice.for_bytes is not None
    assert (advice.for_bytes.setting.name, advice.for_bytes.bytes_per_user) == ("dear", 5100.0)
    assert advice.for_both is None
    words = "\n".join(advice_lines(advice))
    assert "costs 2 more ε" in words
    assert "costs 4,100 more bytes" in words


def test_beyond_every_budget_lies_giving_up_privacy(table: Table) -> None:
    advice = advise(table(), Limits(3.0, "rating", 10_000))
    assert advice.for_epsilon is not None
    assert advice.for_epsilon.setting.name == "plain"
    assert "giving up privacy" in "\n".join(advice_lines(advice))


def test_only_beyond_both_limits(table: Table) -> None:
    rows = [line("a", 1.0, 1.2), line("b", 2.0, 1.0, up=9000.0)]
    advice = advise(table(rows), Limits(1.0, "rating", 500))
    assert (advice.for_epsilon, advice.for_bytes) == (None, None)
    assert advice.for_both is not None
    assert advice.for_both.setting.name == "b"


def test_nothing_is_better_than_the_best(table: Table) -> None:
    advice = advise(table([line("a", 1.0, 1.2)]), Limits(1.0, "rating", 500))
    assert advice_lines(advice)[-1] == "nothing in this comparison is more accurate"


def test_units_are_told_apart(table: Table) -> None:
    assert advise(table(), Limits(2.0, "user", 1000)).best.setting.name == "whole"


def test_conditions_leave_protocols_out(table: Table) -> None:
    assert advise(table(), Limits(9.0, "rating", 9e9, hide_items=True)).best.setting.name == "whole"
    advice = advise(table(), Limits(9.0, "rating", 9e9, untrusted=True))
    assert advice.for_epsilon is None


def test_an_epsilon_above_its_promise_by_rounding_is_within(table: Table) -> None:
    rows = [line("a", 1.0, 1.2, epsilon_per_rating=1.0000000000000284)]
    assert advise(table(rows), Limits(1.0, "rating", 500)).best.setting.name == "a"


def test_the_largest_loss_of_any_run_counts(table: Table) -> None:
    rows = [line("a", 1.0, 1.2), line("a", 1.0, 1.2, seed=2, epsilon_per_rating=1.5), line("b", 1.0, 1.4)]
    assert advise(table(rows), Limits(1.0, "rating", 500)).best.setting.name == "b"


def test_higher_is_better_where_it_is(table: Table) -> None:
    rows = [line("a", 1.0, 1.2, f_score_at_k=0.5), line("b", 1.0, 1.1, f_score_at_k=0.4)]
    assert advise(table(rows), Limits(1.0, "rating", 500), "f_score_at_k").best.setting.name == "a"
    with pytest.raises(InputError, match="--measure: 'sign_accuracy'; accepted: rmse, f_score_at_k"):
        advise(table(rows), Limits(1.0, "rating", 500), "sign_accuracy")


@pytest.mark.parametrize(
    ("limits", "least"),
    [
        (Limits(0.5, "rating", 1000), r"with these bytes, ε from 1 \(cheap\)"),
        (Limits(1.0, "rating", 100), r"with this ε, bytes from 400 \(cheap\)"),
        (Limits(0.5, "rating", 100), r"ε from 1 and 400 bytes \(cheap\)"),
    ],
)
def test_nothing_within_the_limits_says_what_the_least_would_be(
    table: Table, limits: Limits, least: str
) -> None:
    with pytest.raises(InputError, match=f"nothing within ε.*{least}"):
        advise(table(), limits)


def test_nothing_private_at_all(table: Table) -> None:
    with pytest.raises(InputError, match="a comparison with such a protocol"):
        advise(table([ROWS[0]]), Limits(1.0, "rating", 500))


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_limits_are_numbers_above_zero(value: float) -> None:
    with pytest.raises(InputError, match="--epsilon"):
        Limits(value, "rating", 100)
    with pytest.raises(InputError, match="--max-bytes"):
        Limits(1.0, "rating", value)


def test_unknown_unit() -> None:
    with pytest.raises(InputError, match="--per: 'cell'; accepted: rating or user"):
        privacy_unit("cell")


def test_foreign_directories(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match=r"no comparison.csv; accepted: a directory"):
            advise(directory, Limits(1.0, "rating", 100))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n1,2\n", "no column name"),
        ("".join(csv_of_rows([{**ROWS[1], "rmse": "often"}])), "line 2: rmse: 'often'"),
        ("".join(csv_of_rows([{**ROWS[1], "epsilon": -1}])), "line 2: epsilon: '-1'"),
        ("".join(csv_of_rows(ROWS[:1])) + "short,row\n", "line 3: 2 cells; accepted: [0-9]+, one per column"),
        ("".join(csv_of_rows(ROWS[:1])).splitlines()[0] + "\n", "no lines"),
        ("\x00\xff", "comparison.csv"),
    ],
)
def test_damaged_tables(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "comparison.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=complaint):
        advise(tmp_path, Limits(1.0, "rating", 100))


def test_exit_codes(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    from simulation.console.command_line import main

    found = str(table())
    for arguments, code in (
        (["advise", found, "--epsilon", "1", "--max-bytes", "1e3"], 0),
        (["advise", found, "--epsilon", "nan", "--max-bytes", "1e3"], 2),
        (["advise", found, "--epsilon", "0.1", "--max-bytes", "1e3"], 2),
        (["advise", found, "--epsilon", "1", "--max-bytes", "1e3", "--per", "cell"], 2),
        (["advise", found], 2),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
        assert len(capsys.readouterr().err.splitlines()) == (code != 0)
