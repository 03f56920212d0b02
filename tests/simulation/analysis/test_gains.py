"""How far results are from what is reached with nothing sent."""

from typing import Any

import pytest

from simulation.analysis.gains import (
    Gain,
    gain,
    nothing_sent,
    plain_nothing_sent,
    same_figures,
    to_beat,
)
from simulation.analysis.protocol_results import ProtocolResult, results_of
from simulation.analysis.vocabulary import METRICS

RMSE = METRICS[0]

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
    # Runs alone say nothing of the uncertainty, however many.
    assert (found.low, found.high, found.significant, found.interval) == (None, None, False, "")
    assert found.better


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
    assert gain(other, baseline, RMSE).low is None  # type: ignore[union-attr]


def test_runs_on_other_ratings_are_not_compared() -> None:
    baseline = result("baseline", {(None, 1): 1.0}, "nothing-sent")
    other = result("other", {(None, 1): 0.9})
    for one, test_ratings in ((baseline, 100), (other, 200)):
        one.rows[0]["test_ratings"] = test_ratings
    assert gain(other, baseline, RMSE) is None
    other.rows[0]["test_ratings"] = 100
    assert gain(other, baseline, RMSE) is not None


def test_the_strongest_form_of_a_baseline_is_what_others_are_held_against() -> None:
    plain = result("plain", {(None, 1): 1.06}, "nothing-sent")
    knowing = result("knowing", {(None, 1): 1.02}, "nothing-sent")
    knowing.rows[0]["public_items"] = "items"
    for both in ([plain, knowing], [knowing, plain]):
        assert nothing_sent(both) is knowing
        assert plain_nothing_sent(both) is plain
        assert to_beat(both) is knowing
    # Public data that mislead do not make a protocol look better.
    knowing.rows[0]["rmse"] = 1.1
    assert nothing_sent([knowing, plain]) is plain
    assert plain_nothing_sent([knowing, plain]) is None
    ours = result("ours", {(None, 1): 1.0})
    assert gain(ours, plain, RMSE).base == "nothing sent"  # type: ignore[union-attr]
    assert gain(ours, knowing, RMSE).base == "nothing sent, items known"  # type: ignore[union-attr]
    popular = [result(name, {(None, 1): 0.9}, "popularity") for name in ("popularity", "by-content")]
    popular[1].rows[0]["rmse"] = 0.8
    assert to_beat([plain, *popular]) is popular[1]


@pytest.mark.parametrize(
    ("against", "better", "significant"),
    [
        (Gain(0.01, 0.0006, 0.02, 3), True, True),
        (Gain(0.0003, 0.0001, 0.0005, 3), False, False),
        (Gain(0.0009, 0.0004, 0.0014, 3), False, False),
        (Gain(0.0009, 0.0004, 0.0014, 4), True, True),
        (Gain(0.0003, None, None, 3), False, False),
        (Gain(0.0006, None, None, 3), True, False),
        (Gain(-0.01, -0.02, -0.0006, 3), False, True),
        (Gain(-0.01, -0.02, -0.0004, 3), False, False),
    ],
)
def test_what_does_not_show_at_the_digits_shown_does_not_count(
    against: Gain, better: bool, significant: bool
) -> None:
    assert (against.better, against.significant) == (better, significant)
    assert against.significantly_better == (better and significant)
    assert ("not significant" in against.written) == (not significant and against.low is not None)


def test_the_same_figures_at_two_budgets_come_with_the_reason() -> None:
    budgets = {("shrunk", 1.0): (1.0, 5.2), ("shrunk", 3.0): (3.0, 5.2), ("capped", 4.0): (4.0, 0.9)}
    budgets |= {("capped", 8.0): (4.0, 0.9), ("apart", 1.0): (1.0, 0.9), ("apart", 3.0): (3.0, 0.900001)}
    every = [ProtocolResult(*key, ({"epsilon_per_rating": e, "rmse": v},)) for key, (e, v) in budgets.items()]
    shrunk, capped = same_figures(every, RMSE)
    assert shrunk.startswith("shrunk: RMSE is the same to all digits at ε = 1 and 3, ")
    assert capped.endswith("at ε = 4 and 8, since as much is spent, ε = 4 per rating.")


def test_the_same_figures_of_lists_are_not_put_down_to_predicted_ratings() -> None:
    ndcg = next(metric for metric in METRICS if metric.column == "ndcg_at_10")
    rows = {budget: ({"ndcg_at_10": 0.05},) for budget in (1.0, 4.0)}
    (note,) = same_figures([ProtocolResult("popular", *each) for each in rows.items()], ndcg)
    assert "hits in the same places" in note
    assert "predictions" not in note
