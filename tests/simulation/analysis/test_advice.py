"""dprec advise: the best within limits, what the next better costs, and clear refusals."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dprec.accounting import LEAST_TRUST_FIRST
from dprec.errors import InputError
from simulation.analysis.advice import AdviceLimits, advice_lines, advise, usual_unit
from simulation.storage.files import csv_of_rows
from tests.approved import check
from tests.refusals import refused_at
from tests.results import row


def line(
    name: str, epsilon: float | None, rmse: float, *, up: float = 300.0, **changes: Any
) -> dict[str, Any]:
    worst = {"epsilon_per_user_max": epsilon and 100 * epsilon, "rounds": 1}
    return row(name, epsilon, rmse=rmse, uplink_message_mean_per_user=up, **{**worst, **changes})


ROWS = [
    line("plain", None, 0.9),
    line("cheap", 1.0, 1.2),
    line("cheap", 3.0, 1.0),
    line("dear", 1.0, 1.1, up=5000.0),
    line("whole", 2.0, 1.3, hides_rated_items=True, epsilon_per_user_max=2.0),
]

Table = Callable[..., Path]
Rows = list[dict[str, Any]]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    def write(rows: Rows = ROWS) -> Path:
        (tmp_path / "comparison.csv").write_text("".join(csv_of_rows(rows)))
        return tmp_path

    return write


def quiet(rmse: float, **changes: Any) -> dict[str, Any]:
    free = {"epsilon_per_rating": 0.0, "epsilon_per_user_max": 0.0, "downlink_message_mean_per_user": 0.0}
    kind = {"baseline": "nothing-sent", "status": "proved", "trust": "local"}
    return line("quiet", None, rmse, up=0.0, **{**free, **kind, "rounds": 0, **changes})


def repeated(rows: list[dict[str, Any]], spread: float = 0.001) -> list[dict[str, Any]]:
    """The same on three seeds, with an interval over users of twice the spread on either side."""
    base = next(row["rmse"] for row in rows if row["name"] == "quiet")
    return [
        {
            **row,
            "seed": seed,
            "rmse": row["rmse"] + (seed - 2) * spread * (row["epsilon"] is not None),
            "against": "quiet",
            "rmse_gain_low": base - row["rmse"] - 2 * spread,
            "rmse_gain_high": base - row["rmse"] + 2 * spread,
        }
        for row in rows
        for seed in (1, 2, 3)
    ]


def trusting(name: str, trust: str, budget: float, rmse: float, *, up: float = 300.0) -> dict[str, Any]:
    """A protocol whose sum of losses exceeds its budget, which it keeps by composition."""
    losses = {"epsilon_per_user_max": 5 * budget, "epsilon_composed_max": budget * 0.998, "delta": 1e-6}
    seen = {"trusts_server": trust == "central", "hides_rated_items": trust == "secure-aggregation"}
    return line(name, budget, rmse, up=up, trust=trust, **seen, **losses)


RATING = AdviceLimits(1.0, "rating", 1000)
KNOWN = {"baseline": "nothing-sent", "up": 0.0, "epsilon_per_rating": 0.0}
PLAIN, KNOWING = (
    line("plain", None, 1.06, **KNOWN),
    line("knowing", None, 1.02, public_items="items", **KNOWN),
)
OURS = line(
    *("ours", 1.0, 1.03), public_items="items", against="knowing", rmse_gain_low=-0.02, rmse_gain_high=0.0
)
ATTACKED = [
    line("open", 1.0, 1.0, recovered_level=0.6),
    line("closed", 1.0, 1.1, recovered_level=0.4),
    line("silent", 1.0, 1.2, recovered_level=None),
]
TRUSTING = [
    trusting(trust, trust, 1.0, 1.0 - place / 10)
    for place, trust in enumerate(("local", "shuffle", "secure-aggregation", "central"))
]
CLEAR = trusting("clear", "central", 1.0, 0.6) | {"hides_rated_items": True}
ONLY_COMPOSED = {"epsilon_per_user_max": None}
COMPOSED = [trusting("composed", "secure-aggregation", 1.0, 0.9), line("summed", 0.01, 1.0)]
CARRIED = [
    line("cheap", 1.0, 1.2, uplink_network_mean_per_user=21e3, downlink_network_mean_per_user=1e3),
    line("dear", 1.0, 1.1, up=5e3, uplink_network_mean_per_user=6e4, downlink_network_mean_per_user=1e3),
    line("unknown", 1.0, 1.15, up=5900.0),
]
ADVISED: dict[str, tuple[Rows, AdviceLimits, str]] = {
    "other ratings are not weighed": (
        [line("stars", 1.0, 1.2, dataset="stars"), line("genres", 1.0, 0.8, dataset="genres")],
        RATING,
        "stars",
    ),
    "a baseline that knows the items is to be beaten": ([PLAIN, KNOWING, OURS], RATING, "knowing"),
    "whichever comes first": ([KNOWING, PLAIN, OURS], RATING, "knowing"),
    "per user": (ROWS, AdviceLimits(2.0, "user", 1000), "whole"),
    "with the item set hidden": (ROWS, AdviceLimits(9.0, "rating", 9e9, hide_items=True), "whole"),
    **{
        f"at most {most} recovered": (ATTACKED, AdviceLimits(1.0, "rating", max_recovered=most), name)
        for most, name in ((1.0, "open"), (0.6, "open"), (0.5, "closed"), (0.3, "silent"))
    },
    **{
        f"trusting {most}": (TRUSTING, AdviceLimits(1.0, "user", trust=most, delta=1e-6), most)
        for most in LEAST_TRUST_FIRST
    },
    **{
        f"trusting {most} without {absent}": (
            TRUSTING,
            AdviceLimits(1.0, "user", trust=most, delta=1e-6, without=absent),
            name,
        )
        for most, absent, name in (
            ("secure-aggregation", ("shuffle",), "secure-aggregation"),
            ("secure-aggregation", ("secure-aggregation",), "shuffle"),
            ("secure-aggregation", ("secure-aggregation", "shuffle"), "local"),
            ("central", ("central",), "secure-aggregation"),
        )
    },
    **{
        f"trusting {most}, item sets hidden from the server": (
            [*TRUSTING, CLEAR],
            AdviceLimits(1.0, "user", trust=most, delta=1e-6, hide_items=True),
            "secure-aggregation",
        )
        for most in LEAST_TRUST_FIRST[2:]
    },
    **{
        f"within {within}": (CARRIED, AdviceLimits(1.0, "rating", **within), name)
        for within, name in (
            ({}, "dear"),
            ({"max_bytes": 500}, "cheap"),
            ({"max_network_bytes": 58_000}, "cheap"),
            ({"max_bytes": 6000, "max_network_bytes": 70_000}, "dear"),
            ({"max_bytes_up": 4999}, "cheap"),
            ({"max_bytes_up": 5000, "max_bytes_down": 200}, "dear"),
        )
    },
    "the cheapest of equals": (
        [line("a", 1.0, 1.0, up=5e3), line("b", 1.0, 1.0)],
        AdviceLimits(1.0, "rating"),
        "b",
    ),
    **{
        f"with a delta of {delta}": (COMPOSED, AdviceLimits(1.0, "user", 1000, delta=delta), name)
        for delta, name in ((None, "summed"), (1e-5, "composed"), (1e-7, "summed"))
    },
    "above its promise by rounding": ([line("a", 1.0, 1.2, epsilon_per_rating=1 + 3e-14)], RATING, "a"),
    "the largest loss of any run": (
        [line("a", 1.0, 1.2), line("a", 1.0, 1.2, seed=2, epsilon_per_rating=1.5), line("b", 1.0, 1.4)],
        RATING,
        "b",
    ),
    "a gain and a scale below 0": (
        [{**each, "rmse_gain": -0.1, "scale_low": -10.0} for each in ROWS],
        RATING,
        "cheap",
    ),
    "better by less than the uncertainty": (
        repeated([line("noisy", 1.0, 1.04), quiet(1.05)], 0.02),
        RATING,
        "quiet",
    ),
    "better by more": (repeated([line("noisy", 1.0, 1.04), quiet(1.05)]), RATING, "noisy"),
    "on other seeds it cannot be told": ([line("a", 1.0, 0.5, seed=7), quiet(1.05)], RATING, "quiet"),
    "a loss proved beside a claim is no proof": (
        [line("a", 1.0, 1.0, status="claimed"), line("b", 1.0, 1.2, status="none"), line("c", 1.0, 1.4)],
        RATING,
        "c",
    ),
    "a baseline competes": (
        [
            line("mean", None, 1.0, baseline="global-mean", status="proved", epsilon_per_rating=1.0),
            quiet(1.05),
        ],
        RATING,
        "mean",
    ),
}


@pytest.mark.parametrize("case", ADVISED)
def test_who_is_advised(table: Table, case: str) -> None:
    rows, limits, name = ADVISED[case]
    assert advise(table(rows), limits).best.result.name == name


def test_another_metric_may_decide_and_higher_be_better(table: Table) -> None:
    rows = [line("a", 1.0, 1.2, f_score_at_k=0.5), line("b", 1.0, 1.1, f_score_at_k=0.4)]
    assert advise(table(rows), RATING, "f_score_at_k").best.result.name == "a"


BEST = {"best_at_budget": "best"}
NEAR = {**BEST, "behind_best": 0.001, "behind_best_low": -0.01, "behind_best_high": 0.02}


def test_what_is_not_better_and_what_may_be_as_good_are_named(table: Table) -> None:
    noisy = repeated([line("noisy", 1.0, 0.99), quiet(1.05)], 0.1)[:3]
    advice = advise(table([*repeated([line("steady", 1.0, 1.0), quiet(1.05)]), *noisy]), RATING)
    assert (advice.best.result.name, [each.result.name for each in advice.not_better]) == (
        "steady",
        ["noisy"],
    )
    # One that beats nothing sent at another budget is not listed as worse.
    rows = [line("better", 1.0, 1.0), line("better", 0.5, 1.2), line("worse", 1.0, 1.2), quiet(1.05)]
    assert [each.result.name for each in advise(table(repeated(rows)), RATING).not_better] == ["worse"]
    rows = [
        line("best", 1.0, 1.0, **BEST),
        line("near", 1.0, 1.001, **NEAR),
        line("far", 1.0, 1.2, **BEST, behind_best=0.2, behind_best_low=0.1, behind_best_high=0.3),
        line("dear", 1.0, 1.001, up=5e3, **NEAR),
    ]
    assert [each.name for each in advise(table(rows), RATING).alike] == ["near"]


def test_what_trusts_less_is_told_beside_the_best(table: Table) -> None:
    limits = AdviceLimits(1.0, "user", delta=1e-6)
    assert [each.result.name for each in advise(table(TRUSTING), limits).less_trust] == [
        *LEAST_TRUST_FIRST[2::-1]
    ]
    without = replace(limits, without=("secure-aggregation",))
    assert [each.result.name for each in advise(table(TRUSTING), without).less_trust] == ["shuffle", "local"]
    assert not advise(table([TRUSTING[3], quiet(1.05)]), limits).less_trust


@pytest.mark.parametrize(
    ("where", "limits"),
    [
        *(("--epsilon", {"epsilon": value}) for value in (math.nan, math.inf, 0.0, -1.0)),
        *(("--max-bytes", {"max_bytes": value}) for value in (math.nan, 0.0)),
        ("--max-bytes-up", {"max_bytes_up": 0.0}),
        ("--max-bytes-down", {"max_bytes_down": math.nan}),
        *(("--max-network-bytes", {"max_network_bytes": value}) for value in (math.nan, -1.0)),
        *(("--max-recovered", {"max_recovered": value}) for value in (0.0, 1.1, math.nan)),
        ("--delta", {"unit": "user", "delta": 1.0}),
        ("--delta", {"delta": 0.1}),
    ],
)
def test_limits_that_cannot_be_are_refused(where: str, limits: dict[str, Any]) -> None:
    with refused_at(where):
        AdviceLimits(**{"epsilon": 1.0, "unit": "rating", **limits})


@pytest.mark.parametrize(
    ("rows", "limits", "metric", "words"),
    [
        (ROWS, AdviceLimits(0.5, "rating", 1000), None, r"with these bytes, ε from 1 \(cheap\)"),
        (ROWS, AdviceLimits(1.0, "rating", 100), None, r"with this ε, 400 B of messages \(cheap\)"),
        (ROWS, AdviceLimits(0.5, "rating", 100), None, r"ε from 1 with 400 B of messages \(cheap\)"),
        (ROWS[:1], RATING, None, "a comparison with such a protocol"),
        (COMPOSED[:1], AdviceLimits(1.0, "user"), None, "with --delta 1e-06, composed, or with"),
        (ROWS, AdviceLimits(1.0, "rating", max_recovered=0.5), None, "--max-recovered: .*without attacks"),
        (ROWS, RATING, "sign_accuracy", "--metric: 'sign_accuracy'"),
    ],
)
def test_what_cannot_be_met_says_what_could(
    table: Table, rows: Rows, limits: AdviceLimits, metric: str | None, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        advise(table(rows), limits, metric)


def test_a_comparison_in_which_a_protocol_has_no_run_gives_no_advice(table: Table) -> None:
    folder = table()
    cells = {f"{name}-eps1": {"name": name} for name in ("plain", "cheap", "dear", "whole", "late")}
    (folder / "comparison.yaml").write_text(json.dumps({"cells": cells}))
    with pytest.raises(InputError, match="no answer yet: 4 of 5 protocols have a run"):
        advise(folder, RATING)


def listed(name: str, epsilon: float | None, ndcg: float, **changes: Any) -> dict[str, Any]:
    """A protocol of lists by a sum, whose loss holds with a delta, or a baseline of lists."""
    composed = {"epsilon_composed_max": epsilon, "delta": 1e-6, "trust": "secure-aggregation"}
    sums = {"epsilon_per_user_max": None, "epsilon_per_rating": None, "hides_rated_items": True, **composed}
    own = line(name, epsilon, 0.0, **{**(sums if epsilon else {}), **changes})
    return {**{key: value for key, value in own.items() if key != "rmse"}, "ndcg_at_10": ndcg}


def random_order(**changes: Any) -> dict[str, Any]:
    own = {key: value for key, value in quiet(0.0).items() if key != "rmse"}
    return {**own, "name": "random-list", "ndcg_at_10": 0.01, "hides_rated_items": True, **changes}


def popular(ndcg: float) -> dict[str, Any]:
    clear = {"baseline": "popularity", "status": "none", "trusts_server": True, "trust": "central"}
    return listed("popularity", None, ndcg, **clear)


@pytest.mark.parametrize(
    ("rows", "unit"),
    [
        ([random_order(), listed("sums", 1.0, 0.1)], "user"),
        (ROWS, "rating"),
        ([*ROWS, listed("sums", 1.0, 0.1)], "rating"),
    ],
)
def test_lists_are_promised_to_users(table: Table, rows: Rows, unit: str) -> None:
    assert usual_unit(table(rows)) == unit


def test_no_epsilon_of_lists_is_per_rating(table: Table) -> None:
    with refused_at("--per") as caught:
        advise(table([random_order(), listed("sums", 1.0, 0.1)]), AdviceLimits(1.0, "rating"))
    assert (caught.value.found, caught.value.accepted) == (
        "rating, of lists",
        "--per user, for which lists are compared",
    )


@pytest.mark.parametrize(("width", "named"), [(0.0101, None), (0.0099, "dearer")])
def test_the_next_better_is_better_beyond_its_interval(table: Table, width: float, named: str | None) -> None:
    """At epsilon 1 nothing sent is beaten by 0.05, and by 0.06 at epsilon 4, perhaps by chance."""
    ends = {"against": "quiet", "rmse_gain_low": 0.06 - width, "rmse_gain_high": 0.06 + width}
    rows = [
        quiet(1.05),
        line("cheap", 1.0, 1.0, against="quiet", rmse_gain_low=0.04, rmse_gain_high=0.06),
        line("dearer", 4.0, 0.99, **ends),
    ]
    found = advise(table(rows), RATING)
    assert found.best.result.name == "cheap"
    assert (found.for_epsilon and found.for_epsilon.result.name) == named
    last = advice_lines(found)[-1]
    beyond = "no protocol of this comparison is more accurate, beyond chance, within either limit"
    assert (last == beyond) is (named is None)


@pytest.mark.parametrize(("low", "named"), [(-0.001, None), (0.001, "dear")])
def test_of_one_budget_the_interval_of_the_difference_counts(
    table: Table, low: float, named: str | None
) -> None:
    best = {"best_at_budget": "dear"}
    behind = {**best, "behind_best": 0.01, "behind_best_low": low, "behind_best_high": 0.02 - low}
    wide = {"against": "quiet", "rmse_gain_low": 0.0011, "rmse_gain_high": 0.1}
    rows = [quiet(1.05), line("near", 1.0, 1.01, **behind), line("dear", 1.0, 1.0, up=5e3, **best, **wide)]
    found = advise(table(rows), RATING)
    assert found.best.result.name == "near"
    assert (found.for_bytes and found.for_bytes.result.name) == named


def test_advice_is_told_as_approved(table: Table) -> None:
    claim = {"status": "claimed", "epsilon_per_rating": None, "epsilon_per_user_max": None}
    promised = {"epsilon_claimed_per_rating": 1.0, "epsilon_claimed_per_user": 50.0}
    paper = line("paper", 1.0, 0.8, **claim, **promised)
    alike = [line("best", 1.0, 1.0, **BEST), line("near", 1.0, 1.001, **NEAR)]
    limits = RATING
    cases: dict[str, tuple[list[dict[str, Any]], AdviceLimits]] = {
        "the price of the next": (ROWS, limits),
        "giving up privacy": (ROWS, AdviceLimits(3.0, "rating", 10_000)),
        "beyond both": (
            [line("a", 1.0, 1.2), line("b", 2.0, 1.0, up=9000.0)],
            AdviceLimits(1.0, "rating", 500),
        ),
        "nothing better": ([line("a", 1.0, 1.2)], limits),
        "send nothing": (repeated([*ROWS, quiet(1.05)]), AdviceLimits(1.0, "rating", 10_000)),
        "nothing else": ([*ROWS, quiet(1.5)], AdviceLimits(0.01, "user", 1, trust="local", hide_items=True)),
        "significantly better": (
            repeated([line("good", 1.0, 1.0), line("bad", 1.0, 1.3), quiet(1.05)]),
            limits,
        ),
        "one run": ([line("a", 1.0, 1.0), quiet(1.05)], limits),
        "a claim": ([line("sound", 1.0, 1.0), paper, quiet(1.05)], limits),
        "a claim that counts": (
            [line("sound", 1.0, 1.0), paper, quiet(1.05)],
            AdviceLimits(1.0, "rating", 1000, claimed=True),
        ),
        "alike": (alike, limits),
        "composed": (COMPOSED, AdviceLimits(1.0, "user", 1000)),
        "no private list": ([random_order(), popular(0.05)], AdviceLimits(1.0, "user", delta=1e-6)),
        "a list": (
            [random_order(), listed("sums", 1.0, 0.1), popular(0.05)],
            AdviceLimits(1.0, "user", delta=1e-6),
        ),
        "a delta that is too small": (
            [random_order(), listed("sums", 1.0, 0.1)],
            AdviceLimits(1.0, "user", delta=1e-8),
        ),
        "proved per user only": (
            [
                quiet(1.05),
                trusting("sums", "central", 1.0, 0.9) | {"epsilon_per_rating": None, **ONLY_COMPOSED},
            ],
            AdviceLimits(1.0, "rating"),
        ),
        "none at this budget": (
            [random_order(), listed("sums", 4.0, 0.1, epsilon_any_two=5.94)],
            AdviceLimits(1.0, "user", delta=1e-6),
        ),
        "further apart": (
            [random_order(), listed("sums", 4.0, 0.1, epsilon_any_two=5.94)],
            AdviceLimits(4.0, "user", delta=1e-6),
        ),
        "sets of items revealed": (
            [random_order(), listed("clear", 1.0, 0.1, hides_rated_items=False)],
            AdviceLimits(1.0, "user", delta=1e-6),
        ),
        "a trusted server that hides item sets from all others": (
            [CLEAR],
            AdviceLimits(1.0, "user", delta=1e-6),
        ),
        "two deltas": (
            [*COMPOSED, trusting("mixed", "shuffle", 1.0, 0.95) | {"delta": 1e-7}],
            AdviceLimits(1.0, "user", 1000),
        ),
        "with a delta": (
            [trusting("composed", "shuffle", 1.0, 0.9), quiet(1.05)],
            AdviceLimits(1.0, "user", 1000, trust="secure-aggregation", delta=1e-5),
        ),
    }
    told = [
        "\n".join([f"# {name}", *advice_lines(advise(table(rows), within))])
        for name, (rows, within) in cases.items()
    ]
    check("advice", "\n".join(told))
