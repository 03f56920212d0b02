"""Tables of the terminal: what is shown of a comparison."""

import re
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from simulation.analysis.columns import text_column
from simulation.console.results import comparison_answer, comparison_tables, print_tables
from simulation.console.terminal import fitted
from simulation.storage.column import Column
from tests.results import row as made_up


def row(name: str, seed: int, **accuracy: Any) -> dict[str, Any]:
    return {**made_up(name), "seed": seed, "items": 5, "epsilon_per_user_max": 4.0, **accuracy}


def texts(cells: Iterable[Any]) -> list[str]:
    """Return cells as plain text."""
    return [str(cell) for cell in cells]


def test_what_is_judged_otherwise_stands_in_a_table_of_its_own() -> None:
    rows = [row("stars", seed, rmse=1.0 + seed) for seed in (1, 2)]
    rows += [row("signs", seed, sign_accuracy=0.7) for seed in (1, 2)]
    rows += [row("elsewhere", 1, rmse=0.5, items=7), row("apart", 1, rmse=0.5, items=7, panel="b")]
    tables = [each.table for each in comparison_tables(rows)]
    shown = [texts(table.columns[0].cells) for table in tables]
    assert shown == [["stars"], ["signs"], ["elsewhere"], ["apart"]]
    assert str(tables[3].title) == "RMSE, 7 items, b"
    assert texts(tables[0].columns[2].cells) == ["2.5000 ± 0.7071"]
    assert texts(tables[1].columns[2].cells) == ["0.7000 ± 0.0000"]
    assert comparison_tables(rows[:2])[0].table.title is None


def test_a_comparison_with_a_baseline_holds_every_protocol_against_it() -> None:
    interval = {"against": "baseline", "rmse_gain_low": -0.2, "rmse_gain_high": -0.03}
    rows = [row("blp", seed, rmse=1.1 + 0.01 * seed, **interval) for seed in (1, 2)]
    rows += [row("baseline", seed, rmse=1.0, baseline="nothing-sent") for seed in (1, 2)]
    rows += [row("signs", seed, sign_accuracy=0.7) for seed in (1, 2)]
    stars, signs = (each.table for each in comparison_tables(rows))
    headings = [" ".join(str(column.header).split()) for column in stars.columns]
    assert headings[2:4] == [
        "RMSE ± standard deviation over 2 seeds",
        "against nothing sent RMSE, ± 95 % interval over users",
    ]
    assert texts(stars.columns[3].cells) == ["0.115 ± 0.085 worse", "–"]
    assert not any("against" in str(column.header) for column in signs.columns)


LONG = {"uplink_message_mean_per_user": 194_408.0, "downlink_message_mean_per_user": 3_413_440.0}
CLAIMED = {"mae": 0.9, "f_score_at_k": 0.5, "status": "claimed", "epsilon_claimed_per_user": 12_345.6}


def long_rows() -> list[dict[str, Any]]:
    """Return the lines of a comparison with long names and figures."""
    rows = [row("one-bit-objective-effects", seed, rmse=1.1 + seed, **CLAIMED, **LONG) for seed in (1, 2)]
    return rows + [row("nothing-sent", seed, rmse=1.0, mae=0.8, baseline="nothing-sent") for seed in (1, 2)]


def printed(width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is printed of a comparison in a width."""
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(width))
    print_tables(lambda room: comparison_tables(long_rows(), room), "comparison.csv")
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [None, 0, 10_000])
def test_where_there_is_room_nothing_is_left_out(width: int | None, monkeypatch: Any, capsys: Any) -> None:
    out = printed(width, monkeypatch, capsys)
    (table,) = comparison_tables(long_rows())
    cells = [cell for column in table.table.columns for cell in texts(column.cells)]
    assert all(cell in out for cell in cells)
    assert "left out" not in out


def _unbroken(cell: str) -> list[str]:
    return [cell] if re.search(r"\d", cell) else cell.split()


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 100, 140])
def test_columns_are_left_out_and_no_number_is_broken(width: int, monkeypatch: Any, capsys: Any) -> None:
    out = printed(width, monkeypatch, capsys)
    table = out.partition("left out")[0]
    (shown,) = comparison_tables(long_rows(), width)
    assert shown.left_out > 0
    for column in shown.table.columns[1:]:
        # Words may go on below; a figure is never broken.
        assert all(part in table for cell in texts(column.cells) for part in _unbroken(cell))
    if width >= 40:
        assert max(map(len, table.splitlines())) <= width
        assert f"{shown.left_out} of {shown.columns} columns" in " ".join(out.split())
    assert out.endswith("comparison.csv\n")


def test_the_headline_stands_first_and_more_columns_follow_where_there_is_room() -> None:
    counts = [comparison_tables(long_rows(), width)[0].left_out for width in range(40, 300, 20)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
    shown = comparison_tables(long_rows(), 86)[0].table.columns
    headings = [" ".join(str(column.header).split()) for column in shown]
    assert headings[:4] == ["protocol", "ε asked", "RMSE", "gain"]
    assert [heading.split(" per")[0] for heading in headings[4:]] == [
        *("ε", "network bytes", "server sees", "bytes up"),
    ]


def test_words_go_on_below_and_lesser_columns_are_left_out_first() -> None:
    columns: list[Column[None]] = [
        text_column("name", lambda line: "a" * 30),
        Column("lesser", text=lambda line: "1,234,567", rank=1),
        Column("figure", text=lambda line: "7,654,321"),
        replace(text_column("verdict", lambda line: "words that are many and long"), wrapped=True),
    ]
    console = Console(width=62)
    with console.capture() as captured:
        console.print(fitted(columns, [None], 62).table)
    lines = captured.get().splitlines()
    assert len(lines) == 4
    assert "7,654,321" in lines[2]
    assert "1,234,567" not in captured.get()
    assert fitted(columns, [None], 10).left_out == 3


def test_what_a_decision_needs_fits_into_80_columns_and_the_answer_is_marked() -> None:
    def private(name: str, epsilon: float, rmse: float, low: float, high: float) -> dict[str, Any]:
        ends = {"against": "quiet", "rmse_gain_low": low, "rmse_gain_high": high}
        carried = {"uplink_network_mean_per_user": 21_700.0, "downlink_network_mean_per_user": 30_500.0}
        return row(name, 1, rmse=rmse, mae=0.7, **ends, **carried) | {"epsilon": epsilon}

    rows = [
        private("user-level-bit-shuffled", 1.0, 0.9, 0.05, 0.15),
        private("user-level-bit-shuffled", 3.0, 1.0, -0.05, 0.05),
        private("summed", 1.0, 1.1, -0.15, -0.05)
        | {"epsilon_per_user_max": None, "epsilon_composed_max": 1.0},
        row("quiet", 1, rmse=1.0, mae=0.8, baseline="nothing-sent") | {"epsilon": None},
    ]
    (fits,) = comparison_tables(rows, 80, {("user-level-bit-shuffled", 1.0)})
    columns = {" ".join(str(each.header).split()): texts(each.cells) for each in fits.table.columns}
    assert list(columns)[:7] == [
        *("protocol", "ε asked", "RMSE", "gain", "ε per user", "network bytes per user", "server sees"),
    ]
    names = ["user-level-bit-shuffled *", "user-level-bit-shuffled", "summed", "quiet"]
    assert columns["protocol"] == names
    assert columns["gain"] == ["+0.100", "n.s.", "-0.100", "–"]
    assert columns["ε per user"] == ["4", "4", "1, δ", "4"]
    assert columns["network bytes per user"] == ["52,200", "52,200", "52,200", "–"]


def test_the_answer_comes_once_every_protocol_has_a_run() -> None:
    rows = [row("blp", 1, rmse=0.9, status="proved"), row("quiet", 1, rmse=1.0, baseline="nothing-sent")]
    match = SimpleNamespace(epsilon="rating", delta=None)

    def answer(*planned: str) -> tuple[list[str], set[Any]]:
        comparison = SimpleNamespace(
            config=SimpleNamespace(match=match), cells=[SimpleNamespace(protocol=name) for name in planned]
        )
        return comparison_answer(SimpleNamespace(comparison=comparison, rows=rows))  # type: ignore[arg-type]

    assert answer("blp", "blp", "quiet", "late") == (
        ["No answer yet: 2 of 3 protocols have a run."],
        set(),
    )
    said, marked = answer("blp", "quiet")
    assert said[0].startswith("ε = 1 for the value of one rating: blp in the local model, RMSE 0.900, ")
    assert marked == {("blp", 1.0)}
