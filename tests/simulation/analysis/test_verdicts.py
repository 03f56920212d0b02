"""The sentence that says what is not better than nothing sent."""

from __future__ import annotations

from typing import Any

from simulation.analysis.protocol_results import by_evaluation, results_of
from simulation.analysis.sentences import verdict_sentences


def lines(name: str, budget: float | None, *rmse: float, **changes: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "epsilon": budget,
            "fold": None,
            "seed": seed,
            "rmse": value,
            "dataset": "d",
            **changes,
        }
        for seed, value in enumerate(rmse)
    ]


BASELINE = lines("quiet", None, 1.062, 1.062, baseline="nothing-sent")


def sentences(*cells: list[dict[str, Any]], unit: Any = "rating") -> list[str]:
    groups = by_evaluation(results_of([row for rows in cells for row in rows]))
    return list(verdict_sentences(groups, unit).values())


def test_none_beats_nothing_sent() -> None:
    assert sentences(
        BASELINE,
        lines("plain", None, 0.9, 0.9),
        *(lines("a", budget, 1.2, 1.21) for budget in (0.5, 1.0)),
        lines("b", 0.5, 1.3, 1.3),
        lines("b", 1.0, 1.141, 1.141),
    ) == [
        "At ε = 0.5 and 1 per rating, none of the 2 private protocols beats nothing sent (RMSE 1.062) by "
        "more than the uncertainty of the difference (nearest at ε = 1: b, 0.079 ± 0.000 worse)."
    ]


def test_who_beats_it_at_which_budget() -> None:
    (sentence,) = sentences(
        BASELINE,
        lines("a", 1.0, 1.1, 1.1),
        lines("b", 1.0, 1.2, 1.2),
        lines("a", 3.0, 1.0, 1.0),
        lines("b", 3.0, 1.1, 1.1),
        lines("a", 8.0, 0.9, 0.9),
        lines("b", 8.0, 0.9, 0.9),
        unit="user",
    )
    at_one, at_three, at_eight = sentence.split("; ")
    assert at_one.startswith("At ε = 1 per user, none of the 2 private protocols beats nothing sent")
    assert at_three == "at ε = 3 per user, a beats it, b does not"
    assert at_eight == "at ε = 8 per user, each of the 2 private protocols beats it."


def test_better_by_less_than_the_uncertainty_is_not_better() -> None:
    (sentence,) = sentences(BASELINE, lines("a", 1.0, 1.05, 1.06))
    assert sentence.startswith("At ε = 1 per rating, a does not beat nothing sent (RMSE 1.062) by more than")
    assert sentence.endswith("(0.007 ± 0.064 better).")


def test_one_run_each_has_no_uncertainty() -> None:
    assert sentences(BASELINE[:1], lines("a", 1.0, 1.0)) == [
        "At ε = 1 per rating, a beats nothing sent (RMSE 1.062) (one run each: the uncertainty is unknown)."
    ]


def test_what_does_not_even_gain_without_privacy_is_named() -> None:
    (sentence,) = sentences(BASELINE, lines("a", 1.0, 1.0, 1.0), lines("plain", None, 1.1, 1.1))
    assert sentence.endswith("; without privacy plain does not beat it (0.038 ± 0.000 worse).")
    (only,) = sentences(BASELINE, lines("plain", None, 1.0, 1.0))
    assert only.startswith("Without privacy plain beats nothing sent (RMSE 1.062)")


def test_a_sentence_for_each_thing_that_is_predicted_and_none_without_a_baseline() -> None:
    elsewhere = {"dataset": "genres"}
    assert len(sentences(BASELINE, lines("a", 1.0, 1.0), lines("b", 1.0, 1.0, **elsewhere))) == 1
    baseline = lines("quiet-genres", None, 1.1, baseline="nothing-sent", **elsewhere)
    found = sentences(BASELINE, lines("a", 1.0, 1.0), lines("b", 1.0, 1.0, **elsewhere), baseline)
    assert ["(RMSE 1.062)" in found[0], "(RMSE 1.100)" in found[1]] == [True, True]
    assert sentences(lines("a", 1.0, 1.0), lines("mean", None, 1.1, baseline="global-mean")) == []


def test_baselines_are_not_counted_among_protocols() -> None:
    (sentence,) = sentences(
        BASELINE, lines("a", 1.0, 1.1, 1.1), lines("mean", None, 1.2, 1.2, baseline="global-mean")
    )
    assert "mean" not in sentence
