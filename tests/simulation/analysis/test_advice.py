"""dprec advise: the best within limits, what the next better costs, and clear refusals."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation.analysis.advice import AdviceLimits, advice_lines, advise
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


@pytest.fixture
def table(tmp_path: Path) -> Table:
    def write(rows: list[dict[str, Any]] = ROWS) -> Path:
        (tmp_path / "comparison.csv").write_text("".join(csv_of_rows(rows)))
        return tmp_path

    return write


def test_what_predicts_other_ratings_is_not_weighed(table: Table) -> None:
    rows = [line("stars", 1.0, 1.2, dataset="stars"), line("genres", 1.0, 0.8, dataset="genres")]
    assert advise(table(rows), AdviceLimits(1.0, "rating", 1000)).best.result.name == "stars"


def test_what_beats_only_a_device_that_knows_nothing_of_the_items_is_not_advised(table: Table) -> None:
    """Decisions are held against the strongest baseline that sends nothing, whichever comes first."""
    quiet: dict[str, Any] = {"baseline": "nothing-sent", "up": 0.0, "epsilon_per_rating": 0.0}
    plain = line("plain", None, 1.06, **quiet)
    knowing = line("knowing", None, 1.02, public_items="items", **quiet)
    ends = {"against": "knowing", "rmse_gain_low": -0.02, "rmse_gain_high": 0.0}
    for rows in ([plain, knowing], [knowing, plain]):
        advice = advise(
            table([*rows, line("ours", 1.0, 1.03, public_items="items", **ends)]),
            AdviceLimits(1.0, "rating", 1000),
        )
        assert advice.best.result.name == "knowing"
        assert [each.result.name for each in advice.not_better] == ["ours"]
        said = "\n".join(advice_lines(advice))
        assert "of the protocols within these limits, none beats nothing sent, items known: ours" in said
        assert "plain" not in said


def test_units_are_distinguished(table: Table) -> None:
    assert advise(table(), AdviceLimits(2.0, "user", 1000)).best.result.name == "whole"


def test_conditions_leave_protocols_out(table: Table) -> None:
    assert advise(table(), AdviceLimits(9.0, "rating", 9e9, hide_items=True)).best.result.name == "whole"
    advice = advise(table(), AdviceLimits(9.0, "rating", 9e9, trust="secure-aggregation"))
    assert advice.for_epsilon is None


def test_what_an_attack_recovers_is_limited(table: Table) -> None:
    rows = [
        line("open", 1.0, 1.0, recovered_level=0.6),
        line("closed", 1.0, 1.1, recovered_level=0.4),
        line("silent", 1.0, 1.2, recovered_level=None),
    ]
    bests = {
        most: advise(table(rows), AdviceLimits(1.0, "rating", max_recovered=most)).best.result.name
        for most in (1.0, 0.6, 0.5, 0.3)
    }
    assert bests == {1.0: "open", 0.6: "open", 0.5: "closed", 0.3: "silent"}
    with refused_at("--max-recovered"):
        advise(table(), AdviceLimits(1.0, "rating", max_recovered=0.5))
    for value in (0.0, 1.1, math.nan):
        with refused_at("--max-recovered"):
            AdviceLimits(1.0, "rating", max_recovered=value)


def test_an_epsilon_above_its_promise_by_rounding_is_within(table: Table) -> None:
    rows = [line("a", 1.0, 1.2, epsilon_per_rating=1.0000000000000284)]
    assert advise(table(rows), AdviceLimits(1.0, "rating", 500)).best.result.name == "a"


def test_the_largest_loss_of_any_run_counts(table: Table) -> None:
    rows = [line("a", 1.0, 1.2), line("a", 1.0, 1.2, seed=2, epsilon_per_rating=1.5), line("b", 1.0, 1.4)]
    assert advise(table(rows), AdviceLimits(1.0, "rating", 500)).best.result.name == "b"


def test_higher_is_better_where_it_is(table: Table) -> None:
    rows = [line("a", 1.0, 1.2, f_score_at_k=0.5), line("b", 1.0, 1.1, f_score_at_k=0.4)]
    assert advise(table(rows), AdviceLimits(1.0, "rating", 500), "f_score_at_k").best.result.name == "a"
    with refused_at("--metric"):
        advise(table(rows), AdviceLimits(1.0, "rating", 500), "sign_accuracy")


@pytest.mark.parametrize(
    ("limits", "least"),
    [
        (AdviceLimits(0.5, "rating", 1000), r"with these bytes, ε from 1 \(cheap\)"),
        (AdviceLimits(1.0, "rating", 100), r"with this ε, 400 B of messages \(cheap\)"),
        (AdviceLimits(0.5, "rating", 100), r"ε from 1 with 400 B of messages \(cheap\)"),
    ],
)
def test_nothing_within_the_limits_says_what_the_least_would_be(
    table: Table, limits: AdviceLimits, least: str
) -> None:
    with pytest.raises(InputError, match=f"nothing within ε.*{least}"):
        advise(table(), limits)


def test_nothing_private_at_all(table: Table) -> None:
    with pytest.raises(InputError, match="a comparison with such a protocol"):
        advise(table([ROWS[0]]), AdviceLimits(1.0, "rating", 500))


@pytest.mark.parametrize("value", [math.nan, 0.0, -1.0])
def test_limits_are_numbers_above_zero(value: float) -> None:
    with refused_at("--epsilon"):
        AdviceLimits(value, "rating", 100)
    with refused_at("--max-bytes"):
        AdviceLimits(1.0, "rating", value)
    with refused_at("--max-network-bytes"):
        AdviceLimits(1.0, "rating", max_network_bytes=value)


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ({}, "dear"),
        ({"max_bytes": 500}, "cheap"),
        ({"max_network_bytes": 58_000}, "cheap"),
        ({"max_bytes": 6000, "max_network_bytes": 70_000}, "dear"),
    ],
)
def test_bytes_are_limited_as_messages_or_on_the_network_or_not_at_all(
    table: Table, limits: dict[str, float], name: str
) -> None:
    def carried(up: float) -> dict[str, float]:
        return {"uplink_network_mean_per_user": up, "downlink_network_mean_per_user": 1000.0}

    rows = [
        line("cheap", 1.0, 1.2, **carried(21_000.0)),
        line("dear", 1.0, 1.1, up=5000.0, **carried(60_000.0)),
        line("unknown", 1.0, 1.15, up=5900.0),
    ]
    advice = advise(table(rows), AdviceLimits(1.0, "rating", **limits))
    best = advice.best.result
    assert best.name == name
    carries = {"cheap": (400.0, 22_000.0), "dear": (5100.0, 61_000.0)}
    assert (best.bytes_per_user, best.network_bytes_per_user) == carries[name]
    first = advice_lines(advice)[0]
    assert first.endswith(
        {"cheap": "400 B of messages, 22 kB", "dear": "5.1 kB of messages, 61 kB"}[name] + " on the network"
    )


def test_a_comparison_in_which_a_protocol_has_no_run_gives_no_advice(table: Table) -> None:
    folder = table()
    cells = {f"{name}-eps1": {"name": name} for name in ("plain", "cheap", "dear", "whole", "late")}
    (folder / "comparison.yaml").write_text(json.dumps({"cells": cells}))
    with pytest.raises(InputError, match="no answer yet: 4 of 5 protocols have a run"):
        advise(folder, AdviceLimits(1.0, "rating", 1000))


def test_foreign_directories(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match=r"no comparison.csv; accepted: a directory"):
            advise(directory, AdviceLimits(1.0, "rating", 100))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n1,2\n", "no column name"),
        ("".join(csv_of_rows([{**ROWS[1], "rmse": "often"}])), "line 2: rmse: 'often'"),
        (
            "".join(csv_of_rows([{**ROWS[1], "name": "\x1b[31m"}])),
            "line 2: name: .*accepted: a name of characters",
        ),
        ("".join(csv_of_rows(ROWS[:1])) + "short,row\n", "line 3: 2 cells; accepted: [0-9]+, one per column"),
        ("".join(csv_of_rows(ROWS[:1])).splitlines()[0] + "\n", "no lines"),
        ("\x00\xff", "comparison.csv"),
    ],
)
def test_damaged_tables(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "comparison.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=complaint):
        advise(tmp_path, AdviceLimits(1.0, "rating", 100))


def test_exit_codes(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    from simulation.console.command_line import main

    found = str(table())
    for arguments, code in (
        (["advise", found, "--epsilon", "1", "--max-bytes", "1e3"], 0),
        (["advise", found, "--epsilon", "nan", "--max-bytes", "1e3"], 2),
        (["advise", found, "--epsilon", "0.1", "--max-bytes", "1e3"], 2),
        (["advise", found, "--epsilon", "1", "--max-bytes", "1e3", "--per", "cell"], 2),
        (["advise", found, "--epsilon", "1"], 0),
        (["advise", found, "--epsilon", "1", "--max-network-bytes", "0"], 2),
        (["advise", found], 2),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
        assert len(capsys.readouterr().err.splitlines()) == (code != 0)


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


def test_a_table_may_hold_a_gain_and_a_scale_below_0(table: Table) -> None:
    rows = [{**row, "rmse_gain": -0.1, "scale_low": -10.0} for row in ROWS]
    assert advise(table(rows), AdviceLimits(1.0, "rating", 1000)).best.result.name == "cheap"


def test_what_is_better_by_less_than_its_uncertainty_is_not_recommended(table: Table) -> None:
    rows = [line("noisy", 1.0, 1.04), quiet(1.05)]
    for spread, name in ((0.02, "quiet"), (0.001, "noisy")):
        advice = advise(table(repeated(rows, spread)), AdviceLimits(1.0, "rating", 1000))
        assert advice.best.result.name == name
    against = advice.best.against
    assert against is not None
    assert (against.mean, against.half_width) == (pytest.approx(0.01), pytest.approx(0.002))


def test_the_best_of_those_significantly_better_is_recommended(table: Table) -> None:
    noisy = repeated([line("noisy", 1.0, 0.99), quiet(1.05)], 0.1)[:3]
    rows = [*repeated([line("steady", 1.0, 1.0), quiet(1.05)]), *noisy]
    advice = advise(table(rows), AdviceLimits(1.0, "rating", 1000))
    assert advice.best.result.name == "steady"
    assert [offer.result.name for offer in advice.not_better] == ["noisy"]


def test_a_protocol_that_beats_nothing_sent_at_one_budget_is_not_listed_as_worse(table: Table) -> None:
    rows = repeated(
        [line("better", 1.0, 1.0), line("better", 0.5, 1.2), line("worse", 1.0, 1.2), quiet(1.05)]
    )
    advice = advise(table(rows), AdviceLimits(1.0, "rating", 1000))
    assert [offer.result.name for offer in advice.not_better] == ["worse"]


def test_what_ran_on_other_seeds_cannot_be_told_to_be_better(table: Table) -> None:
    rows = [line("a", 1.0, 0.5, seed=7), quiet(1.05)]
    assert advise(table(rows), AdviceLimits(1.0, "rating", 1000)).best.result.name == "quiet"


def test_a_loss_that_is_proved_beside_a_claim_does_not_count_as_a_proof_of_what_was_asked(
    table: Table,
) -> None:
    rows = [line("a", 1.0, 1.0, status="claimed"), line("b", 1.0, 1.2, status="none"), line("c", 1.0, 1.4)]
    assert advise(table(rows), AdviceLimits(1.0, "rating", 1000)).best.result.name == "c"


def test_a_baseline_that_is_within_the_limits_competes(table: Table) -> None:
    mean = line("mean", None, 1.0, baseline="global-mean", status="proved", epsilon_per_rating=1.0)
    advice = advise(table([mean, quiet(1.05)]), AdviceLimits(1.0, "rating", 1000))
    assert advice.best.result.name == "mean"


def test_sending_nothing_is_an_answer_and_no_error(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    from simulation.console.command_line import main

    found = str(table(repeated([*ROWS, quiet(0.5)])))
    for options in ([], ["--claimed"]):
        with pytest.raises(SystemExit) as ended:
            main(["advise", found, "--epsilon", "1", "--max-bytes", "1e4", *options])
        assert ended.value.code == 0
        printed = capsys.readouterr()
        assert "send nothing" in printed.out
        assert "of the protocols within these limits, none beats nothing sent" in printed.out
        assert printed.err == ""


def test_what_may_be_as_good_is_named(table: Table) -> None:
    best = {"best_at_budget": "best"}
    rows = [
        line("best", 1.0, 1.0, **best),
        line("near", 1.0, 1.001, **best, behind_best=0.001, behind_best_low=-0.01, behind_best_high=0.02),
        line("far", 1.0, 1.2, **best, behind_best=0.2, behind_best_low=0.1, behind_best_high=0.3),
        line(
            "dear", 1.0, 1.001, up=5e3, **best, behind_best=0.001, behind_best_low=-1.0, behind_best_high=1.0
        ),
    ]
    advice = advise(table(rows), AdviceLimits(1.0, "rating", 1000))
    assert [offer.name for offer in advice.alike] == ["near"]


TRUSTS = ("local", "shuffle", "secure-aggregation", "central")


def trusting(name: str, trust: str, budget: float, rmse: float, *, up: float = 300.0) -> dict[str, Any]:
    """A protocol whose sum of losses exceeds its budget, which it keeps by composition."""
    losses = {"epsilon_per_user_max": 5 * budget, "epsilon_composed_max": budget * 0.998, "delta": 1e-6}
    seen = {"trusts_server": trust == "central", "hides_rated_items": trust == "secure-aggregation"}
    return line(name, budget, rmse, up=up, trust=trust, **seen, **losses)


@pytest.mark.parametrize("reached", [1.5, 1.062, 0.5], ids=["all beat it", "some beat it", "none beats it"])
@pytest.mark.parametrize("most", TRUSTS)
def test_advice_within_a_trust_is_that_of_the_table(table: Table, most: Any, reached: float) -> None:
    rows = [
        trusting(f"{trust}-{kind}", trust, budget, 1.1 - 0.02 * place - 0.01 * budget + extra, up=up)
        for place, trust in enumerate(TRUSTS)
        for budget in (1.0, 4.0)
        for kind, extra, up in (("a", 0.0, 300.0), ("b", 0.005, 250.0), ("dear", -0.01, 9000.0))
    ]
    rows = repeated([*rows, quiet(reached)])
    advice = advise(table(rows), AdviceLimits(1.0, "user", 1000, trust=most, delta=1e-6))
    allowed = TRUSTS[: TRUSTS.index(most) + 1]
    inside = [
        row
        for row in rows
        if (row["seed"], row["epsilon"]) == (2, 1.0)
        and row.get("trust") in allowed
        and "dear" not in row["name"]
    ]
    best = min(
        (row for row in inside if row["rmse"] < reached - 0.01), key=lambda row: row["rmse"], default=None
    )
    found = advice.best
    if best is None:
        assert (found.result.baseline, found.accuracy) == ("nothing-sent", reached)
        assert {offer.result.name for offer in advice.not_better} == {row["name"] for row in inside}
    else:
        spent = best["uplink_message_mean_per_user"] + 100
        loss = advice.limits.loss(found.result)
        assert (found.result.name, loss, found.result.bytes_per_user) == (best["name"], 0.998, spent)
        assert found.accuracy == pytest.approx(best["rmse"])
        assert found.against is not None
        assert found.against.mean == pytest.approx(reached - best["rmse"])
    others = (*advice.alike, *advice.claimed_only, *advice.composed_only)
    held = (*advice.not_better, found, advice.for_epsilon, advice.for_bytes)
    named = [*others, *(each.result for each in held if each)]
    assert {each.trust for each in named if not each.baseline} <= set(allowed)


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


def test_what_holds_with_a_delta_costs_that_delta(table: Table) -> None:
    rows = [random_order(), listed("sums", 1.0, 0.1), listed("more", 4.0, 0.2), popular(0.3)]
    costs = [
        next(line for line in advice_lines(advise(table(own), AdviceLimits(1.0, "user"))) if "next" in line)
        for own in (rows, [*rows[:1], *rows[2:]], [rows[0], rows[3]])
    ]
    priced = [each.rpartition("costs ")[2] for each in costs]
    assert priced == ["a δ of 1e-06", "a δ of 1e-06 and 3 more ε", "giving up privacy"]


def test_lists_are_held_against_the_strongest_popularity(table: Table) -> None:
    by_content = {**popular(0.08), "name": "popularity-by-content"}
    rows = [random_order(), listed("sums", 1.0, 0.1), popular(0.05), by_content]
    advice = advise(table(rows), AdviceLimits(1.0, "user", delta=1e-6))
    assert advice.popularity is not None
    assert advice.popularity.result.name == "popularity-by-content"


def test_advice_is_told_as_approved(table: Table) -> None:
    claim = {"status": "claimed", "epsilon_per_rating": None, "epsilon_per_user_max": None}
    promised = {"epsilon_claimed_per_rating": 1.0, "epsilon_claimed_per_user": 50.0}
    paper = line("paper", 1.0, 0.8, **claim, **promised)
    near = {"behind_best": 0.001, "behind_best_low": -0.01, "behind_best_high": 0.02}
    best = {"best_at_budget": "best"}
    alike = [line("best", 1.0, 1.0, **best), line("near", 1.0, 1.001, **best, **near)]
    limits = AdviceLimits(1.0, "rating", 1000)
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
        "composed": (
            [trusting("composed", "secure-aggregation", 1.0, 0.9), line("summed", 0.01, 1.0)],
            AdviceLimits(1.0, "user", 1000),
        ),
        "no private list": ([random_order(), popular(0.05)], AdviceLimits(1.0, "user", delta=1e-6)),
        "a list": (
            [random_order(), listed("sums", 1.0, 0.1), popular(0.05)],
            AdviceLimits(1.0, "user", delta=1e-6),
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


def test_what_holds_by_composition_only_counts_with_a_delta(table: Table) -> None:
    rows = [trusting("composed", "secure-aggregation", 1.0, 0.9), line("summed", 0.01, 1.0)]
    advice = advise(table(rows), AdviceLimits(1.0, "user", 1000))
    assert advice.best.result.name == "summed"
    assert [offer.name for offer in advice.composed_only] == ["composed"]
    assert advise(table(rows), AdviceLimits(1.0, "user", 1000, delta=1e-5)).best.result.name == "composed"
    assert advise(table(rows), AdviceLimits(1.0, "user", 1000, delta=1e-7)).best.result.name == "summed"


def test_how_many_users_the_best_needs_is_said_where_it_was_tried(table: Table) -> None:
    def crowd(users: int, rmse: float) -> list[dict[str, Any]]:
        same = {"dataset": "synthetic", "population": str(users), "users": float(users)}
        return [line("cheap", 1.0, rmse, **same), quiet(1.05, **same)]

    rows = [line("cheap", 1.0, 1.0), quiet(1.05)]
    tried = advise(
        table([*rows, *crowd(1000, 1.15), *crowd(100_000, 0.95)]), AdviceLimits(1.0, "rating", 1000)
    )
    assert (tried.best.result.name, tried.best.result.population) == ("cheap", None)
    assert tried.course is not None
    assert (tried.course.base, tried.course.users_needed) == ("nothing sent", "about 10,000")
    assert advise(table(rows), AdviceLimits(1.0, "rating", 1000)).course is None


@pytest.mark.parametrize(("composed", "told"), [(0.999999, False), (0.5, True)])
def test_a_loss_that_the_sum_keeps_is_told_without_delta(table: Table, composed: float, told: bool) -> None:
    own = {"epsilon_per_user_max": 1.0, "epsilon_composed_max": composed, "delta": 1e-6}
    rows = [line("whole", 1.0, 0.9, hides_rated_items=True, **own), quiet(1.05)]
    first, *_ = advice_lines(advise(table(rows), AdviceLimits(1.0, "user", 1000, delta=1e-6)))
    assert ("per user with δ = 1e-06" in first) is told
