"""Tables of the terminal: what is shown of a comparison."""

from typing import Any

from simulation.console.tables import comparison_tables, wide_console


def row(name: str, seed: int, **accuracy: Any) -> dict[str, Any]:
    return {
        "name": name,
        "epsilon": 1.0,
        "seed": seed,
        "dataset": "synthetic",
        "items": 5,
        "epsilon_per_rating": 1.0,
        "epsilon_per_user_max": 4.0,
        "uplink_message_mean_per_user": 10.0,
        "downlink_message_mean_per_user": 20.0,
        "trusts_server": False,
        "hides_rated_items": False,
        **accuracy,
    }


def test_what_is_judged_otherwise_stands_in_a_table_of_its_own() -> None:
    rows = [row("stars", seed, rmse=1.0 + seed) for seed in (1, 2)]
    rows += [row("signs", seed, sign_accuracy=0.7) for seed in (1, 2)]
    rows += [row("elsewhere", 1, rmse=0.5, items=7), row("apart", 1, rmse=0.5, items=7, panel="b")]
    tables = comparison_tables(rows)
    shown = [list(table.columns[0].cells) for table in tables]
    assert shown == [["stars"], ["signs"], ["elsewhere"], ["apart"]]
    assert tables[3].title == "RMSE, 7 items, b"
    assert list(tables[0].columns[2].cells) == ["2.5000 ± 0.7071"]
    assert list(tables[1].columns[2].cells) == ["0.7000 ± 0.0000"]
    assert comparison_tables(rows[:2])[0].title is None


def test_a_comparison_with_a_floor_holds_every_protocol_against_it() -> None:
    rows = [row("blp", seed, rmse=1.1 + 0.01 * seed) for seed in (1, 2)]
    rows += [row("floor", seed, rmse=1.0, floor="nothing-sent") for seed in (1, 2)]
    rows += [row("signs", seed, sign_accuracy=0.7) for seed in (1, 2)]
    stars, signs = comparison_tables(rows)
    headings = [" ".join(str(column.header).split()) for column in stars.columns]
    assert headings[2:4] == [
        "RMSE ± standard deviation over 2 seeds",
        "against nothing sent RMSE, ± 95 % interval over 2 seeds",
    ]
    assert list(stars.columns[3].cells) == ["0.115 ± 0.064 worse", "–"]
    assert not any("against" in str(column.header) for column in signs.columns)


def test_no_figure_of_a_comparison_is_cut_off() -> None:
    accuracy = {"mae": 0.9, "f_score_at_k": 0.5, "status": "claimed", "epsilon_claimed_per_user": 12_345.6}
    long = {"uplink_message_mean_per_user": 194_408.0, "downlink_message_mean_per_user": 3_413_440.0}
    rows = [row("one-bit-objective-effects", seed, rmse=1.1 + seed, **accuracy, **long) for seed in (1, 2)]
    rows += [row("nothing-sent", seed, rmse=1.0, mae=0.8, floor="nothing-sent") for seed in (1, 2)]
    console = wide_console()
    with console.capture() as captured:
        console.print(*comparison_tables(rows))
    assert "worse" in captured.get()
    assert "…" not in captured.get()
