"""The sentence that says what the visible set of rated items gives by itself."""

from __future__ import annotations

from typing import Any

from simulation.analysis.protocol_results import by_evaluation, results_of
from simulation.analysis.sentences import item_set_sentences


def lines(name: str, budget: float | None, *rmse: float, **changes: Any) -> list[dict[str, Any]]:
    shared = {"name": name, "epsilon": budget, "fold": None, "dataset": "d", "hides_rated_items": "False"}
    return [{**shared, "seed": seed, "rmse": value, **changes} for seed, value in enumerate(rmse)]


def reading(name: str, budget: float | None, *rmse: float, **changes: Any) -> list[dict[str, Any]]:
    return lines(name, budget, *rmse, completion="calibrated", **changes)


ALONE = reading("visible", None, 0.95, 0.95, baseline="sets-only")
QUIET = lines("quiet", None, 1.062, 1.062, baseline="nothing-sent")


def sentences(*cells: list[dict[str, Any]]) -> list[str]:
    groups = by_evaluation(results_of([row for rows in cells for row in rows]))
    return list(item_set_sentences(groups, "rating").values())


def test_the_figures_are_those_of_the_rows() -> None:
    assert sentences(
        QUIET,
        ALONE,
        reading("a", 1.0, 0.92, 0.92),
        reading("b", 1.0, 0.93, 0.93),
        reading("b", 0.1, 0.96, 0.96),
        lines("other", 1.0, 0.9, 0.9, completion="mf"),
    ) == [
        "The rated items alone, without values, give RMSE 0.950 (visible), against 1.062 with nothing sent; "
        "the server sees them, and the table that devices are sent tells all users something of them; "
        "where a protocol hides which items were rated, nothing of this remains. "
        "Compared with visible, b is 0.010 ± 0.000 worse at ε = 0.1 and a is 0.030 ± 0.000 better at ε = 1 "
        "per rating."
    ]


def test_without_a_protocol_that_reads_the_set_the_baseline_speaks_for_itself() -> None:
    (sentence,) = sentences(ALONE, lines("other", 1.0, 0.9, 0.9, completion="mf"))
    assert sentence.endswith("where a protocol hides which items were rated, nothing of this remains.")
    assert sentences(QUIET, lines("other", 1.0, 0.9, 0.9, completion="mf")) == []


def test_hidden_sets_and_trusted_servers_read_no_visible_set() -> None:
    hidden = reading("hidden", 1.0, 0.9, 0.9, hides_rated_items="True")
    trusted = reading("trusted", None, 0.9, 0.9, trusts_server="True")
    assert sentences(hidden, trusted) == []
    assert "hidden is" not in sentences(ALONE, hidden, trusted)[0]


def test_without_the_baseline_no_figure_is_made_up() -> None:
    (sentence,) = sentences(QUIET, reading("a", 1.0, 0.92), reading("a", 3.0, 0.91), reading("b", 1.0, 0.93))
    assert sentence.startswith("a and b predict also from which items were rated")
    assert "baseline sets-only" in sentence
    assert not any(character.isdigit() for character in sentence)
