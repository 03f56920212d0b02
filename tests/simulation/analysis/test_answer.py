"""The answer of a comparison: every statement recomputed from comparison.csv, whatever wins."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from simulation.analysis.answer import answer_to, at_each_trust
from simulation.analysis.columns import MOST_ROWS, headline_columns, headline_rows
from simulation.analysis.protocol_results import ProtocolResult, read_results
from simulation.analysis.sentences import answer_sentences, trust_sentences
from simulation.analysis.vocabulary import METRICS, Metric
from simulation.storage.tables import csv_of_rows

RMSE, SIGNS = METRICS[0], METRICS[2]
BASELINE = {RMSE: 1.063, SIGNS: 0.64}
PUBLISHED = {"protocol-3", "protocol-7", "protocol-11"}

Lines = list[dict[str, str]]


def line(metric: Metric, name: str, epsilon: float | None, seed: int, value: float) -> dict[str, Any]:
    """Return a made-up line of comparison.csv, with an interval of the gain over users."""
    private = epsilon is not None
    return {
        "name": name, "epsilon": epsilon, "fold": None, "seed": seed, "dataset": "made-up", "items": 9,
        metric.column: value, "status": "proved" if private else "none", "baseline": None,
        "trust": "local" if private else "central", "trusts_server": not private, "hides_rated_items": False,
        "epsilon_per_rating": epsilon, "epsilon_per_user_max": 685 * epsilon if private else None,
        "epsilon_composed_max": 422.5 * epsilon if private else None, "delta": 1e-6,
        "uplink_message_mean_per_user": 400 + len(name), "downlink_message_mean_per_user": 25_000 + seed,
        "against": "nothing-sent", "best_at_budget": None,
    }  # fmt: skip


def baseline(metric: Metric, name: str, value: float) -> dict[str, Any]:
    silent = {"status": "proved", "baseline": name, "epsilon_per_user_max": 0.0, "trust": "local"}
    return {**line(metric, name, None, 1, value), **silent}


def table(folder: Path, metric: Metric, worse_by: float, draw: int, promise: str = "proved") -> Path:
    """Write a table of 22 protocols at three budgets, each on average worse than the baseline by so much."""
    random, sign = np.random.default_rng(draw), 1 if metric.lower_is_better else -1
    base = BASELINE[metric]
    rows = [baseline(metric, "nothing-sent", base), baseline(metric, "sets-only", base - sign * 0.05)]
    rows += [
        line(metric, f"clear-{place}", None, 1, base - sign * random.uniform(0, 0.2)) for place in (1, 2)
    ]
    for place in range(22):
        apart = worse_by + random.uniform(-0.1, 0.1)
        for epsilon in (0.5, 1.0, 3.0):
            rows.append(line(metric, f"protocol-{place}", epsilon, 1, base + sign * (apart + 0.05 / epsilon)))
            rows[-1]["status"] = "claimed" if place % 5 == 4 else promise
    for row in rows:
        gain = sign * (base - row[metric.column])
        ends = dict(zip(("", "_low", "_high"), (gain, gain - 0.02, gain + 0.02), strict=True))
        row |= {f"{metric.column}_gain{end}": value for end, value in ends.items()}
    path = folder / "comparison.csv"
    path.write_text("".join(csv_of_rows(rows)))
    return path


def sentences(path: Path, metric: Metric) -> tuple[str, ...]:
    return answer_sentences(answer_to(read_results(path), metric, PUBLISHED), "rating")


def lines_of(path: Path) -> Lines:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def best_of(lines: Lines, metric: Metric, keep: Callable[[dict[str, str]], bool]) -> dict[str, str]:
    chosen = min if metric.lower_is_better else max
    return chosen((each for each in lines if keep(each)), key=lambda each: float(each[metric.column]))


def competes(each: dict[str, str]) -> bool:
    return not each["baseline"] and each["epsilon"] == "1.0"


def check_context(second: str, lines: Lines, metric: Metric) -> None:
    """Check what is said of the rated items, of published protocols and of no privacy."""
    alone = next(each for each in lines if each["baseline"] == "sets-only")
    assert f"give {float(alone[metric.column]):.3f} (sets-only)" in second
    papers = [each for each in lines if competes(each) and each["name"] in PUBLISHED]
    better = [each["name"] for each in papers if float(each[f"{metric.column}_gain_low"]) > 0]
    said = re.search(
        r"(none|each)? ?of the 3 published systems \(([^)]*)\)(?:, ([\w\-, ]+) beats? nothing)?", second
    )
    assert said is not None
    assert set(re.findall(r"protocol-\d+", said[2])) == PUBLISHED
    stated = said[2] if said[1] == "each" else said[3] or ""
    assert re.findall(r"protocol-\d+", stated) == better
    assert (said[1] == "none") is not bool(better)
    clear = best_of(lines, metric, lambda each: not each["baseline"] and not each["epsilon"])
    assert f"without privacy {clear['name']} reaches {float(clear[metric.column]):.3f}" in second


@pytest.mark.parametrize("metric", [RMSE, SIGNS], ids=["RMSE", "signs"])
@pytest.mark.parametrize("draw", range(4))
def test_every_statement_is_that_of_the_table(tmp_path: Path, metric: Metric, draw: int) -> None:
    path = table(tmp_path, metric, -0.05, draw)
    first, second = sentences(path, metric)
    lines, column = lines_of(path), metric.column
    best = best_of(lines, metric, lambda each: competes(each) and each["status"] == "proved")
    assert float(best[f"{column}_gain_low"]) > 0
    stated = re.fullmatch(
        r"At ε = 1 per rating, up to ([\d.]+) per user on the same items, the most accurate protocol that is "
        r"proved to keep its budget is (\S+): it reaches (RMSE|sign accuracy) ([\d.]+), ([\d.]+) ± ([\d.]+) "
        r"better than nothing sent \(([\d.]+)\), for ([\d,]+) bytes up and ([\d,]+) down per user; "
        r"the server sees rated items, noise\.",
        first,
    )
    assert stated is not None
    assert stated[2] == best["name"]
    low, high = (float(best[f"{column}_gain_{end}"]) for end in ("low", "high"))
    baseline_reached = next(float(each[column]) for each in lines if each["baseline"] == "nothing-sent")
    numbers = [float(stated[place].replace(",", "")) for place in (1, 4, 5, 6, 7, 8, 9)]
    assert numbers == pytest.approx(
        [
            float(best["epsilon_per_user_max"]),
            float(best[column]),
            abs(float(best[column]) - baseline_reached),
            (high - low) / 2,
            baseline_reached,
            float(best["uplink_message_mean_per_user"]),
            float(best["downlink_message_mean_per_user"]),
        ],
        abs=6e-4,
    )
    check_context(second, lines, metric)


@pytest.mark.parametrize("metric", [RMSE, SIGNS], ids=["RMSE", "signs"])
def test_where_nothing_beats_the_baseline_that_is_the_answer(tmp_path: Path, metric: Metric) -> None:
    path = table(tmp_path, metric, 0.2, 0)
    first, second = sentences(path, metric)
    lines = lines_of(path)
    assert all(float(each[f"{metric.column}_gain_low"]) <= 0 for each in lines if competes(each))
    nearest = best_of(lines, metric, competes)
    promise = "" if nearest["status"] == "proved" else " (claimed, not proved)"
    behind = abs(float(nearest[metric.column]) - BASELINE[metric])
    assert first == (
        f"At ε = 1 per rating nothing here beats sending nothing: every device alone reaches "
        f"{'RMSE' if metric is RMSE else 'sign accuracy'} {BASELINE[metric]:.3f}, and the nearest protocol, "
        f"{nearest['name']}{promise}, is {behind:.3f} ± 0.020 worse."
    )
    assert "none of the 3 published systems" in second
    check_context(second, lines, metric)


def test_what_is_claimed_only_is_no_answer(tmp_path: Path) -> None:
    path = table(tmp_path, RMSE, -0.05, 0, promise="claimed")
    lines = lines_of(path)
    best = best_of(lines, RMSE, competes)
    said = f"reaches RMSE {float(best['rmse']):.3f}, "
    first = "At ε = 1 per rating no protocol here is proved to keep its budget; "
    assert sentences(path, RMSE)[0].startswith(f"{first}{best['name']}, which claims to, {said}")
    path.write_text("".join(csv_of_rows([{**each, "epsilon_claimed_per_rating": 2.0} for each in lines])))
    assert sentences(path, RMSE)[0].startswith(f"{first}{best['name']}, which claims ε = 2, {said}")
    shown, _ = headline_rows(read_results(path), RMSE)
    asked = headline_columns(shown, RMSE, "rating")[0]
    assert "1, claims 2" in {asked.text(each) for each in shown}


def test_what_cannot_be_told_apart_from_the_best_is_named_beside_it(tmp_path: Path) -> None:
    rows = [line(RMSE, name, 1.0, 1, 0.9 + place / 100) for place, name in enumerate("abcdef")]
    for place, row in enumerate(rows):
        behind = (place / 100, -0.001 if place < 3 else 0.001, 0.1) if place else (None, None, None)
        columns = ("behind_best", "behind_best_low", "behind_best_high")
        row |= {"best_at_budget": "a", **dict(zip(columns, behind, strict=True))}
    path = tmp_path / "comparison.csv"
    path.write_text("".join(csv_of_rows(rows)))
    assert "budget is a (not told apart: b and c): it reaches" in sentences(path, RMSE)[0]
    path.write_text(
        "".join(csv_of_rows([rows[0], *({**row, "behind_best_low": -0.001} for row in rows[1:])]))
    )
    assert "budget is a (not told apart: 5 protocols): it reaches" in sentences(path, RMSE)[0]


def test_what_beats_nothing_sent_by_a_claim_is_not_said_to_be_nothing(tmp_path: Path) -> None:
    rows = [
        baseline(RMSE, "nothing-sent", 1.0),
        line(RMSE, "proved", 1.0, 1, 1.2),
        line(RMSE, "claimed", 1.0, 1, 0.8),
    ]
    rows[-1]["status"] = "claimed"
    (tmp_path / "comparison.csv").write_text("".join(csv_of_rows(rows)))
    assert sentences(tmp_path / "comparison.csv", RMSE) == (
        "At ε = 1 per rating no protocol that is proved to keep its budget beats sending nothing: every "
        "device alone reaches RMSE 1.000, and the nearest protocol, proved, is 0.200 worse.",
    )


def intervals(rows: list[dict[str, Any]], base: float, half_width: float = 0.02) -> list[dict[str, Any]]:
    """Return lines with the interval of how much lower their error is than a baseline's."""
    ends = ((-1, "low"), (1, "high"))
    return [
        {**row, **{f"rmse_gain_{end}": base - row["rmse"] + sign * half_width for sign, end in ends}}
        for row in rows
    ]


def test_the_nearest_to_the_baseline_may_be_one_that_only_claims(tmp_path: Path) -> None:
    rows = [line(RMSE, "proved", 1.0, 1, 1.2), {**line(RMSE, "claimed", 1.0, 1, 1.1), "status": "claimed"}]
    path = tmp_path / "comparison.csv"
    path.write_text("".join(csv_of_rows(intervals([baseline(RMSE, "nothing-sent", 1.0), *rows], 1.0))))
    assert sentences(path, RMSE)[0].endswith(
        "the nearest protocol, claimed (claimed, not proved), is 0.100 ± 0.020 worse."
    )


def test_what_was_not_held_against_the_baseline_is_not_said_to_be_beaten_by_it(tmp_path: Path) -> None:
    rows = [baseline(RMSE, "nothing-sent", 1.0), line(RMSE, "protocol-3", 1.0, 2, 0.9)]
    path = tmp_path / "comparison.csv"
    path.write_text("".join(csv_of_rows(rows)))
    said = sentences(path, RMSE)
    assert len(said) == 1
    assert "that is proved to keep its budget is protocol-3: it reaches RMSE 0.900, for 410 bytes" in said[0]


def test_a_protocol_that_is_passed_by_one_in_doubt_is_not_called_the_most_accurate(tmp_path: Path) -> None:
    sure = intervals([baseline(RMSE, "nothing-sent", 1.0), line(RMSE, "sure", 1.0, 1, 0.95)], 1.0)
    path = tmp_path / "comparison.csv"
    path.write_text("".join(csv_of_rows([*sure, *intervals([line(RMSE, "rash", 1.0, 1, 0.9)], 1.0, 0.2)])))
    assert (
        "the most accurate protocol that is proved to keep its budget and beats nothing sent beyond doubt is "
        "sure: it reaches RMSE 0.950, 0.050 ± 0.020 better"
    ) in sentences(path, RMSE)[0]


def test_without_budgets_and_without_baselines_there_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "comparison.csv"
    path.write_text(
        "".join(csv_of_rows([line(RMSE, "clear", None, 1, 0.9), line(RMSE, "other", None, 1, 1.0)]))
    )
    assert sentences(path, RMSE) == ("No protocol here has a budget; clear reaches RMSE 0.900.",)
    path.write_text("".join(csv_of_rows([line(RMSE, "noisy", 1.0, 1, 0.9)])))
    assert sentences(path, RMSE)[0].endswith(
        "is noisy: it reaches RMSE 0.900, for 405 bytes up and 25,001 down per user; "
        "the server sees rated items, noise."
    )


def test_for_whole_users_there_is_a_line_for_each_trust(tmp_path: Path) -> None:
    rows = [baseline(RMSE, "nothing-sent", 1.0), baseline(RMSE, "sets-only", 0.94)]
    for name, trust, hides, value in (
        ("local", "local", True, 1.1),
        ("central", "central", True, 0.9),
        ("values", "local", False, 0.92),
    ):
        shown = {"trust": trust, "hides_rated_items": hides, "epsilon_per_user_max": 4.0}
        rows.append({**line(RMSE, name, 4.0, 1, value), **shown})
    path = tmp_path / "comparison.csv"
    path.write_text("".join(csv_of_rows(rows)))
    results = read_results(path)
    answer = answer_to(results, RMSE, ())
    lead, *lines = trust_sentences(answer, at_each_trust(results, RMSE, budgets=[4.0]), 1e-6)
    assert lead.startswith("At ε = 4 per user with δ = 1e-06, ")
    assert lead.endswith("nothing sent reaches RMSE 1.000.")
    assert lines == [
        "Nobody is trusted (ratings and rated items protected): the most accurate does not surely beat "
        "sending nothing: local, RMSE 1.100, 0.100 worse.",
        "The server is trusted (ratings and rated items protected): central, RMSE 0.900, 0.100 better, for "
        "407 bytes up and 25,001 down per user; the server sees true ratings.",
        "Nobody is trusted (ratings protected, rated items seen): values, RMSE 0.920, 0.080 better, for 406 "
        "bytes up and 25,001 down per user; the server sees rated items, noise; the rated items alone, "
        "which the server sees and a table tells all users something of, give 0.940 (sets-only).",
    ]
    assert trust_sentences(answer, [], None) == answer_sentences(answer, "user")


def test_of_a_single_trust_nothing_depends_on_it_and_another_budget_is_named(tmp_path: Path) -> None:
    rows = [line(RMSE, "values", epsilon, 1, value) for epsilon, value in ((2.0, 0.9), (4.0, 0.95))]
    path = tmp_path / "comparison.csv"
    path.write_text("".join(csv_of_rows([*rows, line(RMSE, "other", 4.0, 1, 0.99)])))
    results = read_results(path)
    lead, only = trust_sentences(
        answer_to(results, RMSE, ()), at_each_trust(results, RMSE, budgets=[4.0]), None
    )
    same = "every protocol here that is proved to keep its budget asks for the same trust"
    assert lead == f"At ε = 4 per user, {same}."
    assert ": values at ε = 2, RMSE 0.900, for 406 bytes up" in only


def test_the_headline_has_a_row_per_protocol_by_accuracy_and_always_the_baseline(tmp_path: Path) -> None:
    path = table(tmp_path, RMSE, -0.2, 0)
    results = read_results(path)
    shown, others = headline_rows(results, RMSE)
    names = [each.name for each in (*shown, *others)]
    assert len(names) == len(set(names)) == 26
    assert len(shown) == MOST_ROWS <= 12
    assert shown[-1].name == "nothing-sent"
    assert {each.budget for each in (*shown, *others)} == {1.0, None}
    for rows in (shown[:-1], others):
        accuracies = [each.mean("rmse") or 0.0 for each in rows]
        assert accuracies == sorted(accuracies)
    written = {column.title: column.text for column in headline_columns(results, RMSE, "rating")}

    def said(result: ProtocolResult) -> list[str]:
        return [text(result) for text in written.values()]

    claimed = next(each for each in results if each.name == "protocol-4" and each.budget == 1.0)
    assert said(claimed)[0] == "1 claimed"
    assert said(shown[-1]) == ["0", "1.063", "–", "0, same items", "–", "412", "25,001", "rated items only"]
    lines = {(each["name"], each["epsilon"]): each for each in lines_of(path)}
    for result in shown:
        row = lines[result.name, "" if result.budget is None else "1.0"]
        assert written["RMSE"](result) == f"{float(row['rmse']):.3f}"


def test_statements_are_means_over_seeds(tmp_path: Path) -> None:
    rows = [{**baseline(RMSE, "nothing-sent", 1.0), "seed": seed} for seed in (1, 2)]
    rows += [line(RMSE, "noisy", 1.0, seed, value) for seed, value in ((1, 0.849), (2, 0.851))]
    path = tmp_path / "comparison.csv"
    path.write_text("".join(csv_of_rows(rows)))
    reached = fmean(float(each["rmse"]) for each in lines_of(path) if each["name"] == "noisy")
    assert f"it reaches RMSE {reached:.3f}, " in sentences(path, RMSE)[0]
