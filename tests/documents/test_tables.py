"""The tables of the documents are those of the committed summaries and of the presets."""

import csv
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
import yaml

from docs.tables.__main__ import documents, filled
from docs.tables.answer import choices, chosen, references
from docs.tables.collect import provenance_of, rows_of
from docs.tables.figures import figures
from docs.tables.leaderboard import accuracies, gain_columns
from docs.tables.results import RESULTS, Committed, Provenance, papers, summary, systems
from dprec.accounting import ComparableUnit
from dprec.accounting.events import gaussian_epsilon, largest_mu
from simulation.analysis.gains import PLAIN
from simulation.analysis.protocol_results import ProtocolResult, read_comparison
from simulation.analysis.vocabulary import METRICS
from simulation.configuration.strict_yaml import presets
from simulation.storage.directories import COMPARISON, TABLE
from simulation.storage.files import csv_of_rows
from tests.paths import ROOT
from tests.results import row as made_up

DOCUMENTS = list(documents())
RMSE = METRICS[0]
MADE = Provenance("dprec compare mine", "rating", {"made-up": "holdout"}, {}, "seed 1")


def result(
    name: str = "ours", rmse: float | None = None, gain: tuple[float, float] | None = None, **other: Any
) -> Any:
    """Return a protocol at a budget of 1 per rating; `gain` is as wide as its interval."""
    middle = sum(gain or (0.1, 0.1)) / 2
    rmse = 1.1 - middle if rmse is None else rmse
    budget = other.pop("epsilon", None if "baseline" in other else 1.0)
    losses = {"epsilon_per_rating": 1.0, "epsilon_per_user_max": 685.0, "epsilon_composed_max": 400.0}
    line = made_up(
        name, budget, rmse=rmse, **losses, status="proved", trust="local", hides_rated_items="False"
    )
    if gain is not None:
        low, high = (end + 1.1 - rmse - middle for end in gain)
        line |= {"against": "nothing-sent", "rmse_gain_low": low, "rmse_gain_high": high}
    return ProtocolResult(name, budget, ({**line, **other},))


NOTHING_SENT = result("nothing-sent", 1.1, baseline="nothing-sent", uplink_message_mean_per_user=0.0)
BETTER, DOUBTFUL, WORSE = (0.05, 0.15), (-0.05, 0.15), (-0.15, -0.05)


def taken(*results: ProtocolResult, hides: bool = False, unit: ComparableUnit = "rating") -> list[str]:
    """Return what is taken at an epsilon of 1 under each trust model, among results and nothing sent."""
    held = Committed(replace(MADE, unit=unit), [NOTHING_SENT, *results])
    return [choice.take.name for choice in chosen(held, held.results, RMSE, [hides], [1.0])]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_is_as_generated(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert filled(text, path) == text, "python -m docs.tables rewrites it"


@pytest.mark.parametrize(("path", "drawn"), list(figures()), ids=lambda each: getattr(each, "stem", ""))
def test_a_figure_is_as_drawn(path: Path, drawn: str) -> None:
    stored, fresh = (
        [each.text for each in fromstring(text).iter() if each.tag.endswith(("}text", "}title"))]
        for text in (path.read_text(encoding="utf-8"), drawn)
    )
    assert stored == fresh, "python -m docs.tables draws it"


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
    held = Committed(Provenance("", "rating", {}, {"mine": "one-bit-on-device"}, ""), [])
    assert held.source(result("mine")) == "ours †"
    assert held.source(result("other")) == "ours"
    assert held.source(result("isgd")).endswith(") †")
    assert held.source(result("sets-only-signs", baseline="sets-only")) == "baseline †"
    assert held.tuned_on(result("mine")) == "MovieLens 100K"


def test_every_summary_says_how_it_was_made() -> None:
    names = {path.stem for path in RESULTS.glob("*.csv")}
    assert names == {path.stem for path in RESULTS.glob("*.yaml")}
    for name in names:
        made = summary(name).made
        assert made.command.startswith("dprec compare ")
        assert "seed" in made.runs
        assert {held.data[0] for held in summary(name).results} == set(made.splits)


def committed(name: str, **wanted: str) -> list[dict[str, str]]:
    """Return lines of a summary as text, without the code that makes the tables."""
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def test_the_headline_of_the_results_is_that_of_the_summary() -> None:
    page = (RESULTS / "ml-100k-u1.md").read_text(encoding="utf-8")
    stars = [row for row in committed("ml-100k-u1", dataset="movielens-100k") if row["rmse"]]
    reached = {row["name"]: float(row["rmse"]) for row in stars if row["epsilon"] in ("", "1.0")}
    proved = [row for row in stars if row["epsilon"] == "1.0" and row["status"] == "proved"]
    for hides, where in (("False", "revealed"), ("True", "hidden")):
        own = [row for row in proved if row["hides_rated_items"] == hides]
        best = min(own, key=lambda row: float(row["rmse"]))
        line = next(line for line in page.splitlines() if line.startswith(f"| {where} | local | 1 |"))
        assert f"| `{best['name']}` |" in line
        assert f"| {float(best['rmse']):.3f} |" in line
    headline = next(line for line in page.splitlines() if line.startswith("A device alone"))
    assert f"with nothing sent, items known, reaches {reached['nothing-sent']:.3f}" in headline
    assert f"with nothing sent, {reached['nothing-sent-without-items']:.3f}" in headline
    assert f"and no value, {reached['sets-only']:.3f}" in headline
    published = {name for system in systems().values() for name in system.presets}
    better = [row for row in proved if row["name"] in published and float(row["rmse_gain_low"]) > 0]
    assert ("at ε = 1, none is significantly better" in headline) == (not better)


@pytest.mark.parametrize("item_set", ["hidden", "revealed"])
def test_what_to_take_follows_from_the_committed_figures(item_set: str) -> None:
    rows = committed("ml-100k-per-user", status="proved", hides_rated_items=str(item_set == "hidden"))
    table, _ = choices("ml-100k-per-user", item_set, "1", "4", "20").split("\n\n")
    lines = table.splitlines()[2:]
    assert lines
    for line in lines:
        trust, epsilon, take, rmse, *_ = line.strip("| ").split(" | ")
        within = [
            row
            for row in rows
            if not row["baseline"]
            and row["epsilon"]
            and row["trust"] == trust.replace(" ", "-")
            and min(float(row["epsilon"]), float(row["epsilon_composed_max"] or math.inf)) <= float(epsilon)
        ]
        best = min(within, key=lambda row: float(row["rmse"]))
        if float(best["rmse_gain_low"]) > 0:
            assert (take, rmse) == (f"`{best['name']}`", f"{float(best['rmse']):.3f}")
        else:
            assert take == "nothing sent, items known"


def test_what_an_epsilon_says_to_a_guesser() -> None:
    page = (ROOT / "docs" / "guide" / "units-and-trust.md").read_text(encoding="utf-8")
    rows = [re.findall(r"[\d.]+", line) for line in page.splitlines() if re.match(r"\| (ε|at most) \|", line)]
    assert len(rows[0]) == len(rows[1]) > 5
    for epsilon, guess in zip(*rows, strict=False):
        right = 1 / (1 + math.exp(-float(epsilon)))
        assert guess == f"{right:.4f}".rstrip("0").rstrip(".") or guess == f"{right:.3f}"
    answer = (ROOT / "docs" / "answer.md").read_text(encoding="utf-8")
    for epsilon, percent in ((1, "73 %"), (4, "98 %")):
        assert percent in answer
        assert percent == f"{100 / (1 + math.exp(-epsilon)):.0f} %"


def test_epsilon_between_any_two_profiles_stands_beside_the_one_that_was_given() -> None:
    rows = committed("ml-100k-per-user", status="proved")
    for row in rows:
        between = float(row["epsilon_any_two"] or math.inf)
        # What compares a profile with none says less than what compares any two.
        assert between >= float(row["epsilon_composed_max"])
        assert math.isinf(between) or row["hides_rated_items"] == "True"
        if row["trust"] == "central":
            mu = largest_mu(float(row["epsilon_composed_max"]), float(row["delta"]))
            assert between == pytest.approx(gaussian_epsilon(2 * mu, float(row["delta"])), rel=1e-4)
    asked = {row["name"]: row["epsilon_any_two"] for row in rows if row["epsilon"] == "20.0"}
    assert asked["secagg-als"] == ""


def test_published_systems_that_beat_nothing_sent_are_named() -> None:
    for interval, said in [
        (WORSE, "of 1 preset of published systems at ε = 1, none is significantly better than nothing sent"),
        (
            DOUBTFUL,
            "of 1 preset of published systems at ε = 1, none is significantly better than nothing sent",
        ),
        (BETTER, "at ε = 1, `isgd` is significantly better than nothing sent (0.100 ± 0.050 better)"),
    ]:
        held = Committed(MADE, [NOTHING_SENT, result("isgd", gain=interval)])
        assert list(references(held, held.results, RMSE, 1.0))[-1].endswith(said)


def test_nothing_is_taken_that_is_not_significantly_better_than_nothing_sent() -> None:
    assert taken(result(gain=BETTER)) == ["ours"]
    assert taken(result(gain=DOUBTFUL)) == ["nothing-sent"]
    assert taken(result(gain=WORSE)) == ["nothing-sent"]


def test_a_loss_that_is_only_claimed_is_not_taken() -> None:
    claimed = result("claimed", 0.5, gain=BETTER, status="claimed")
    assert taken(claimed, result(gain=BETTER)) == ["ours"]
    assert taken(claimed) == []


def test_a_smaller_budget_is_carried_forward_among_what_protects_alike() -> None:
    smaller = result("smaller", 0.9, gain=BETTER, epsilon=0.5)
    larger = result("larger", 0.8, gain=BETTER, epsilon=2.0, epsilon_per_rating=2.0)
    hidden = result("hidden", 0.7, gain=BETTER, hides_rated_items="True")
    trusting = result("trusting", 0.6, gain=BETTER, trust="central")
    assert taken(result(gain=BETTER), smaller, larger, hidden) == ["smaller"]
    assert taken(smaller, hidden, hides=True) == ["hidden"]
    assert taken(smaller, trusting) == ["smaller", "trusting"]


def test_what_protects_a_whole_user_protects_each_rating_as_well() -> None:
    whole = result("whole", 0.5, gain=BETTER, epsilon_per_user_max=1.0)
    assert taken(whole, result(gain=BETTER)) == ["whole"]
    assert taken(whole, result(gain=BETTER), unit="user") == ["whole"]
    losses = {"epsilon_per_rating": None, "epsilon_per_user_max": None, "epsilon_composed_max": 0.6}
    composed = result("composed", 0.4, gain=BETTER, epsilon=2.0, **losses)
    assert taken(whole, composed, unit="user") == ["composed"]
    assert taken(whole, composed) == ["whole"]


def test_a_table_holds_protocols_against_the_strongest_baseline_and_names_it() -> None:
    """What beats a device that knows nothing, and not one that knows the items, is not taken."""
    known = result("nothing-sent", 1.0, baseline="nothing-sent", public_items="items")
    plain = result("nothing-sent-without-items", 1.1, baseline="nothing-sent")
    low, high = "rmse_gain_low", "rmse_gain_high"
    ours = result("ours", 0.98, public_items="items", against=known.name, **{low: -0.02, high: 0.06})
    beside = dict(zip(PLAIN, (plain.name, 0.05, 0.02, 0.08), strict=True))
    theirs = result("zheng-rr", 1.05, against=known.name, **{low: -0.09, high: -0.01}, **beside)
    held = Committed(MADE, [plain, ours, theirs, known])
    assert [each.take for each in chosen(held, held.results, RMSE, [False], [1.0])] == [known]
    first, second = gain_columns(RMSE, held.results)
    assert first.title == "against nothing sent, items known"
    assert [first.text(each) for each in (ours, theirs, plain)] == [
        "0.020 ± 0.040, not significant",
        "0.050 ± 0.040 worse",
        "0.100 worse",
    ]
    assert second.title == "against nothing sent"
    assert [second.text(each) for each in (ours, theirs)] == ["–", "0.050 ± 0.030 better"]
    *_, said = references(held, held.results, RMSE, 1.0)
    assert said == (
        "of 1 preset of published systems at ε = 1, `zheng-rr` is significantly better than nothing sent "
        "(0.050 ± 0.030 better) and none is significantly better than nothing sent, items known"
    )


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
    files = read_comparison(tmp_path)
    bits, alone = rows_of(files)
    made = provenance_of(files, "dprec compare mine")
    assert (made.presets, made.runs[:10]) == ({"bits": "one-bit-on-device"}, "seeds 1, 2")
    assert made.splits == {"synthetic": "holdout, test fraction 0.2"}
    assert (bits["status"], bits["trust"], bits["hides_rated_items"]) == ("proved", "local", False)
    assert (bits["rmse"], bits["runs"], bits["epsilon_per_user_max"]) == (0.95, 2, 50.0)
    assert (bits["uplink_message_mean_per_user"], bits["downlink_message_mean_per_user"]) == (100.0, 50.0)
    assert (alone["baseline"], alone["epsilon"]) == ("nothing-sent", None)


def test_links_of_a_block_are_relative_to_its_document() -> None:
    text = "<!-- generated: index -->\n<!-- end -->\n"
    beside = filled(text, ROOT / "docs" / "systems" / "index.md")
    above = filled(text, ROOT / "docs" / "results.md")
    assert "](zheng.md)" in beside
    assert "](systems/zheng.md)" in above
