"""The sentences about a comparison: each case beside what is said of it, as approved."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.analysis.protocol_results import results_of
from simulation.analysis.sentences import item_set_sentence, verdict_sentence
from simulation.analysis.vocabulary import METRICS
from tests.approved import check

Lines = list[dict[str, Any]]
RMSE = METRICS[0]


def lines(name: str, budget: float | None, *rmse: float, **changes: Any) -> Lines:
    same = {"name": name, "epsilon": budget, "fold": None, "dataset": "d", "hides_rated_items": "False"}
    return [{**same, "seed": seed, "rmse": value, **changes} for seed, value in enumerate(rmse)]


def reading(name: str, budget: float | None, *rmse: float, **changes: Any) -> Lines:
    """Lines of a protocol that reads the item sets."""
    return lines(name, budget, *rmse, completion="calibrated", **changes)


BASELINE = lines("quiet", None, 1.062, 1.062, baseline="nothing-sent")
ALONE = reading("sets-only", None, 0.95, 0.95, baseline="sets-only")
OTHER = lines("other", 1.0, 0.9, 0.9, completion="mf")
HIDDEN = reading("hidden", 1.0, 0.9, 0.9, hides_rated_items="True")
TRUSTED = reading("trusted", None, 0.9, 0.9, trusts_server="True")

VERDICTS: dict[str, list[Lines]] = {
    "none beats nothing sent": [
        BASELINE,
        lines("plain", None, 0.9, 0.9),
        *(lines("a", budget, 1.2, 1.21) for budget in (0.5, 1.0)),
        lines("b", 0.5, 1.3, 1.3),
        lines("b", 1.0, 1.141, 1.141),
    ],
    "who beats it depends on the budget": [
        BASELINE,
        *(lines("a", budget, rmse, rmse) for budget, rmse in ((1.0, 1.1), (3.0, 1.0), (8.0, 0.9))),
        *(lines("b", budget, rmse, rmse) for budget, rmse in ((1.0, 1.2), (3.0, 1.1), (8.0, 0.9))),
    ],
    "better by less than its uncertainty": [BASELINE, lines("a", 1.0, 1.05, 1.06)],
    "one run each": [BASELINE[:1], lines("a", 1.0, 1.0)],
    "no gain even without privacy": [BASELINE, lines("a", 1.0, 1.0, 1.0), lines("plain", None, 1.1, 1.1)],
    "no privacy at all": [BASELINE, lines("plain", None, 1.0, 1.0)],
    "another baseline is no protocol": [
        BASELINE,
        lines("a", 1.0, 1.1, 1.1),
        lines("mean", None, 1.2, 1.2, baseline="global-mean"),
    ],
    "without the baseline": [lines("a", 1.0, 1.0), lines("mean", None, 1.1, baseline="global-mean")],
}

SETS: dict[str, list[Lines]] = {
    "the best reader of each budget": [
        BASELINE,
        ALONE,
        reading("a", 1.0, 0.92, 0.92),
        reading("b", 1.0, 0.93, 0.93),
        reading("b", 0.1, 0.96, 0.96),
        OTHER,
    ],
    "nothing reads the set": [ALONE, OTHER],
    "neither the baseline nor a reader": [BASELINE, OTHER],
    "without the baseline": [
        *(BASELINE, reading("a", 1.0, 0.92), reading("a", 3.0, 0.91), reading("b", 1.0, 0.93)),
    ],
}


@pytest.mark.parametrize(
    ("name", "say", "cases"),
    [
        ("verdicts", verdict_sentence, VERDICTS),
        ("item-sets", item_set_sentence, SETS),
    ],
)
def test_every_case_is_told_as_approved(name: str, say: Any, cases: dict[str, list[Lines]]) -> None:
    said = {
        case: say(results_of([row for each in rows for row in each]), RMSE, "rating")
        for case, rows in cases.items()
    }
    check(f"sentences-{name}", "\n".join(f"{case}: {words}" for case, words in said.items()))


def test_hidden_sets_and_trusted_servers_read_no_item_set() -> None:
    assert item_set_sentence(results_of([*HIDDEN, *TRUSTED]), RMSE, "rating") is None
    alone = item_set_sentence(results_of(ALONE), RMSE, "rating")
    assert alone
    assert item_set_sentence(results_of([*ALONE, *HIDDEN, *TRUSTED]), RMSE, "rating") == alone
