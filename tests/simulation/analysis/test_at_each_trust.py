"""Which protocol is named at each trust and budget, and what is said of less trust."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.analysis.answer import TrustAnswer, at_each_trust, by_trust
from simulation.analysis.columns import trust_columns
from simulation.analysis.protocol_results import ProtocolResult, results_of
from simulation.analysis.vocabulary import METRICS

RMSE, MAE = METRICS[0], METRICS[3]


def lines(name: str, budget: float | None, trust: str, *rmse: float, **changes: Any) -> list[dict[str, Any]]:
    same = {"name": name, "epsilon": budget, "trust": trust, "status": "proved", "fold": None} | changes
    return [{**same, "seed": seed, "rmse": value} for seed, value in enumerate(rmse)]


BASELINE = lines("quiet", None, "local", 1.06, 1.06, baseline="nothing-sent")


def results(*cells: list[dict[str, Any]]) -> list[ProtocolResult]:
    return results_of([row for rows in cells for row in rows])


def answers(*cells: list[dict[str, Any]]) -> dict[tuple[str, float], TrustAnswer]:
    return {(each.trust, each.budget): each for each in at_each_trust(results(*cells), RMSE)}


def test_the_most_accurate_of_each_trust_is_held_against_nothing_sent() -> None:
    found = answers(
        BASELINE,
        lines("sums", 1.0, "secure-aggregation", 1.01, 1.02),
        lines("local", 1.0, "local", 1.10, 1.12),
        lines("weak", 1.0, "local", 1.20, 1.20),
        lines("local", 4.0, "local", 1.00, 1.00),
        lines("plain", None, "central", 0.9, 0.9, status="none"),
    )
    assert list(found) == [
        ("local", 1.0),
        ("local", 4.0),
        ("secure-aggregation", 1.0),
        ("secure-aggregation", 4.0),
    ]
    assert found["local", 1.0].best.name == "local"
    assert not found["local", 1.0].beats_nothing_sent
    assert found["local", 4.0].beats_nothing_sent
    against = found["secure-aggregation", 1.0].against
    assert against is not None
    assert against.mean == pytest.approx(0.045)


def test_a_budget_that_is_not_proved_to_be_kept_is_no_answer() -> None:
    assert answers(BASELINE, lines("claims", 1.0, "central", 0.9, status="claimed")) == {}


def test_who_needs_less_trust_and_is_as_good_is_named() -> None:
    found = answers(
        BASELINE,
        lines("local", 1.0, "local", 1.00, 1.00),
        lines("mixed", 1.0, "shuffle", 0.98, 0.98),
        lines("sums", 1.0, "secure-aggregation", 0.99, 0.99),
        lines("central", 1.0, "central", 0.97, 0.97),
        lines("sums", 4.0, "secure-aggregation", 0.99, 0.99),
    )
    less = {key: each.with_less.name if each.with_less else None for key, each in found.items()}
    assert less == {
        ("local", 1.0): None,
        ("shuffle", 1.0): None,
        ("secure-aggregation", 1.0): "mixed",
        ("secure-aggregation", 4.0): "mixed",
        ("central", 1.0): None,
        ("central", 4.0): None,
        ("local", 4.0): None,
        ("shuffle", 4.0): None,
    }


def test_who_shows_the_rated_items_is_not_compared_with_who_hides_them() -> None:
    hidden, seen = {"hides_rated_items": "True"}, {"hides_rated_items": "False"}
    every = at_each_trust(
        results(
            BASELINE,
            lines("values", 1.0, "local", 0.9, 0.9, **seen),
            lines("profile", 1.0, "local", 1.0, 1.0, **hidden),
            lines("sums", 1.0, "secure-aggregation", 0.95, 0.95, **hidden),
            lines("more", 1.0, "secure-aggregation", 0.92, 0.92, **seen),
        ),
        RMSE,
    )
    assert [(each.hides, each.trust, each.best.name) for each in every] == [
        (True, "local", "profile"),
        (True, "secure-aggregation", "sums"),
        (False, "local", "values"),
        (False, "secure-aggregation", "more"),
    ]
    assert [each.with_less.name if each.with_less else None for each in every] == [None, None, None, "values"]


def test_what_loses_less_than_it_was_asked_to_competes_at_lower_budgets() -> None:
    def composed(epsilon: float) -> dict[str, float]:
        return {"epsilon_composed_max": epsilon, "delta": 1e-6}

    every = results(
        lines("local", 1.0, "local", 1.02, **composed(1.0)),
        lines("local", 4.0, "local", 1.01, **composed(4.0)),
        lines("mixed", 3.0, "shuffle", 0.98, **composed(0.9)),
        lines("mixed", 4.0, "shuffle", 0.99, **composed(3.0)),
    )

    def best(delta: float | None) -> list[tuple[str, float, float | None]]:
        found = at_each_trust(every, RMSE, budgets=[1.0, 4.0], delta=delta)
        return [(each.trust, each.budget, each.best.budget) for each in found]

    local = [("local", 1.0, 1.0), ("local", 4.0, 4.0)]
    assert best(1e-6) == [*local, ("shuffle", 1.0, 3.0), ("shuffle", 4.0, 3.0)]
    assert best(None) == best(1e-7) == [*local, ("shuffle", 4.0, 3.0)]


def test_without_the_baseline_nothing_is_said_to_beat_it() -> None:
    (only,) = answers(lines("local", 1.0, "local", 1.00, 1.00)).values()
    assert (only.against, only.beats_nothing_sent) == (None, False)


def test_results_are_in_the_order_of_trust_with_the_baselines_last() -> None:
    plain = lines("plain", None, "central", 0.9, status="none")
    cells = [BASELINE, plain, lines("central", 1.0, "central", 1.0), lines("local", 1.0, "local", 1.0)]
    assert [each.name for each in by_trust(results(*cells))] == ["local", "central", "plain", "quiet"]


def test_the_most_trusting_run_counts_and_old_tables_have_one_column() -> None:
    both = lines("a", 1.0, "local", 1.0) + lines("a", 1.0, "secure-aggregation", 1.0)
    (mixed,) = results(both)
    assert mixed.trust == "secure-aggregation"
    old = [{"name": "b", "epsilon": 1.0, "trusts_server": flag} for flag in ("True", "False")]
    assert [ProtocolResult("b", 1.0, (row,)).trust for row in old] == ["central", "local"]
    assert trust_columns([mixed]) == []
    (column,) = trust_columns(results(both, lines("c", 1.0, "central", 1.0)))
    assert [column.text(each) for each in results(both, BASELINE)] == ["secure-aggregation", "local"]
