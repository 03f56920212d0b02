"""The tables of the documents are those of the committed summaries and of the presets."""

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.tables.__main__ import documents, filled
from docs.tables.collect import results_of
from docs.tables.leaderboard import accuracies, statements
from docs.tables.results import (
    RESULTS,
    Result,
    papers,
    provenance,
    read_results,
    source_of,
    systems,
    write_results,
)
from dprec.errors import InputError
from simulation.analysis.comparison_files import read_comparison
from simulation.configuration.presets import presets
from simulation.storage.directories import COMPARISON, TABLE
from simulation.storage.tables import csv_of_rows
from tests.paths import ROOT

DOCUMENTS = list(documents())

RESULT = Result(
    protocol="ours",
    preset="ours",
    dataset="made-up",
    split="holdout",
    panel="",
    unit="rating",
    epsilon=1.0,
    baseline=False,
    metric="rmse",
    accuracy=1.0,
    deviation=None,
    runs=1,
    mae=0.8,
    f_score=None,
    gain=0.1,
    gain_low=0.05,
    gain_high=0.15,
    epsilon_per_rating=1.0,
    epsilon_per_user=685.0,
    claimed_per_rating=None,
    claimed_per_user=None,
    composed=400.0,
    delta=1e-6,
    status="proved",
    trust="local",
    hides_rated_items=False,
    server_sees="rated items, noise",
    bytes_up=412.0,
    bytes_down=306.0,
    network_up=None,
    network_down=None,
    rounds=1.0,
)
BASELINE = replace(
    RESULT,
    protocol="nothing-sent",
    preset="nothing-sent",
    epsilon=None,
    baseline=True,
    accuracy=1.1,
    gain=None,
)
PUBLISHED = replace(
    RESULT, protocol="isgd", preset="isgd", accuracy=1.2, gain=-0.1, gain_low=-0.15, gain_high=-0.05
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_is_as_generated(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert filled(text, path) == text, "python -m docs.tables rewrites it"


def test_every_published_preset_has_one_page() -> None:
    listed = [name for system in systems().values() for name in (*system.presets, *system.references)]
    assert sorted(set(listed)) == sorted(listed)
    assert set(papers()["published"]) <= set(listed)
    variants = {name for system in systems().values() for name in system.variants}
    assert set(papers()["ours"]) <= variants
    pages = {path.stem for path in (ROOT / "docs" / "systems").glob("*.md")} - {"index"}
    assert pages == set(systems())


def test_what_settings_were_chosen_on_stands_beside_the_source() -> None:
    known = presets()
    for scripts in papers()["tuned"].values():
        for script, names in scripts.items():
            assert (ROOT / "benchmarks" / script).is_file(), script
            assert set(names) <= set(known), script
    # What a preset's own file says of its settings is listed; pg-mf's were chosen on generated ratings.
    for name, path in known.items():
        for script in re.findall(r"chosen by benchmarks/(\w+\.py)", path.read_text(encoding="utf-8")):
            assert name in papers()["tuned"]["MovieLens 100K"][script] or name.startswith("pg-mf")
    ours = replace(RESULT, protocol="mine", preset="one-bit-on-device")
    assert source_of(ours) == "ours, tuned on MovieLens 100K"
    assert source_of(replace(ours, preset="mine")) == "ours"
    assert source_of(PUBLISHED).endswith("), tuned on MovieLens 100K")
    assert source_of(replace(BASELINE, preset="sets-only-signs")) == "baseline, tuned on MovieLens 100K"


def test_every_summary_says_how_it_was_made() -> None:
    names = {path.stem for path in RESULTS.glob("*.csv")}
    assert names == {path.stem for path in RESULTS.glob("*.yaml")}
    for name in names:
        assert provenance(name).command.startswith("dprec compare ")
        assert provenance(name).seeds


def committed(name: str, **wanted: str) -> list[dict[str, str]]:
    """Return lines of a summary as text, without the code that makes the tables."""
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def test_the_headline_of_the_results_is_that_of_the_summary() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    headline = next(line for line in page.splitlines() if line.startswith("**MovieLens 100K"))
    stars = committed("ml-100k-u1", dataset="movielens-100k", metric="rmse")
    reached = {row["protocol"]: float(row["accuracy"]) for row in stars if row["epsilon"] in ("", "1.0")}
    proved = [row for row in stars if row["epsilon"] == "1.0" and row["status"] == "proved"]
    best = min(proved, key=lambda row: float(row["accuracy"]))
    assert f"a device alone reaches {reached['nothing-sent']:.3f}" in headline
    assert f"The best that keeps its ε is `{best['protocol']}`, {float(best['accuracy']):.3f}" in headline
    assert f"reaches {reached['sets-only']:.3f} (`sets-only`)" in headline
    published = {name for system in systems().values() for name in system.presets}
    better = [row for row in proved if row["protocol"] in published and float(row["gain_low"]) > 0]
    assert ("none does better" in headline) == (not better)


def test_statements_where_a_published_system_beats_nothing_sent_and_where_none_does() -> None:
    better = replace(PUBLISHED, accuracy=1.0, gain=0.1, gain_low=0.05, gain_high=0.15)
    gained = "`isgd` (0.100 ± 0.050 better)"
    for results, said in [
        ([PUBLISHED, RESULT], "The one preset of a published system, `isgd`, does not do better."),
        ([better], "The one preset of a published system, `isgd`, is 0.100 ± 0.050 better."),
        ([PUBLISHED, PUBLISHED], "Of 2 presets of published systems, none does better."),
        ([PUBLISHED, better], f"Of 2 presets of published systems, one does better: {gained}."),
        ([better, better], f"Of 2 presets of published systems, these do better: {gained} and {gained}."),
    ]:
        assert said in list(statements([BASELINE, *results]))


def test_a_loss_that_is_only_claimed_is_no_best() -> None:
    claimed = replace(RESULT, protocol="claimed", status="claimed", accuracy=0.5)
    said = " ".join(statements([BASELINE, claimed, RESULT]))
    assert "The best that keeps its ε is `ours`, 1.000" in said


def test_it_is_said_where_nothing_private_beats_nothing_sent() -> None:
    worse = replace(RESULT, accuracy=1.15, gain=-0.05, gain_low=-0.1, gain_high=0.01)
    said = " ".join(statements([BASELINE, PUBLISHED, worse]))
    assert "Nor does any other protocol that keeps its ε; the best is `ours`, 1.150" in said
    assert "The best that keeps its ε" not in said


def test_the_best_that_hides_the_rated_items_is_named_for_every_trust() -> None:
    hidden = replace(RESULT, protocol="hidden", accuracy=1.05, hides_rated_items=True)
    trusting = replace(hidden, protocol="trusting", accuracy=1.02, trust="central")
    said = list(statements([BASELINE, RESULT, trusting, hidden]))
    sentence = next(sentence for sentence in said if "also hide" in sentence)
    assert sentence.index("`hidden` 1.050 (local model)") < sentence.index("`trusting` 1.020 (central model)")


def test_nothing_is_stated_about_a_baseline_that_was_not_run() -> None:
    assert not any("nothing sent" in sentence for sentence in statements([replace(RESULT, gain=None)]))


def test_a_summary_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_results(tmp_path / "one.csv", [RESULT, BASELINE])
    assert read_results(tmp_path / "one.csv") == [RESULT, BASELINE]


def test_a_wrong_cell_is_named_with_its_line(tmp_path: Path) -> None:
    write_results(tmp_path / "one.csv", [RESULT])
    text = (tmp_path / "one.csv").read_text(encoding="utf-8")
    (tmp_path / "one.csv").write_text(text.replace(",local,", ",anybody,"), encoding="utf-8")
    with pytest.raises(InputError, match="line 2: trust: 'anybody'"):
        read_results(tmp_path / "one.csv")
    for column, text in (("metric", "charm"), ("accuracy", "nan"), ("gain", "inf")):
        write_results(tmp_path / "one.csv", [replace(RESULT, **{column: text})])
        with pytest.raises(InputError, match=f"line 2: {column}: '{text}'"):
            read_results(tmp_path / "one.csv")


def test_a_protocol_that_a_summary_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"zheng\.csv holds no isgd"):
        accuracies("zheng", "isgd")


def test_a_comparison_is_summed_up_over_its_seeds(tmp_path: Path) -> None:
    common: dict[str, Any] = {
        "fold": None,
        "dataset": "synthetic",
        "items": 10,
        "status": "proved",
        "trust": "local",
        "epsilon_per_rating": 1.0,
        "uplink_message_mean_per_user": 100.0,
        "downlink_message_mean_per_user": 50.0,
        "train_ratings": 8,
        "test_ratings": 2,
    }
    runs = [
        common
        | {"name": name, "epsilon": budget, "seed": seed, "rmse": error, "epsilon_per_user_max": spent}
        | ({"baseline": "nothing-sent"} if budget is None else {})
        for name, budget, seed, error, spent in (
            ("bits", 1.0, 1, 0.9, 40.0),
            ("bits", 1.0, 2, 1.0, 50.0),
            ("nothing-sent", None, 1, 1.1, 0.0),
            ("nothing-sent", None, 2, 1.1, 0.0),
        )
    ]
    (tmp_path / TABLE).write_text("".join(csv_of_rows(runs)), encoding="utf-8")
    cell = {"split": {"kind": "holdout", "test_fraction": 0.2}}
    config = {
        "match": {"epsilon": "rating"},
        "protocols": [{"name": "bits", "preset": "one-bit-on-device"}],
        "cells": {"bits-eps1.0-seed1": cell},
    }
    (tmp_path / COMPARISON).write_text(yaml.safe_dump(config), encoding="utf-8")
    bits, alone = results_of(read_comparison(tmp_path))
    assert (bits.preset, bits.split, bits.runs) == ("one-bit-on-device", "holdout, test fraction 0.2", 2)
    assert (bits.accuracy, bits.gain, bits.epsilon_per_user) == (0.95, 0.15, 50.0)
    assert (bits.bytes_up, bits.bytes_down) == (100.0, 50.0)
    assert alone.baseline
    assert (alone.epsilon, alone.gain) == (None, None)


def test_links_of_a_block_are_relative_to_its_document() -> None:
    text = "<!-- generated: index -->\n<!-- end -->\n"
    beside = filled(text, ROOT / "docs" / "systems" / "index.md")
    above = filled(text, ROOT / "docs" / "results.md")
    assert "](zheng.md)" in beside
    assert "](systems/zheng.md)" in above
