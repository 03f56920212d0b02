"""The tables of the documents are those of the committed summaries and of the presets."""

import math
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
import yaml

from docs.tables import gallery
from docs.tables.__main__ import documents, filled
from docs.tables.collect import provenance_of, rows_of
from docs.tables.figures import figures
from docs.tables.groups import groups
from docs.tables.leaderboard import leaderboard
from docs.tables.results import RESULTS, files_of, names, papers, summary, systems
from simulation.analysis.groups import row_of
from simulation.analysis.protocol_results import read_comparison
from simulation.configuration.strict_yaml import presets
from simulation.storage.directories import COMPARISON, GROUPS, TABLE
from simulation.storage.files import Row, csv_of_rows
from simulation.storage.summary import GroupSummary
from tests.paths import ROOT
from tests.results import row


@pytest.mark.parametrize("path", list(documents()), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_is_as_generated(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert filled(text, path) == text, "python -m docs.tables rewrites it"


def test_figures_are_as_drawn() -> None:
    for path, drawn in figures():
        assert words_of(path.read_text(encoding="utf-8")) == words_of(drawn), f"python -m docs.tables: {path}"


def words_of(svg: str) -> list[str | None]:
    """Return what stands in a picture, and what its places say when they are pointed at."""
    return [each.text for each in fromstring(svg).iter() if each.tag.endswith(("}text", "}title"))]


@pytest.mark.nightly
@pytest.mark.parametrize("name", gallery.OF_RUNS)
def test_a_picture_of_a_run_is_as_drawn(name: str, tmp_path: Path) -> None:
    stored = (gallery.GALLERY / f"{name}.svg").read_text(encoding="utf-8")
    assert words_of(stored) == words_of(gallery.drawn(name, tmp_path)), (
        "python -m docs.tables.gallery draws it"
    )


def test_the_gallery_has_ten_small_pictures() -> None:
    page = ROOT / "docs" / "gallery.md"
    shown = [
        page.parent / place for place in re.findall(r"!\[.+\]\((.+)\)", page.read_text(encoding="utf-8"))
    ]
    assert len(set(shown)) == 10
    assert set(gallery.GALLERY.iterdir()) <= set(shown)
    assert max(path.stat().st_size for path in shown) < 60_000


def test_every_published_preset_has_one_page() -> None:
    listed = [name for system in systems().values() for name in (*system.presets, *system.references)]
    assert sorted(set(listed)) == sorted(listed)
    assert set(papers()["published"]) <= set(listed)
    assert set(papers()["ours"]) <= {name for system in systems().values() for name in system.variants}
    pages = {path.stem for path in (ROOT / "docs" / "systems").glob("*.md")} - {"index"}
    assert pages == set(systems())


def test_programs_that_chose_settings_are_there_or_described_and_presets_are_known() -> None:
    choosing = ROOT / "benchmarks" / "choosing"
    described = (choosing / "README.md").read_text(encoding="utf-8")
    known = {*presets(), *papers()["changed"]}
    for programs in papers()["tuned"].values():
        for program, tuned in programs.items():
            assert (choosing / f"{program}.py").is_file() or program in described, program
            assert set(tuned) <= known, program


def test_every_summary_says_how_it_was_made() -> None:
    benchmarks = RESULTS / "benchmarks"
    beside = {RESULTS / name / GROUPS for name in names()}
    tables = {path for path in RESULTS.rglob("*.csv") if benchmarks not in path.parents} - beside
    assert tables == {files_of(name)[0] for name in names()}
    for name in names():
        made = summary(name).made
        assert made.command.startswith("dprec compare ")
        assert "seed" in made.runs
        assert {held.data[0] for held in summary(name).results} == set(made.splits)


def test_runs_that_differ_more_than_users_do_have_their_spread() -> None:
    board = leaderboard("ml-100k-u1", "1", "blp-mog-mf", "isgd")
    held = {each.name: each for each in summary("ml-100k-u1").results if each.budget == 1.0}
    assert f"± {held['blp-mog-mf'].mean('deviation'):.3f} over runs" in board
    assert board.count("over runs") == 1


def test_what_an_epsilon_says_to_a_guesser() -> None:
    page = (ROOT / "docs" / "units-and-trust.md").read_text(encoding="utf-8")
    rows = [re.findall(r"[\d.]+", line) for line in page.splitlines() if re.match(r"\| (ε|at most) \|", line)]
    assert len(rows[0]) == len(rows[1]) > 5
    for epsilon, guess in zip(*rows, strict=True):
        right = 1 / (1 + math.exp(-float(epsilon)))
        assert guess == f"{right:.4f}".rstrip("0").rstrip(".") or guess == f"{right:.3f}"


def test_a_comparison_is_summed_up_over_its_seeds(tmp_path: Path) -> None:
    def runs(name: str, budget: float | None, *errors: float, **more: Any) -> list[dict[str, Any]]:
        counts = {"train_ratings": 8, "test_ratings": 2, **more}
        return [row(name, budget, rmse=error, seed=1 + place, **counts) for place, error in enumerate(errors)]

    lines = [*runs("bits", 1.0, 0.9, 1.0), *runs("nothing-sent", None, 1.1, 1.1, baseline="nothing-sent")]
    (tmp_path / TABLE).write_text("".join(csv_of_rows(lines)), encoding="utf-8")
    config = {
        "match": {"epsilon": "rating"},
        "protocols": [{"name": "bits", "preset": "one-bit-on-device"}],
        "cells": {"bits-eps1.0-seed1": {"split": {"kind": "holdout", "test_fraction": 0.2}}},
    }
    (tmp_path / COMPARISON).write_text(yaml.safe_dump(config), encoding="utf-8")
    files = read_comparison(tmp_path)
    bits, alone = rows_of(files)
    made = provenance_of(files, "dprec compare mine")
    assert (made.presets, made.runs[:10]) == ({"bits": "one-bit-on-device"}, "seeds 1, 2")
    assert made.splits == {"made-up": "holdout, test fraction 0.2"}
    assert (bits["status"], bits["rmse"], bits["runs"]) == ("proved", 0.95, 2)
    assert (alone["baseline"], alone["epsilon"]) == ("nothing-sent", None)


def test_a_table_of_groups_has_who_is_worse_off_and_would_be_by_luck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(name: str, budget: float | None, by: str, group: str, rmse: float, worse: float) -> Row:
        figures = dict.fromkeys(GroupSummary.model_fields) | {"users": 3, "test_ratings": 9}
        own = {"group": group, "rmse": rmse, "rmse_alone": 1.1, "worse": worse, "worse_by_chance": 0.026}
        return {**row_of({"name": name, "epsilon": budget}, by, GroupSummary(**{**figures, **own}))}

    lines = [
        line("bits", 1.0, "gender", "F", 0.9456, 0.114),
        line("bits", 3.0, "gender", "F", 0.9, 0.1),
        line("bits", 1.0, "activity", "20 to 33", 1.0, 0.2),
        line("clear", None, "gender", "F", 0.93, 0.0),
    ]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / GROUPS).write_text("".join(csv_of_rows(lines)), encoding="utf-8")
    monkeypatch.setattr("docs.tables.groups.RESULTS", tmp_path)
    assert groups("mine", "gender", "1", "bits", "clear").splitlines() == [
        "|  | alone | `bits` | `clear` |",
        "| --- | --: | --: | --: |",
        "| F | 1.100 | 0.946, 11 % (3) | 0.930, 0 % (3) |",
    ]
