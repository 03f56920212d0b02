"""The answer of a comparison: every statement recomputed from comparison.csv, whatever wins."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulation.analysis.answer import answer_to, at_each_trust
from simulation.analysis.columns import MOST_ROWS, headline_columns, headline_rows
from simulation.analysis.protocol_results import ProtocolResult, read_results
from simulation.analysis.sentences import answer_sentences, trust_sentences
from simulation.analysis.vocabulary import METRICS, Metric
from simulation.storage.tables import csv_of_rows
from tests.approved import check

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


def intervals(rows: list[dict[str, Any]], base: float, half_width: float = 0.02) -> list[dict[str, Any]]:
    """Return lines with the interval of how much lower their error is than a baseline's."""
    ends = ((-1, "low"), (1, "high"))
    return [
        {**row, **{f"rmse_gain_{end}": base - row["rmse"] + sign * half_width for sign, end in ends}}
        for row in rows
    ]


def alike(most: int) -> list[dict[str, Any]]:
    """Return lines of six protocols, of which so many may be as good as the best."""
    rows = [
        {**line(RMSE, name, 1.0, 1, 0.9 + place / 100), "best_at_budget": "a"}
        for place, name in enumerate("abcdef")
    ]
    for place, row in enumerate(rows[1:], start=1):
        ends = {"behind_best_low": -0.001 if place <= most else 0.001, "behind_best_high": 0.1}
        row |= {"behind_best": place / 100, **ends}
    return rows


QUIET = baseline(RMSE, "nothing-sent", 1.0)
CLAIMED = {"status": "claimed"}
TRUSTING = [
    {
        **line(RMSE, name, 4.0, 1, value),
        "trust": trust,
        "hides_rated_items": hides,
        "epsilon_per_user_max": 4.0,
    }
    for name, trust, hides, value in (
        ("local", "local", True, 1.1),
        ("central", "central", True, 0.9),
        ("values", "local", False, 0.92),
    )
]
CASES: dict[str, list[dict[str, Any]]] = {
    "two alike": alike(2),
    "many alike": alike(5),
    "better by a claim": [
        QUIET,
        line(RMSE, "proved", 1.0, 1, 1.2),
        line(RMSE, "claimed", 1.0, 1, 0.8) | CLAIMED,
    ],
    "the nearest only claims": intervals(
        [QUIET, line(RMSE, "proved", 1.0, 1, 1.2), line(RMSE, "claimed", 1.0, 1, 1.1) | CLAIMED], 1.0
    ),
    "not held against the baseline": [QUIET, line(RMSE, "protocol-3", 1.0, 2, 0.9)],
    "passed by one in doubt": [
        *intervals([QUIET, line(RMSE, "sure", 1.0, 1, 0.95)], 1.0),
        *intervals([line(RMSE, "rash", 1.0, 1, 0.9)], 1.0, 0.2),
    ],
    "no budget": [line(RMSE, "clear", None, 1, 0.9), line(RMSE, "other", None, 1, 1.0)],
    "no baseline": [line(RMSE, "noisy", 1.0, 1, 0.9)],
    "means over seeds": [
        *({**QUIET, "seed": seed} for seed in (1, 2)),
        *(line(RMSE, "noisy", 1.0, seed, value) for seed, value in ((1, 0.849), (2, 0.851))),
    ],
}
OF_USERS: dict[str, tuple[list[dict[str, Any]], float | None]] = {
    "a line for each trust": ([QUIET, baseline(RMSE, "sets-only", 0.94), *TRUSTING], 1e-6),
    "a single trust, another budget": (
        [line(RMSE, "values", epsilon, 1, value) for epsilon, value in ((2.0, 0.9), (4.0, 0.95))]
        + [line(RMSE, "other", 4.0, 1, 0.99)],
        None,
    ),
}


def test_answers_are_told_as_approved(tmp_path: Path) -> None:
    path, told = tmp_path / "comparison.csv", []
    for case, rows in CASES.items():
        path.write_text("".join(csv_of_rows(rows)))
        told.append("\n".join([f"# {case}", *sentences(path, RMSE)]))
    for case, (rows, delta) in OF_USERS.items():
        path.write_text("".join(csv_of_rows(rows)))
        results = read_results(path)
        answer, at_trusts = answer_to(results, RMSE, ()), at_each_trust(results, RMSE, budgets=[4.0])
        told.append("\n".join([f"# {case}", *trust_sentences(answer, at_trusts, delta)]))
        assert trust_sentences(answer, [], None) == answer_sentences(answer, "user")
    check("answers", "\n".join(told))


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
    assert said(shown[-1]) == [
        *("0", "1.063", "–", "0, same items", "–", "–", "412", "25,001", "–", "rated items only"),
    ]
    lines = {(each["name"], each["epsilon"]): each for each in lines_of(path)}
    for result in shown:
        row = lines[result.name, "" if result.budget is None else "1.0"]
        assert written["RMSE"](result) == f"{float(row['rmse']):.3f}"
