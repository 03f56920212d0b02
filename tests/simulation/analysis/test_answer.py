"""The answer of a comparison and its grid: who is named for what is protected and whom one trusts."""

from typing import Any

import pytest

from simulation.analysis.answer import answer_to, becomes_right
from simulation.analysis.decision import GridCell, Limits, decision_grid
from simulation.analysis.protocol_results import ProtocolResult, results_of
from simulation.analysis.vocabulary import METRICS
from tests.approved import check

RMSE = METRICS[0]
BASE = 1.06

Lines = list[dict[str, Any]]


def lines(name: str, budget: float | None, trust: str, *rmse: float, **changes: Any) -> Lines:
    """Return made-up lines of comparison.csv, a seed for each figure, with an interval of ± 0.02."""
    same = {
        "name": name, "epsilon": budget, "fold": None, "dataset": "made-up", "items": 9, "baseline": None,
        "trust": trust, "status": "none" if budget is None else "proved", "hides_rated_items": False,
        "epsilon_per_rating": budget, "epsilon_per_user_max": None if budget is None else 600 * budget,
        "epsilon_composed_max": None, "delta": 1e-6, "against": "quiet", "rmse_gain_low": None,
        "uplink_message_mean_per_user": 412, "downlink_message_mean_per_user": 24_000,
        "uplink_network_mean_per_user": 21_700, "downlink_network_mean_per_user": 30_000,
        "rmse_gain_high": None, "protocol": "one-shot", "mechanism": "optimal", "completion": "calibrated",
    }  # fmt: skip
    if rmse:
        gained = BASE - sum(rmse) / len(rmse)
        same |= {"rmse_gain_low": gained - 0.02, "rmse_gain_high": gained + 0.02}
    return [{**same, "seed": seed, "rmse": value, **changes} for seed, value in enumerate(rmse)]


def baseline(name: str, *rmse: float) -> Lines:
    losses = {"status": "proved", "epsilon_per_rating": 0.0, "epsilon_per_user_max": 0.0}
    return lines("quiet" if name == "nothing-sent" else name, None, "local", *rmse, baseline=name, **losses)


def whole(name: str, budget: float, trust: str, *rmse: float, **changes: Any) -> Lines:
    """Return lines of a protocol that protects whole profiles."""
    kept = {"hides_rated_items": True, "epsilon_per_user_max": budget}
    return lines(name, budget, trust, *rmse, **kept | changes)


QUIET = baseline("nothing-sent", BASE, BASE)


def results(*cells: Lines) -> list[ProtocolResult]:
    return results_of([row for rows in cells for row in rows])


Best = dict[tuple[bool, str, float], tuple[str, float | None] | None]


def grid(*cells: Lines, unit: Any = "user", delta: float | None = None, **options: Any) -> list[GridCell]:
    return decision_grid(results(*cells), RMSE, unit, delta, **options)


def best(*cells: Lines, **options: Any) -> Best:
    """Return who is named in every cell, and the budget at which it ran."""
    return {
        (each.hides, each.trust, each.epsilon): each.best and (each.best.name, each.best.budget)
        for each in grid(*cells, **options)
    }


def test_what_is_protected_and_whom_one_trusts_is_never_mixed() -> None:
    found = best(
        QUIET,
        whole("profile", 1.0, "local", 1.0, 1.0),
        whole("sums", 4.0, "secure-aggregation", 0.95, 0.95),
        lines("values", 1.0, "local", 0.8, 0.8, epsilon_per_user_max=1.0),
        lines("rating", 1.0, "local", 0.7, 0.7),
        whole("claims", 1.0, "local", 0.5, 0.5, status="claimed"),
        whole("claims-alone", 1.0, "shuffle", 0.5, 0.5, status="claimed"),
        lines("plain", None, "central", 0.4, 0.4),
    )
    assert found == {
        (True, "local", 1.0): ("profile", 1.0),
        (True, "local", 4.0): ("profile", 1.0),
        (True, "secure-aggregation", 1.0): None,
        (True, "secure-aggregation", 4.0): ("sums", 4.0),
        (False, "local", 1.0): ("values", 1.0),
        (False, "local", 4.0): ("values", 1.0),
        (False, "secure-aggregation", 1.0): None,
        (False, "secure-aggregation", 4.0): None,
    }


NEAR = {"behind_best": 0.01, "behind_best_low": -0.01, "behind_best_high": 0.03}


def test_a_trust_that_buys_nothing_is_told() -> None:
    near = {"best_at_budget": "central", **NEAR}
    cells = grid(
        QUIET,
        whole("local", 1.0, "local", 1.0, 1.0),
        whole("mixed", 1.0, "shuffle", 1.0004, 1.0004),
        whole("sums", 1.0, "secure-aggregation", 0.98, 0.98, **near),
        whole("central", 1.0, "central", 0.97, 0.97, best_at_budget="central"),
        lines("values", 1.0, "shuffle", 0.99, 0.99, epsilon_per_user_max=1.0),
        lines("open", 1.0, "local", 0.995, 0.995, epsilon_per_user_max=1.0),
    )
    less = {(each.hides, each.trust): each.with_less and each.with_less.name for each in cells}
    assert less[True, "shuffle"] == "local"
    assert less[True, "secure-aggregation"] is None
    assert less[True, "central"] == "sums"
    assert less[False, "shuffle"] is None
    unsure = whole("unsure", 1.0, "local", 1.0, 1.0, rmse_gain_low=-0.01)
    (_, trusting) = grid(QUIET, unsure, whole("sure", 1.0, "shuffle", 1.0, 1.0))
    assert trusting.with_less is None


def test_what_was_granted_more_trust_than_it_needs_stands_for_nothing_that_is_granted_less() -> None:
    granted = whole("mixed", 1.0, "shuffle", 0.9, 0.9, needed_trust="local")
    own = results_of([*QUIET, *whole("alone", 1.0, "local", 0.9, 0.9), *granted])
    cells = decision_grid(own, RMSE, "user", 1e-6)
    assert {cell.trust: cell.with_less and cell.with_less.name for cell in cells} == {
        "local": None,
        "shuffle": "alone",
    }
    sentence = answer_to(own, RMSE, "user", 1e-6).sentences[0]
    assert "alone in the local model" in sentence


def test_where_every_trust_is_asked_for_a_cell_without_a_protocol_names_what_needs_less() -> None:
    trusts = ("local", "shuffle", "secure-aggregation", "central")
    own = QUIET, whole("sums", 1.0, "shuffle", 0.98), lines("rating", 1.0, "local", 0.9)
    cells = {(each.hides, each.trust): each for each in grid(*own, unit="rating", models=trusts)}
    assert list(cells) == [(hides, trust) for hides in (True, False) for trust in trusts]
    taken = {place: cell.best or cell.with_less for place, cell in cells.items()}
    named = {place: result and result.name for place, result in taken.items()}
    assert named == {
        (True, "local"): None,
        **{(True, trust): "sums" for trust in trusts[1:]},
        **{(False, trust): "rating" for trust in trusts},
    }


def test_what_hides_item_sets_is_named_under_its_own_trust_too_where_they_may_be_revealed() -> None:
    trusts = ("local", "secure-aggregation", "central")
    own = QUIET, whole("sums", 1.0, "secure-aggregation", 0.9), lines("rating", 1.0, "local", 0.95)
    cells = grid(*own, unit="rating", models=trusts)
    named = {each.trust: each.best or each.with_less for each in cells if not each.hides}
    assert [result and result.name for result in named.values()] == ["rating", "sums", "sums"]


def test_what_is_proved_of_a_whole_user_counts_for_a_rating_too() -> None:
    composed = {"epsilon_per_rating": None, "epsilon_per_user_max": None, "epsilon_composed_max": 1.0}
    sums = whole("sums", 1.0, "secure-aggregation", 0.9, **composed)
    assert results(sums)[0].private
    (cell,) = grid(QUIET, sums, unit="rating")
    assert (cell.best and cell.best.name, cell.delta) == ("sums", 1e-6)
    (larger,) = grid(QUIET, sums, unit="rating", epsilons=[0.5])
    assert larger.best is None


def test_trust_that_was_granted_and_is_not_needed_keeps_nothing_from_others() -> None:
    granted = whole("best", 1.0, "central", 0.9, needed_trust="local", hides_rated_items=True)
    (result,) = results(granted)
    assert (result.trust, result.needed_trust, result.server_sees) == ("central", "local", "noise only")
    assert Limits(1.0, "user", trust="local").allow(result)
    (other,) = results(whole("sums", 1.0, "central", 0.9))
    assert (other.needed_trust, other.server_sees) == ("central", "true ratings")
    assert not Limits(1.0, "user", trust="local").allow(other)


@pytest.mark.parametrize(
    ("granted", "needed", "by"),
    [
        ("local", None, ""),
        ("shuffle", None, ""),
        ("secure-aggregation", None, ""),
        ("central", None, ", by anybody but the server,"),
        ("central", "local", ""),
    ],
)
def test_who_sees_the_data_in_clear_need_not_guess(granted: str, needed: str | None, by: str) -> None:
    (result,) = results(whole("sums", 1.0, granted, 0.9, needed_trust=needed))
    assert becomes_right(1.0, result) == f"a 50 % guess{by} becomes right with at most 73 %"


CASES: dict[str, tuple[list[Lines], str]] = {
    "both units": (
        [
            QUIET, baseline("sets-only", 0.93, 0.93), lines("values", 1.0, "local", 0.9, 0.9),
            lines("a-user", 1.0, "local", 0.92, 0.92, epsilon_per_user_max=1.0),
            whole("hidden", 1.0, "local", 1.0, 1.0, epsilon_per_user_max=400.0),
        ],
        "rating",
    ),
    "none beats sending nothing": ([QUIET, lines("values", 1.0, "local", 1.05, 1.06)], "rating"),
    "trust that is worth it": (
        [QUIET, whole("local", 4.0, "local", 1.05, 1.05), whole("sums", 4.0, "secure-aggregation", 0.9, 0.9)],
        "user",
    ),
    "less trust, and popularity": (
        [
            QUIET,
            baseline("popularity", 0.97, 0.97),
            whole("local", 4.0, "local", 1.0, 1.0),
            whole("mixed", 4.0, "shuffle", 0.95, 0.95),
            whole("sums", 4.0, "central", 0.9, 0.9),
        ],
        "user",
    ),
    "nobody but the trusted protects it": (
        [QUIET, lines("sums", 4.0, "central", 0.9, hides_rated_items=True, epsilon_composed_max=4.0)],
        "user",
    ),
    "values alone": (
        [QUIET, lines("values", 4.0, "local", 0.9, 0.9, epsilon_per_user_max=4.0)],
        "user",
    ),
    "further between any two profiles": (
        [QUIET, whole("sums", 4.0, "local", 0.9, epsilon_any_two=7.9)],
        "user",
    ),
    "nothing between any two profiles": (
        [QUIET, whole("sums", 4.0, "local", 0.9, epsilon_any_two=None)],
        "user",
    ),
    "as good": (
        [
            QUIET,
            lines("a", 1.0, "local", 0.9, best_at_budget="a"),
            lines("b", 1.0, "local", 0.91, best_at_budget="a", **NEAR),
            lines("c", 1.0, "central", 0.91, best_at_budget="a", **NEAR),
        ],
        "rating",
    ),
    "a claim": ([QUIET, lines("paper", 1.0, "local", 0.8, status="claimed")], "rating"),
    "no budget": ([QUIET, lines("plain", None, "central", 0.8)], "rating"),
    "no interval": (
        [QUIET, lines("values", 1.0, "local", 0.8, rmse_gain_low=None, rmse_gain_high=None)],
        "rating",
    ),
    "no baseline": ([lines("values", 1.0, "local", 0.8)], "rating"),
    "no accuracy": ([lines("values", 1.0, "local")], "rating"),
}  # fmt: skip


def test_a_protocol_is_named_for_the_most_that_it_keeps() -> None:
    own = results(
        QUIET,
        lines("value", 1.0, "local", 0.7),
        whole("profile", 1.0, "central", 0.9),
        lines("values", 1.0, "local", 0.8, epsilon_per_user_max=1.0),
    )
    cells = answer_to(own, RMSE, "rating").cells
    named = [(cell.best and cell.best.name, cell.unit, cell.hides) for cell in cells]
    assert named == [("value", "rating", False), ("profile", "user", True), ("values", "user", False)]


def test_answers_are_told_as_approved() -> None:
    told = []
    for case, (cells, unit) in CASES.items():
        sentences = answer_to(results(*cells), RMSE, unit).sentences  # type: ignore[arg-type]
        assert len(sentences) <= 4
        told.append("\n".join([f"# {case}", *sentences]))
    check("answers", "\n".join(told))
