"""The comparisons that are kept with the project, and advice from them."""

from pathlib import Path
from typing import Any

import pytest

from simulation.analysis.advice import AdviceLimits, advise
from simulation.analysis.kept import given_or_kept, kept_comparisons
from simulation.analysis.protocol_results import read_comparison
from tests.refusals import refused_at

KEPT = sorted(kept_comparisons())


@pytest.mark.parametrize("data", KEPT)
def test_the_protocol_to_take_is_the_one_that_its_table_has(data: str) -> None:
    results = read_comparison(given_or_kept(None, data)).results
    unit, delta = ("rating", None) if data == "ml-100k" else ("user", 1e-6)
    advice = advise(kept_comparisons()[data], AdviceLimits(8.0, unit, delta=delta))
    named, column = advice.best.result, advice.metric.column
    within = [
        each.mean(column) or 0.0
        for each in results
        if each.baseline is None and each.status == "proved" and advice.limits.keep(each)
    ]
    assert named.mean(column) == (min if advice.metric.lower_is_better else max)(within)
    assert named.name.startswith("best-")


def test_advice_needs_no_run(dprec: Any) -> None:
    assert (
        "best-local-per-rating at ε 1 per rating"
        in dprec("advise", "--data", "ml-100k", "--epsilon", "1").out
    )


@pytest.mark.parametrize("data", KEPT)
def test_without_a_unit_lists_are_advised_per_user(dprec: Any, data: str) -> None:
    unit = "rating" if data == "ml-100k" else "user"
    assert dprec("advise", "--data", data, "--epsilon", "4").out.startswith(f"within ε ≤ 4 per {unit}: ")


@pytest.mark.parametrize(("delta", "warned"), [("0.01", True), ("1e-6", False)])
def test_a_delta_of_more_than_one_user_is_warned_of(dprec: Any, delta: str, warned: bool) -> None:
    options = ("--data", "ml-100k", "--epsilon", "8", "--per", "user", "--delta", delta)
    assert (f"Delta = {delta} is above one in 943 users" in dprec("advise", *options).out) is warned


@pytest.mark.parametrize(
    ("directory", "data", "where"),
    [(None, None, "DIR or --data"), (Path("x"), "ml-100k", "DIR or --data"), (None, "ml-1", "--data")],
)
def test_one_comparison_is_asked_for(directory: Path | None, data: str | None, where: str) -> None:
    with refused_at(where) as refused:
        given_or_kept(directory, data)
    assert refused.value.accepted.endswith(", ".join(KEPT))


@pytest.mark.parametrize(
    ("options", "best", "said"),
    [
        ((), "best-central-per-user", "the server sees item sets"),
        (("--hide-items",), "best-secure-aggregation-per-user", "the server sees noisy sums only"),
        (("--without", "central"), "best-secure-aggregation-per-user", "the server sees noisy sums only"),
        (
            ("--hide-items", "--without", "secure-aggregation"),
            "best-shuffle-per-user",
            "the server sees noisy messages without senders",
        ),
        (
            ("--trust", "shuffle", "--without", "shuffle"),
            "best-local-per-user",
            "the server sees noise only",
        ),
    ],
)
def test_nobody_sees_what_is_to_be_hidden_and_nobody_is_needed_who_is_not_there(
    dprec: Any, options: tuple[str, ...], best: str, said: str
) -> None:
    printed = dprec("advise", "--data", "msweb", "--epsilon", "1", "--delta", "1e-6", *options).out
    told = " ".join(printed.split())
    assert f": {best} at ε 1 per user" in told
    assert said in told
