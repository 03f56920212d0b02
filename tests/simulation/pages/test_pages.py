"""The pages: complete, self-contained, escaped, the same every time, and clear about damaged directories."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from dprec.errors import InputError
from simulation import compare, run
from simulation.analysis.columns import figure_column
from simulation.analysis.protocol_results import read_comparison
from simulation.pages import projected, report
from simulation.pages.build import in_one_file
from simulation.pages.comparison_page import comparison_page
from simulation.pages.drawing import Plot, Rendered, render, to_figure
from simulation.pages.page import Section, page, table
from simulation.pages.run_page import run_page
from simulation.pages.words import merged_notes
from simulation.storage.column import Column
from simulation.storage.files import csv_of_rows
from simulation.storage.run_files import holds_comparison, read_run
from tests.approved import check, words_of_page
from tests.refusals import refused_at

Directories = Callable[..., Path]

TINY = {"kind": "synthetic", "users": 40, "items": 50, "ratings": 1200}


FEW: list[dict[str, Any]] = [
    {"name": "plain-mf", "mechanism": "none", "epsilon": None, "rmse": 0.93},
    {"name": "blp-mog-mf", "rmse": 1.05},
    {"name": "pg-mf", "protocol": "iterative", "per": "user", "rounds": 3, "rmse": 1.35},
]
"""Protocols whose page has every kind of figure."""


@dataclass
class Words:
    """A page whose figures are left blank, which takes no time to draw."""

    text: str
    plots: dict[str, Plot]


def words_of(directory: Path, population: float | None = None) -> Words:
    plots: dict[str, Plot] = {}

    def blank(plot: Plot) -> Rendered:
        plots[plot.name] = plot
        return Rendered(plot, "<svg/>", "<svg/>")

    if holds_comparison(directory):
        return Words(comparison_page(read_comparison(directory), population, blank), plots)
    return Words(run_page(read_run(directory), "", population, blank), plots)


class Outline(HTMLParser):
    """Elements, headings and addresses of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.identifiers: list[str] = []
        self.pictures: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for key, value in attrs if key in ("href", "src", "srcset", "action")]
        self.identifiers += [value or "" for key, value in attrs if key == "id"]
        self.pictures += [value or "" for key, value in attrs if key == "role"]
        assert not any(key.startswith("on") or key == "style" for key, _ in attrs)


@pytest.mark.parametrize("kind", ["run", "comparison"])
def test_self_contained_well_formed_and_rebuilt_the_same(
    run_directory: Directories, comparison_directory: Directories, kind: str
) -> None:
    directory = run_directory() if kind == "run" else comparison_directory(FEW, epsilons=[1.0], seeds=[1])
    page = report(directory, 10e6)
    outline = Outline(page)
    files = {address for address in outline.addresses if not address.startswith(("data:", "#"))}
    assert files == ({"comparison.csv", "figures/"} if kind == "comparison" else set())
    assert "http" not in re.sub(r"data:[^\"]*|http-equiv|http://www.w3.org[^\"]*", "", page.read_text())
    headings = [int(tag[1]) for tag in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    figures = {path.stem for path in (directory / "figures").glob("*.svg")}
    assert len(figures) == len(list((directory / "figures").iterdir()))
    assert outline.pictures.count("img") == outline.tags.count("figcaption") == len(figures) >= 3
    assert outline.tags.count("svg") >= len(figures)
    assert len(set(outline.identifiers)) == len(outline.identifiers)
    assert {address[1:] for address in outline.addresses if address[0] == "#"} <= set(outline.identifiers)
    assert page.stat().st_size < 1e6
    assert not list(directory.glob("**/.*"))
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    report(directory, 10e6)
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_a_comparison_in_one_file_holds_its_runs_and_its_table(comparison_directory: Directories) -> None:
    directory = comparison_directory(FEW, epsilons=[1.0, 2.0], seeds=[1])
    whole = report(directory, single_file=True)
    outline, page = Outline(whole), whole.read_text()
    assert whole != directory / "report.html"
    assert all(address.startswith(("data:", "#")) for address in outline.addresses)
    assert len(set(outline.identifiers)) == len(outline.identifiers)
    assert {address[1:] for address in outline.addresses if address[0] == "#"} <= set(outline.identifiers)
    runs = {path.parent.name for path in directory.glob("cells/*/report.html")}
    assert set(re.findall("One run: ([^<]*)<", page)) == runs != set()
    (table,) = {each for each in outline.addresses if each.startswith("data:text/csv;base64,")}
    assert base64.b64decode(table.partition(",")[2]) == (directory / "comparison.csv").read_bytes()
    before = (directory / "report.html").read_bytes()
    assert report(directory, single_file=True).read_text() == page
    assert (directory / "report.html").read_bytes() == before


def test_a_single_file_takes_nothing_from_outside_its_directory(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("secret")
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "plain.csv").write_text("a,b")
    (inside / "other.key").write_text("key")
    (inside / "sub").mkdir()
    names = ["../secret.csv", "%2E%2E/secret.csv", "link.csv", "/etc/passwd", "other.key", "sub/", "none.csv"]
    links = "".join(f'<a href="{name}">{name}</a>' for name in [*names, "plain.csv"])
    page = in_one_file(f"<main>{links}</main>", inside)
    assert page.count("<a>") == len(names)
    assert page.count("href=") == 1
    assert base64.b64encode(b"a,b").decode() in page


@pytest.mark.thorough
def test_figures_are_images_too_where_that_is_asked_for(run_directory: Directories) -> None:
    directory = run_directory()
    page = report(directory).read_text()
    assert report(directory, png=True).read_text() == page
    images = list((directory / "figures").glob("*.png"))
    assert {path.stem for path in images} == {path.stem for path in (directory / "figures").glob("*.svg")}


def test_hostile_text_is_text(run_directory: Directories, hostile: str) -> None:
    directory = run_directory(
        notes=[hostile],
        altered=dict.fromkeys(("name", "protocol", "mechanism", "completion", "dataset.kind"), hostile),
    )
    (directory / "config.yaml").write_text(yaml.safe_dump({"name": hostile, hostile: hostile}))
    page = words_of(directory).text
    assert hostile not in page
    assert page.count("<script") == 1
    assert str(escape(hostile)) in page


def test_hostile_comparisons_are_text(comparison_directory: Directories) -> None:
    bad = "<img src=x onerror=alert(1)>&$\\frac{$"
    directory = comparison_directory(
        [
            {"name": bad, "rmse": 1.0, "notes": [bad]},
            {"name": "b" * 200, "rmse": 1.0, "epsilon": None, "mechanism": "none"},
        ],
        title=bad,
        published=[{"label": bad, "up": bad, "down": bad, "source": bad}],
    )
    page = report(directory, 1e3).read_text()
    assert bad not in page
    assert "<img src=x" not in page


def _claims(directory: Path) -> Path:
    """Make a protocol of a comparison one that only claims, leave a run unfinished, and sample noise."""
    table = directory / "comparison.csv"
    table.write_text(re.sub(r"(?m)^(two,.*),proved,", r"\1,claimed,", table.read_text()))
    planned = yaml.safe_load((directory / "comparison.yaml").read_text())
    planned["cells"]["lost-eps1-seed9"] = {}
    (directory / "comparison.yaml").write_text(yaml.safe_dump(planned))
    intervals = ((-2.0, -1.0, 0.2, 0.25), (-1.0, 1.0, 0.55, 0.5), (1.0, 2.0, 0.25, 0.25))
    names = ("low", "high", "sampled_share", "theoretical_probability")
    noise = {"protocol": "one", "mechanism": "laplace", "epsilon": 1.0}
    rows = [{**noise, **dict(zip(names, each, strict=True))} for each in intervals]
    (directory / "noise.csv").write_text("".join(csv_of_rows(rows)))
    return directory


NOTED: list[dict[str, Any]] = [
    {"name": "one", "rmse": 1.0, "notes": ["Of both.", "Of one."], "completion": "mf"},
    {"name": "two", "rmse": 1.1, "notes": ["Of both."], "altered": {"privacy.status": "claimed"}},
    {"name": "plain", "rmse": 0.9, "notes": [], "epsilon": None, "mechanism": "none", "completion": "mf"},
]
TRUSTED: list[dict[str, Any]] = [
    {"name": "local", "per": "user", "rmse": 1.2},
    {"name": "central", "per": "user", "rmse": 0.9, "trust": "central"},
]
PUBLISHED = [
    {"label": "blp-mog-mf", "up": "1 bit", "down": "No transfer", "source": "Neera et al., Table 4"},
    {"label": "unknown", "up": "1 bit", "down": "0.15MB", "source": "Neera et al., Table 4"},
]


@pytest.mark.parametrize(
    "name", ["run", "run-in-rounds", "comparison", "comparison-per-user", "comparison-noted"]
)
def test_a_page_is_as_approved(tmp_path: Path, writers: dict[str, Directories], name: str) -> None:
    run, comparison, with_baseline = (writers[key] for key in ("run", "comparison", "baseline"))
    matched = {"epsilon": "user", "delta": 1e-6}
    left_out = {"other": "5 domains; accepted: 2 <domains>"}
    make: dict[str, Callable[[Path], Path]] = {
        "run": lambda path: run(path, completion="mf", notes=["Mind the gap."]),
        "run-in-rounds": lambda path: run(path, protocol="iterative", rounds=6, per="user"),
        "comparison": lambda path: with_baseline(
            with_baseline(with_baseline(comparison(path, published=PUBLISHED), 1.1), 1.05, "item-average"),
            0.95,
            "sets-only",
        ),
        "comparison-per-user": lambda path: with_baseline(comparison(path, TRUSTED, match=matched), 1.1),
        "comparison-noted": lambda path: _claims(
            comparison(path, NOTED, epsilons=[1.0], seeds=[1], left_out=left_out)
        ),
    }
    words = words_of(make[name](tmp_path / "study"), 1e6)
    check(f"page-{name}", words_of_page(words.text))


def test_what_does_not_apply_is_a_dash_or_absent(run_directory: Directories) -> None:
    page = words_of(
        run_directory(mechanism="none", epsilon=None, completion="mf", notes=["No privacy."])
    ).text
    assert "<dt>ε per rating</dt><dd>–" in page
    assert "Noise of the mechanism" not in page
    assert ">Traffic of a deployment</h2>" not in page
    assert "--population 10e6</code> adds the traffic of a deployment" in page
    assert ">nan<" not in page


@pytest.mark.parametrize(
    ("other", "kinds"),
    [
        ({"metric": "sign_accuracy", "completion": "mf"}, ("rmse", "sign-accuracy")),
        ({"altered": {"dataset.kind": "movielens-genres"}}, ("synthetic", "movielens-genres")),
    ],
)
def test_accuracies_of_two_things_share_no_figure(
    comparison_directory: Directories, other: dict[str, Any], kinds: tuple[str, str]
) -> None:
    words = words_of(
        comparison_directory([{"name": "blp", "rmse": 1.0}, {"name": "bits", "rmse": 0.7, **other}])
    )
    for kind, drawn, elsewhere in zip(kinds, ("blp", "bits"), ("bits", "blp"), strict=True):
        axes = to_figure(words.plots[f"accuracy-bytes-{kind}"]).axes
        shown = {text.get_text() for ax in axes for text in ax.texts}
        assert (drawn in shown, elsewhere in shown) == (True, False)


def test_figures_of_a_hostile_table_stay_in_their_directory(comparison_directory: Directories) -> None:
    kinds = ("< 1", "> 1", "../../elsewhere")
    hostile = [{"name": kind[0], "rmse": 1.0, "altered": {"dataset.kind": kind}} for kind in kinds]
    words = words_of(comparison_directory(hostile))
    assert {"accuracy-bytes-1", "accuracy-bytes-1-2", "accuracy-bytes-elsewhere"} <= set(words.plots)
    assert not any("/" in name for name in words.plots)


def test_a_table_without_its_runs_makes_a_page(comparison_directory: Directories, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (comparison_directory() / "comparison.csv").rename(bare / "comparison.csv")
    words = words_of(bare, 1e6)
    assert "– The runs themselves are not in this directory." in words.text
    assert "accuracy-bytes" in words.plots


def test_names_in_a_table_do_not_lead_out_of_the_directory(
    comparison_directory: Directories, tmp_path: Path
) -> None:
    directory = comparison_directory([{"name": "blp", "rmse": 1.0}], epsilons=[1.0], seeds=[1])
    (cell,) = (directory / "cells").iterdir()
    cell.rename(tmp_path / cell.name.replace("blp", "away"))
    table = directory / "comparison.csv"
    table.write_text(table.read_text().replace("\nblp,", "\n../../away,"))
    with refused_at("comparison.csv"):
        words_of(directory)
    assert "– The runs themselves are not in this directory." in words_of(directory).text


def test_projection_on_page_and_terminal(
    comparison_directory: Directories, capsys: pytest.CaptureFixture[str]
) -> None:
    from simulation.console.command_line import main

    directory = comparison_directory(FEW[:1], seeds=[1])
    with pytest.raises(SystemExit) as ended:
        main(["report", str(directory), "--population", "10e6"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "traffic of 10,000,000 users a day" in shown
    assert "10,000,000 users a day" in (directory / "report.html").read_text()
    label, projection = projected(directory, 10e6)[0]
    assert f"{projection.total:,.0f}" in shown
    assert label == "plain-mf"


def test_missing_and_foreign_directories(tmp_path: Path, run_directory: Directories) -> None:
    with refused_at("nowhere"):
        report(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"neither summary.json nor comparison.csv"):
        report(tmp_path)
    directory = run_directory()
    (directory / "traffic.csv").unlink()
    with refused_at("traffic.csv"):
        report(directory)
    (directory / "summary.json").unlink()
    with pytest.raises(InputError, match="an unfinished run"):
        report(directory)


def test_runs_and_comparisons_leave_pages_that_link_to_each_other(tmp_path: Path) -> None:
    shared = {"dataset": TINY, "split": {"kind": "holdout", "test_fraction": 0.2}}
    protocol = {
        "kind": "one-shot",
        "privacy": {"epsilon": 1.0, "per": "rating"},
        "mechanism": {"kind": "bounded-laplace"},
        "completion": {"kind": "mf", "rank": 2, "iterations": 3},
    }
    study = {
        "name": "study",
        "epsilons": [1.0, 2.0],
        "protocols": ["blp"],
        "published": [{"label": "blp", "up": "1 bit", "down": "No transfer", "source": "Table 4"}],
        "simulation": {"backend": "local"},
        **shared,
    }
    preset = {"name": "blp", "protocol": protocol, **shared}
    (tmp_path / "blp.yaml").write_text(yaml.safe_dump(preset))
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    result = compare(tmp_path / "study.yaml", tmp_path / "out", population=1e6)
    page, run_page = (tmp_path / "out" / "report.html").read_text(), "cells/blp-eps1.0-seed0/report.html"
    assert "No transfer" in page
    pages = {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("report.html")}
    assert pages == {"report.html", run_page}
    assert set(re.findall('<a href="([^#"]*)"', page)) == {run_page, "comparison.csv", "figures/"}
    # In the headline and among all results; the line at another budget is not about that run.
    assert page.count(f'<a href="{run_page}">blp</a>') == 2
    (tmp_path / "out" / run_page).unlink()
    assert run_page not in words_of(tmp_path / "out").text
    assert isinstance(result.plot(), Figure)
    alone = run({**preset, "simulation": {"backend": "local"}}, tmp_path / "run", page=False)
    assert len(alone.plot().axes) == 3


def test_tables_name_rows_sort_by_values_and_escape_what_is_not_markup() -> None:
    named: Column[str] = Column(
        "<b>", "<i>", value=lambda line: line or None, text=lambda line: line, holds=str
    )
    figures: dict[str, float | None] = {"<u>": None, "y": 1000.0}
    columns = [named, figure_column("b", "", figures.__getitem__, 0)]
    shown = table('"&', columns, list(figures))
    assert "<caption>&#34;&amp;</caption>" in shown
    assert 'aria-label="&#34;&amp;"' in shown
    assert "<span>&lt;b&gt;</span> <small>&lt;i&gt;</small>" in shown
    assert '<th scope="row" data-value="&lt;u&gt;">&lt;u&gt;</th>' in shown
    assert '</th><td class="number none" data-label="b">–</td>' in shown
    assert 'data-value="1000.0">1,000</td>' in shown
    assert "<u>&amp;</u></th>" in table("t", [named], [Markup("<u>&amp;</u>")])


def test_a_page_has_the_answer_then_notes_then_contents_and_leaves_empty_sections_out() -> None:
    notes = [f"Note {number}." for number in range(7)]
    sections = [Section(f"part-{number}", f"Part {number}", ("Words.",), number == 2) for number in range(4)]
    sections.append(Section("empty", "Empty", ("", [])))
    shown = page("Title", "dprec run", "", notes, sections, render, Markup("<p>42</p>"))
    parts = "<p>42</p>", "Note 4.", "2 more notes", "Note 5.", 'href="#part-0"', 'id="part-0"'
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)
    assert shown.count("<details") == 2
    assert '<summary><h2 id="part-2">Part 2</h2></summary>' in shown
    assert "Empty" not in shown
    assert "Contents" not in page("Title", "dprec run", "", [], sections[:3], render)


def test_notes_that_differ_in_numbers_are_merged() -> None:
    fake = "94 of 1,200 are fake."
    notes = [("a", fake), ("a", "7 of 80 are fake."), ("b", fake), ("b", "Other.")]
    assert merged_notes(notes) == [(["a", "b"], fake, 1), (["b"], "Other.", 0)]
