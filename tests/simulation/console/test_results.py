"""Tables of the terminal: what is shown of a comparison."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from simulation.analysis.columns import headline_rows
from simulation.analysis.protocol_results import results_of
from simulation.analysis.vocabulary import METRICS
from simulation.console.results import _print_rounds, comparison_answer, comparison_tables
from strategies.participation import RoundRecord
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
    assert texts(tables[1].columns[2].cells) == ["0.7000"]
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
    assert texts(stars.columns[3].cells) == ["–", "0.115 ± 0.085 worse"]
    assert not any("against" in str(column.header) for column in signs.columns)


def test_eighty_columns_show_accuracy_privacy_and_bytes_both_ways_in_the_order_of_the_page() -> None:
    network = {"uplink_network_mean_per_user": 21_700.0, "downlink_network_mean_per_user": 7_540.0}
    private = {"epsilon_per_user_max": 1779.0, "epsilon_composed_max": 1736.0, "delta": 1e-6, **network}
    claimed = {"status": "claimed", "epsilon_per_user_max": None, "epsilon_claimed_per_user": 685.0}
    rows = [
        row("quiet", 1, rmse=1.05, baseline="nothing-sent", epsilon=None, epsilon_per_user_max=0.0),
        row("best-secure-aggregation-per-user", 1, rmse=1.2, **{**private, "hides_rated_items": True}),
        *(row("one-bit", 1, rmse=1 / epsilon, epsilon=epsilon, **private) for epsilon in (0.5, 1.0)),
        row("as-published", 1, rmse=1.1, **{**private, **claimed}),
    ]
    (shown,) = comparison_tables(rows, 80, {("one-bit", 1.0)})
    assert shown.width <= 80
    headings = [" ".join(str(each.header).split()) for each in shown.table.columns]
    costs = ["ε per user", "ε composed", "network up", "network down"]
    assert headings == ["protocol", "ε asked", "RMSE", "gain", *costs]
    lines = list(zip(*(texts(each.cells) for each in shown.table.columns), strict=True))
    spent = ("1,736", "21.7 kB", "7.54 kB")
    long = "best-secure-\naggregation-per-\nuser"
    assert lines == [
        ("one-bit *", "1", "1.0000", "+0.050", "1,779\nsame items", *spent),
        ("quiet", "–", "1.0500", "–", "0\nsame items", "–", "–", "–"),
        ("as-published", "1", "1.1000", "-0.050", "–\nclaimed 685\nsame items", *spent),
        (long, "1", "1.2000", "-0.150", "1,779", *spent),
        ("one-bit", "0.5", "2.0000", "-0.950", "1,779\nsame items", *spent),
    ]
    known = "gain: over nothing sent; n.s.: not significant; ε composed: δ=1e-06; network: bytes per user"
    assert str(shown.table.caption) == f"{known}; *: named above"
    (page, _) = headline_rows(results_of(rows), METRICS[0])
    assert [line[0].replace("\n", "").strip(" *") for line in lines[:4]] == [each.name for each in page]


def test_budgets_of_several_units_are_told_apart() -> None:
    rows = [row("values", 1, rmse=0.9, per="rating"), row("profile", 1, rmse=1.0, per="user")]
    asked = [comparison_tables(rows, width)[0].table.columns[1] for width in (200, 60)]
    assert [str(column.header).split() for column in asked] == [["ε", "asked", "per", "rating"]] * 2
    assert [texts(column.cells) for column in asked] == [["1", "1 per user"], ["1", "1\nper user"]]
    same = comparison_tables(rows[1:])[0].table.columns[1]
    assert (str(same.header), texts(same.cells)) == ("ε asked", ["1"])


def test_more_room_shows_spreads_intervals_and_more_columns() -> None:
    rows = [row("blp", seed, rmse=1.1 + 0.01 * seed, trust="local") for seed in (1, 2)]
    wide, narrow = (comparison_tables(rows, width)[0] for width in (200, 60))
    assert texts(wide.table.columns[2].cells) == ["1.1150 ± 0.0071"]
    assert texts(narrow.table.columns[2].cells) == ["1.1150"]
    assert wide.left_out < narrow.left_out


def test_some_rounds_are_printed_with_what_is_known_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = [
        RoundRecord(number, 7, 2, {"rmse": 1.0}, 1, 2, 3, 4, 0.1, epsilon=0.5 * number)
        for number in range(1, 101)
    ]
    _print_rounds(rounds[:1], None, "rounds.jsonl")
    assert capsys.readouterr().out == ""
    _print_rounds(rounds, METRICS[0], "rounds.jsonl")
    heading, _, *lines = capsys.readouterr().out.split("\n")[1:-1]
    assert " ".join(heading.split()) == "round asked answered RMSE ε so far per user, largest"
    assert [line.split() for line in lines] == [
        [str(number), "9", "7", "1.0000", f"{0.5 * number:.4g}"] for number in (1, 21, 41, 60, 80, 100)
    ]


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
