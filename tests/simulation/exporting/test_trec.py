"""Figures of lists, recomputed from what is exported: by trec_eval, by ranx and by their definitions."""

import gzip
import json
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from simulation import export, run
from simulation.exporting.trec import falling
from tests import make

CUTOFFS = [3, 10]
RUNS: dict[str, dict[str, Any]] = {
    "ratings": {
        "protocol": {"kind": "one-shot", "mechanism": {"kind": "none"}, "completion": {"kind": "mf"}}
    },
    # Of few people, whose averages are often the same.
    "ties": {
        "dataset": {"kind": "synthetic", "users": 30, "items": 40, "ratings": 240},
        "protocol": {
            "kind": "one-shot",
            "mechanism": {"kind": "none"},
            "completion": {"kind": "item-average"},
        },
        "evaluation": {"relevant_from": 4.0},
    },
    "lists": {"dataset": make.POSITIVE_DATA, "protocol": {"kind": "ease"}},
    "signs": {
        "dataset": {"kind": "one-bit-synthetic", "users": 40, "items": 30, "rank": 2},
        "protocol": {
            "kind": "one-shot",
            "mechanism": {"kind": "none"},
            "completion": {"kind": "one-bit", "rank": 2},
        },
    },
}
NAMES = {"ndcg": "ndcg_cut", "recall": "recall", "precision": "P", "hit_rate": "success", "map": "map_cut"}
"""Ours, and trec_eval's."""

Judged = Mapping[str, Mapping[str, int]]


@pytest.fixture(scope="module", params=RUNS)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, parts = tmp_path_factory.mktemp("trec") / "run", RUNS[request.param]
    asked = {"lists": 20, "ranking": {"cutoffs": CUTOFFS}, **parts.get("evaluation", {})}
    run(make.small_run(**{**parts, "evaluation": asked}), folder, page=False)
    export(folder, "trec")
    return folder


def accuracy(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))["accuracy"]


def judgements(path: Path) -> Judged:
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        user, _, item, relevance = line.split(" ")
        judged[user][item] = int(relevance)
    return judged


def trec_run(path: Path) -> dict[str, dict[str, float]]:
    listed: dict[str, dict[str, float]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        user, constant, item, _, score, name = line.split(" ")
        assert (constant, name) == ("Q0", "small")
        listed[user][item] = float(score)
    return listed


def by_trec_eval(judged: Judged, listed: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    cuts = ",".join(map(str, (*CUTOFFS, 20)))
    measures = {f"{name}.{cuts}" for name in NAMES.values()}
    found = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(listed)
    assert found.keys() == judged.keys()
    return {name: fmean(own[name] for own in found.values()) for name in next(iter(found.values()))}


def ours(folder: Path) -> dict[tuple[str, int], float]:
    """Return all figures of lists of a run, by metric and cutoff."""
    held, figures = accuracy(folder), {}
    for key, at in held["ranking"].items():
        if key.endswith("_at"):
            figures |= {(key.removesuffix("_at"), int(cutoff)): value for cutoff, value in at.items()}
    for key in ("ndcg_at_10", "recall_at_20", "hit_rate_at_10", "mrr_at_10", "map_at_10"):
        if key in held:
            metric, _, cutoff = key.partition("_at_")
            figures["main", metric, int(cutoff)] = held[key]
    return figures


def test_trec_eval_finds_the_same(exported: Path) -> None:
    listed = trec_run(exported / "export" / "run.trec")
    expected = by_trec_eval(judgements(exported / "export" / "qrels.trec"), listed)
    checked = 0
    for (*_, metric, cutoff), value in ours(exported).items():
        if metric in NAMES:
            assert value == pytest.approx(expected[f"{NAMES[metric]}_{cutoff}"], abs=1e-9)
            checked += 1
    assert checked >= len(NAMES) * len(CUTOFFS)
    graded = exported / "export" / "graded.trec"
    assert graded.exists() == ("graded_ndcg_at" in accuracy(exported)["ranking"])
    if graded.exists():
        expected = by_trec_eval(judgements(graded), listed)
        for cutoff in CUTOFFS:
            found = ours(exported)["graded_ndcg", cutoff]
            assert found == pytest.approx(expected[f"ndcg_cut_{cutoff}"], abs=1e-9)


@pytest.mark.thorough
def test_ranx_finds_the_same(exported: Path) -> None:
    ranx = pytest.importorskip("ranx")  # compiles for long

    def evaluated(judged: str, metrics: list[str]) -> dict[str, float]:
        qrels = ranx.Qrels.from_file(str(exported / "export" / f"{judged}.trec"), kind="trec")
        listed = ranx.Run.from_file(str(exported / "export" / "run.trec"), kind="trec")
        return ranx.evaluate(qrels, listed, [*metrics, "hits"], make_comparable=True)

    figures = {
        (metric, cutoff): value
        for (*_, metric, cutoff), value in ours(exported).items()
        if metric not in ("coverage", "graded_ndcg")
    }
    expected = evaluated("qrels", [f"{metric}@{cutoff}" for metric, cutoff in figures])
    for (metric, cutoff), value in figures.items():
        assert value == pytest.approx(expected[f"{metric}@{cutoff}"], abs=1e-9)
    if (exported / "export" / "graded.trec").exists():
        expected = evaluated("graded", [f"ndcg@{cutoff}" for cutoff in CUTOFFS])
        for cutoff in CUTOFFS:
            found = ours(exported)["graded_ndcg", cutoff]
            assert found == pytest.approx(expected[f"ndcg@{cutoff}"], abs=1e-9)


def test_the_written_lists_give_the_same_by_the_definitions(exported: Path) -> None:
    with gzip.open(exported / "lists.csv.gz", "rt") as file:
        listed = pd.read_csv(file, dtype={"user": str, "item": str})
    lists = {user: own["item"].tolist() for user, own in listed.groupby("user")}
    assert all(own["rank"].tolist() == list(range(1, len(own) + 1)) for _, own in listed.groupby("user"))
    assert all(own["score"].is_monotonic_decreasing for _, own in listed.groupby("user"))
    relevant = judgements(exported / "export" / "qrels.trec")
    size = json.loads((exported / "summary.json").read_text())["dataset"]["items"]
    for (*_, metric, cutoff), value in ours(exported).items():
        if metric == "graded_ndcg":
            levels = judgements(exported / "export" / "graded.trec")
            expected = fmean(gain(lists[user], own, cutoff) for user, own in levels.items())
        elif metric == "coverage":
            expected = len({item for user in relevant for item in lists[user][:cutoff]}) / size
        else:
            expected = fmean(defined(metric, lists[user], own, cutoff) for user, own in relevant.items())
        assert value == pytest.approx(expected, abs=1e-9)


def gain(items: list[str], levels: Mapping[str, int], cutoff: int) -> float:
    best = sorted(levels.values(), reverse=True)[:cutoff]
    reached = [levels.get(item, 0) for item in items[:cutoff]]
    summed = (sum(each / math.log2(2 + place) for place, each in enumerate(own)) for own in (reached, best))
    return next(summed) / next(summed)


def defined(metric: str, items: list[str], relevant: Mapping[str, int], cutoff: int) -> float:
    hits = [item in relevant for item in items[:cutoff]]
    ranks = [place for place, hit in enumerate(hits, 1) if hit]
    return {
        "ndcg": gain(items, relevant, cutoff),
        "hit_rate": float(any(hits)),
        "mrr": 1 / ranks[0] if ranks else 0.0,
        "recall": sum(hits) / len(relevant),
        "precision": sum(hits) / cutoff,
        "map": sum(sum(hits[:rank]) / rank for rank in ranks) / len(relevant),
    }[metric]


@given(
    st.lists(
        st.lists(st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 1.0, 1 + 1e-12, -1e-45]), min_size=1)
    ).filter(bool)
)
def test_scores_fall_within_a_list_and_stay_what_they_are_otherwise(lists: list[list[float]]) -> None:
    scores = np.concatenate([sorted(own, reverse=True) for own in lists])
    ranks = np.concatenate([np.arange(1, len(own) + 1) for own in lists])
    written = falling(scores, ranks)
    assert np.isfinite(written).all()
    assert (written[1:] < written[:-1])[ranks[1:] > 1].all()
    single = np.clip(scores, -3e38, 3e38).astype(np.float32)
    apart = (ranks == 1) | (single < np.concatenate([[np.inf], single[:-1]]))
    assert (written <= single).all()
    if apart.all():
        assert (written == single).all()


def test_no_identifier_breaks_a_line(tmp_path: Path) -> None:
    users = ["a b", "c,d", '"q"', "100%", "%20", "tab\there", "nö\u00a0brk", *map(str, range(20))]
    items = ["The Film, 1999", "x\\y", *(f"i {place}" for place in range(15))]
    rows = [
        (user, item, 1 + (7 * place + 3 * at) % 5)
        for place, user in enumerate(users)
        for at, item in enumerate(items)
        if (place + at) % 2
    ]
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    split, asked = {"kind": "leave-one-out", "by": "random", "count": 2}, {"lists": 50}
    settings: dict[str, Any] = {"simulation": make.ON_THIS_MACHINE, "split": split, "evaluation": asked}
    run("item-average", tmp_path, dataset=frame, page=False, **settings)
    export(tmp_path, "trec")
    read = [(tmp_path / "export" / name).read_text().splitlines() for name in ("run.trec", "qrels.trec")]
    lines, judged = ([line.split() for line in own] for own in read)
    assert {len(line) for line in lines} == {6}
    special = {"a%20b", "c,d", '"q"', "100%25", "%2520", "tab%09here", "nö%C2%A0brk"}
    assert {line[0] for line in lines} == special | set(users[7:])
    escaped = {item.replace(" ", "%20") for item in items}
    assert {line[2] for line in lines} | {line[2] for line in judged} <= escaped
