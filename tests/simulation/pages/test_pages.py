"""The pages: complete, self-contained, escaped, the same every time, and clear about damaged directories."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from simulation.analysis.comparison_files import read_comparison
from simulation.analysis.protocol_results import read_rows
from simulation.pages import projected, report
from simulation.pages.comparison_page import comparison_page
from simulation.pages.figures.rendering import Plot, Rendered
from simulation.pages.page import Cell, Column, Section, page, table
from simulation.pages.run_page import run_page
from simulation.pages.run_sections import example_sections
from simulation.pages.words import merged_notes
from simulation.storage.run_files import ExampleUser, holds_comparison, read_run
from simulation.storage.tables import csv_of_rows

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
        return Rendered(plot, "<svg/>", "<svg/>", b"")

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
    assert all(address.startswith(("data:", "#")) for address in outline.addresses)
    assert "http" not in re.sub(r"data:[^\"]*|http-equiv|http://www.w3.org[^\"]*", "", page.read_text())
    headings = [int(tag[1]) for tag in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    figures = {path.stem for path in (directory / "figures").glob("*.svg")}
    assert figures == {path.stem for path in (directory / "figures").glob("*.png")}
    assert outline.pictures.count("img") == outline.tags.count("figcaption") == len(figures) >= 4
    assert outline.tags.count("svg") == 2 * len(figures)
    assert len(set(outline.identifiers)) == len(outline.identifiers)
    assert {address[1:] for address in outline.addresses if address[0] == "#"} <= set(outline.identifiers)
    assert page.stat().st_size < 1e6
    assert not list(directory.glob("**/.*"))
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    report(directory, 10e6)
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


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


def test_what_does_not_apply_is_a_dash_or_absent(run_directory: Directories) -> None:
    page = words_of(
        run_directory(mechanism="none", epsilon=None, completion="mf", notes=["No privacy."])
    ).text
    assert "<dt>ε per rating</dt><dd>–" in page
    assert "Noise of the mechanism" not in page
    assert "Accuracy against bytes, by round" not in page
    assert ">Traffic of a deployment</h2>" not in page
    assert "--population 10e6</code> adds the traffic of a deployment" in page
    assert ">nan<" not in page


def test_the_answer_comes_first_then_the_notes_and_the_rest_is_folded(run_directory: Directories) -> None:
    page = words_of(run_directory(notes=["Mind the gap."])).text
    order = ["RMSE 1.100 on 400 held-out ratings", "The run at a glance", "<dl", "Mind the gap.", '"folded"']
    assert order == sorted(order, key=page.index)
    assert page.count("<section") == page.count('"folded"') + 1


def test_what_is_beyond_the_paper_is_said_of_a_run_and_once_for_a_comparison(
    run_directory: Directories, comparison_directory: Directories
) -> None:
    note = "completion.kind is mf, which is ours: no paper has it as it is."
    page = words_of(run_directory(completion="mf")).text
    assert page.index(f"Beyond the paper: {note}") < page.index('"folded"')
    others = [{"name": name, "completion": "mf", "rmse": 1.0} for name in ("one", "two")]
    compared = words_of(comparison_directory([*others, {"name": "three", "rmse": 1.1}])).text
    assert compared.count(note) == 1
    assert f"<strong>one and two:</strong> Beyond the paper: {note}" in compared


def test_items_are_called_by_their_names(run_directory: Directories, hostile: str) -> None:
    files = read_run(run_directory(altered={"item_names": {"1": hostile, "2": "Heat (1995)"}}))
    assert files.example is None
    example = ExampleUser("9", (("1", 4.0, 3.456), ("2", 5.0, 4.0), ("3", 2.0, 1.0)))
    (section,) = example_sections(replace(files, example=example))
    assert str(escape(hostile)) in section.content[0]
    assert hostile not in section.content[0]
    assert "Heat (1995)</th>" in section.content[0]
    assert ">3</th>" in section.content[0]
    assert ">3.46</td>" in section.content[0]


def test_an_iterative_run_shows_its_course(run_directory: Directories) -> None:
    words = words_of(run_directory(protocol="iterative", rounds=6, per="user"))
    assert "rounds" in words.plots
    assert "after round 6" in words.plots["rounds"].alt
    assert words.text.count("<tr>") > 6


def test_accuracies_of_two_kinds_share_no_figure(comparison_directory: Directories) -> None:
    words = words_of(
        comparison_directory(
            [
                {"name": "blp", "rmse": 1.0},
                {"name": "bits", "rmse": 0.7, "metric": "sign_accuracy", "completion": "mf"},
            ]
        )
    )
    assert "blp" not in words.plots["accuracy-bytes-sign-accuracy"].alt
    assert "bits" not in words.plots["accuracy-bytes-rmse"].alt
    assert "Every protocol, every figure (Sign accuracy)" in words.text


def test_accuracies_on_two_data_sets_share_no_figure(comparison_directory: Directories) -> None:
    words = words_of(
        comparison_directory(
            [
                {"name": "blp", "rmse": 1.0},
                {"name": "x-map", "rmse": 0.7, "altered": {"dataset.kind": "movielens-genres"}},
            ]
        )
    )
    assert "blp" not in words.plots["accuracy-bytes-movielens-genres"].alt
    assert "x-map" not in words.plots["accuracy-bytes-synthetic"].alt
    assert "Every protocol, every figure (movielens-genres)" in words.text


def test_figures_of_a_hostile_table_stay_in_their_directory(comparison_directory: Directories) -> None:
    hostile = {"name": "a", "rmse": 1.0, "altered": {"dataset.kind": "../../elsewhere"}}
    words = words_of(comparison_directory([hostile, {"name": "b", "rmse": 0.7}]))
    assert "accuracy-bytes-elsewhere" in words.plots
    assert not any("/" in name for name in words.plots)


def test_figures_of_groups_with_like_names_do_not_overwrite_each_other(
    comparison_directory: Directories,
) -> None:
    alike = [
        {"name": name, "rmse": 1.0, "altered": {"dataset.kind": f"{name} 1"}} for name in ("<", ">", "=")
    ]
    words = words_of(comparison_directory(alike))
    assert {f"accuracy-bytes-1{end}" for end in ("", "-2", "-3")} <= set(words.plots)


def test_one_shot_and_iterative_by_round(comparison_directory: Directories) -> None:
    described = words_of(comparison_directory()).plots["accuracy-rounds"].alt
    assert "pg-mf 2.645 to 1.565 in 10 rounds and 683 kB" in described
    assert "isgd 1.215 in one round" in described


def test_alternative_texts_say_what_is_seen(comparison_directory: Directories) -> None:
    described = words_of(comparison_directory()).plots["accuracy-epsilon-per-rating"].alt
    assert "isgd 1.415 at 0.5 to 1.082 at 3" in described
    assert "plain-mf 0.945 without privacy, as a horizontal line" in described


def test_the_answer_says_first_that_nothing_is_better_than_nothing_sent(
    comparison_directory: Directories, floored: Directories
) -> None:
    words = words_of(floored(comparison_directory(), 1.1))
    first = words.text.split("<p>")[1]
    assert first.startswith(
        "At ε = 1 per rating nothing here beats sending nothing: every device alone reaches RMSE 1.100, and "
        "the nearest protocol, isgd, is 0.115 ± 0.064 worse.</p>"
    )
    assert (
        "At ε = 0.5, 1 and 3 per rating, none of the 4 private protocols beats nothing sent (RMSE 1.100) by "
        "more than the uncertainty of the difference (nearest at ε = 3: isgd, 0.018 ± 0.064 better)."
    ) in words.text.split('id="best">')[1]
    assert "5 protocols beside 1 baseline at 3 budgets" in words.text
    assert "At each trust" not in words.text


def test_tables_and_figures_hold_everything_against_nothing_sent(
    comparison_directory: Directories, floored: Directories
) -> None:
    directory = floored(floored(comparison_directory(), 1.1), 1.05, "item-average")
    words = words_of(directory)
    # Twice in the table of the best, for the most accurate and for the cheapest.
    assert words.text.count("<span>against nothing sent</span>") == 3
    assert "<small>RMSE, ± 95 % interval over 2 seeds</small>" in words.text
    assert ">0.115 ± 0.064 worse</td>" in words.text
    for name in ("accuracy-epsilon-per-rating", "accuracy-bytes", "accuracy-rounds"):
        assert "item-average 1.050, a baseline, as a horizontal line" in words.plots[name].alt
        assert "nothing-sent solid and item-average dotted. Shaded: worse" in words.plots[name].caption
    assert ">item-average</th>" in words.text


def test_a_comparison_per_user_answers_at_each_trust(
    comparison_directory: Directories, floored: Directories
) -> None:
    protocols = [
        {"name": "local", "per": "user", "rmse": 1.2},
        {"name": "central", "per": "user", "rmse": 0.9, "trust": "central"},
    ]
    matched = {"epsilon": "user", "delta": 1e-6}
    directory = floored(comparison_directory(protocols, match=matched), 1.1)
    words = words_of(directory)
    section = words.text.split("At each trust</h2>")[1].split("<h2")[0]
    lines = [line.split("</tr>")[0] for line in section.split("<tr")[2:]]
    assert [re.findall(r"nobody is trusted|the server is trusted", line)[0] for line in lines] == [
        *["nobody is trusted"] * 3,
        *["the server is trusted"] * 3,
    ]
    assert [("central" in line, ">yes<" in line) for line in lines] == [
        *[(False, False)] * 3,
        (True, False),
        *[(True, True)] * 2,
    ]
    assert "accuracy-epsilon-per-rating" not in words.plots
    assert "ε per user at δ = 1e-06" in words.plots["accuracy-epsilon-per-user"].alt
    assert "Colours and families of markers say whom users trust." in words.plots["accuracy-bytes"].caption


def test_a_note_of_every_protocol_is_not_one_of_a_baseline(comparison_directory: Directories) -> None:
    directory = comparison_directory(
        [
            {"name": "a", "rmse": 1.0},
            {"name": "b", "rmse": 1.1, "notes": ["Of b alone."]},
            {"name": "item-average", "rmse": 1.2},
        ]
    )
    table = directory / "comparison.csv"
    rows = read_rows(table)
    for row in rows:
        row["baseline"] = "item-average" if row["name"] == "item-average" else None
    table.write_text("".join(csv_of_rows(rows)))
    (directory / "tables.json").unlink()
    page = words_of(directory).text
    assert "<strong>a and item-average:</strong> Which items" in page
    assert "<strong>Every protocol and every baseline:</strong> Proved: as made up." in page


def test_a_comparison_says_what_the_visible_set_alone_gives(
    comparison_directory: Directories, floored: Directories
) -> None:
    words = words_of(floored(floored(comparison_directory(), 1.1), 0.95, "sets-only"))
    assert (
        "<p>The rated items alone, without values, give RMSE 0.950 (sets-only), against 1.100 with nothing "
        "sent; the server sees them, and the table" in words.text.split('id="best">')[1]
    )


def test_a_table_without_baselines_is_held_against_none(comparison_directory: Directories) -> None:
    words = words_of(comparison_directory())
    assert "nothing sent" not in words.text
    assert not any("baseline" in plot.caption + plot.alt for plot in words.plots.values())


def test_unfinished_runs_are_named(comparison_directory: Directories) -> None:
    directory = comparison_directory()
    config = yaml.safe_load((directory / "comparison.yaml").read_text())
    config["cells"]["lost-eps1-seed9"] = {}
    (directory / "comparison.yaml").write_text(yaml.safe_dump(config))
    planned = len(config["cells"])
    expected = (
        f"{planned - 1} of {planned} runs are finished, without lost-eps1-seed9. While the comparison runs"
    )
    assert expected in words_of(directory).text


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
    with pytest.raises(InputError, match=r"comparison\.csv: changed since it was written"):
        words_of(directory)
    (directory / "tables.json").unlink()
    assert "– The runs themselves are not in this directory." in words_of(directory).text


def test_a_table_without_accuracy_makes_a_page_without_an_answer(tmp_path: Path) -> None:
    private = {"status": "proved", "epsilon_per_rating": 1.0, "epsilon_per_user_max": 9.0, "fold": None}
    sent = {"uplink_message_mean_per_user": 9.0, "downlink_message_mean_per_user": 9.0}
    row = {"name": "noisy", "epsilon": 1.0, "seed": 1, **private, **sent}
    (tmp_path / "comparison.csv").write_text("".join(csv_of_rows([row])))
    text = words_of(tmp_path).text
    assert "How it was made" in text
    assert 'id="answer"' not in text


def test_notes_of_the_whole_comparison_come_first_and_those_of_protocols_last(
    comparison_directory: Directories,
) -> None:
    protocols = [
        {"name": "one", "rmse": 1.0, "notes": ["Of both.", "Of one."]},
        {"name": "two", "rmse": 1.1, "notes": ["Of both."], "altered": {"privacy.status": "claimed"}},
        {"name": "plain", "rmse": 0.9, "notes": [], "epsilon": None, "mechanism": "none", "completion": "mf"},
    ]
    directory = comparison_directory(
        protocols, epsilons=[1.0], seeds=[1], left_out={"other": "5 domains; accepted: 2 <domains>"}
    )
    table = directory / "comparison.csv"
    table.write_text(re.sub(r"(?m)^(two,.*),proved,", r"\1,claimed,", table.read_text()))
    (directory / "tables.json").unlink()
    text = words_of(directory).text
    first, last = (text.index(part) for part in ("Read this first", 'id="notes-of-protocols"'))
    order = [
        "other: 5 domains; accepted: 2 &lt;domains&gt;",
        "<strong>two:</strong> the ε is claimed",
        "Of both.",
    ]
    places = [first, *(text.index(note) for note in order), last, text.index("<strong>one:</strong> Of one.")]
    assert places == sorted(places)
    assert "<strong>Every protocol with a budget:</strong> Of both." in text


def test_published_costs_stand_beside_measured_ones(comparison_directory: Directories) -> None:
    published = [
        {"label": "blp-mog-mf", "up": "1 bit", "down": "No transfer", "source": "Neera et al., Table 4"},
        {"label": "unknown", "up": "1 bit", "down": "0.15MB", "source": "Neera et al., Table 4"},
    ]
    page = words_of(comparison_directory(published=published)).text
    assert "Published costs beside measured ones" in page
    assert "No transfer" in page
    assert ">unknown</th>" in page


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


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("summary.json", "{", "summary.json: .*accepted: a JSON object"),
        ("summary.json", "[]", r"\[\]; accepted: a JSON object"),
        ("summary.json", "{}", "summary.json: name: missing; accepted: the key"),
        ("rounds.jsonl", '{"round": 1}\nx\n', "rounds.jsonl: 2 rows; accepted: 1 row,"),
        ("traffic.csv", "user,ratings\n1,2\n", "traffic.csv: 1 row; accepted: 120 rows"),
        ("predictions.csv", "", "predictions.csv: 0 rows; accepted: 400 rows"),
        ("config.yaml", "- 1\n", "config.yaml: a list"),
    ],
)
def test_damaged_files_are_named(run_directory: Directories, name: str, content: str, complaint: str) -> None:
    directory = run_directory()
    (directory / name).write_text(content)
    with pytest.raises(InputError, match=complaint):
        report(directory)


def test_missing_and_foreign_directories(tmp_path: Path, run_directory: Directories) -> None:
    with pytest.raises(InputError, match="no such directory"):
        report(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"neither summary.json nor comparison.csv"):
        report(tmp_path)
    directory = run_directory()
    (directory / "traffic.csv").unlink()
    with pytest.raises(InputError, match=r"traffic.csv: No such file"):
        report(directory)
    (directory / "summary.json").unlink()
    with pytest.raises(InputError, match="an unfinished run"):
        report(directory)


def test_a_summary_of_the_wrong_types_is_named(run_directory: Directories) -> None:
    directory = run_directory()
    summary = json.loads((directory / "summary.json").read_text())
    summary["traffic"]["users"] = True
    (directory / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(InputError, match=r"summary.json: traffic.users: true; accepted: an integer"):
        report(directory)


def test_a_run_leaves_a_page_and_can_be_plotted(tmp_path: Path) -> None:
    config = {
        "name": "tiny",
        "dataset": TINY,
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "protocol": {
            "kind": "one-shot",
            "privacy": {"epsilon": 1.0, "per": "rating"},
            "mechanism": {"kind": "bounded-laplace"},
            "completion": {"kind": "mog-mf", "rank": 2, "iterations": 5},
        },
        "simulation": {"backend": "local"},
    }
    result = run(config, tmp_path / "run", population=1e6)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "1,000,000 users a day" in page
    assert "How the mixture was fitted" in page
    figure = result.plot()
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 3


def test_a_comparison_leaves_a_page_and_one_of_each_protocol_to_which_it_links(tmp_path: Path) -> None:
    preset = {
        "name": "blp",
        "dataset": TINY,
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "protocol": {
            "kind": "one-shot",
            "privacy": {"epsilon": 1.0, "per": "rating"},
            "mechanism": {"kind": "bounded-laplace"},
            "completion": {"kind": "mf", "rank": 2, "iterations": 3},
        },
    }
    study = {
        "name": "study",
        "dataset": TINY,
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "epsilons": [1.0, 2.0],
        "protocols": ["blp"],
        "published": [{"label": "blp", "up": "1 bit", "down": "No transfer", "source": "Table 4"}],
        "simulation": {"backend": "local"},
    }
    (tmp_path / "blp.yaml").write_text(yaml.safe_dump(preset))
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    compare(tmp_path / "study.yaml", tmp_path / "out", population=1e6)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "No transfer" in page
    run_page = "cells/blp-eps1.0-seed0/report.html"
    assert {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("report.html")} == {
        "report.html",
        run_page,
    }
    assert set(re.findall('<a href="([^#"]*)"', page)) == {run_page}
    # The lines of the protocol at another budget are not about that run.
    assert page.count(f'<a href="{run_page}">blp</a>') == 4
    (tmp_path / "out" / run_page).unlink()
    assert run_page not in words_of(tmp_path / "out").text


def test_templates_escape_what_is_not_markup() -> None:
    shown = table(
        '"&', [Column("<b>", "<i>", numeric=False)], [[Cell("<u>", "<u>")], [Cell(Markup("<u>&amp;</u>"))]]
    )
    assert "<caption>&#34;&amp;</caption>" in shown
    assert 'aria-label="&#34;&amp;"' in shown
    assert "<span>&lt;b&gt;</span> <small>&lt;i&gt;</small>" in shown
    assert '<th scope="row" data-value="&lt;u&gt;">&lt;u&gt;</th>' in shown
    assert '<th scope="row"><u>&amp;</u></th>' in shown


def test_tables_name_rows_and_sort_by_values() -> None:
    shown = table(
        "t",
        [Column("a", numeric=False), Column("b")],
        [[Cell("x", "x"), Cell("–")], [Cell("y", "y"), Cell("1,000", 1000.0)]],
    )
    assert '<th scope="row" data-value="x">x</th><td class="number">–</td>' in shown
    assert 'data-value="1000.0">1,000</td>' in shown


def test_many_notes_are_folded_after_the_first() -> None:
    notes = [f"Note {number}." for number in range(9)]
    unfolded, _, rest = page("Many", "dprec run", "", notes, []).partition("<details>")
    folded = rest.partition("</details>")[0]
    assert "4 more notes" in folded
    assert [note in unfolded for note in notes] == [True] * 5 + [False] * 4
    assert [note in folded for note in notes] == [False] * 5 + [True] * 4
    assert "1 more note<" in page("Six", "dprec run", "", notes[:6], [])
    assert "more note" not in page("Few", "dprec run", "", notes[:5], [])


def test_the_answer_comes_before_the_notes_and_these_before_the_contents() -> None:
    sections = [Section(f"part-{number}", f"Part {number}", ("Words.",), number == 2) for number in range(3)]
    shown = page("Title", "dprec run", "", ["Note."], sections, Markup("<p>42</p>"))
    places = [shown.index(part) for part in ("<p>42</p>", "Note.", 'href="#part-0"', 'id="part-0"')]
    assert places == sorted(places)
    assert shown.count("<details") == 1
    assert '<summary><h2 id="part-2">Part 2</h2></summary>' in shown
    assert "Contents" not in page("Title", "dprec run", "", [], sections[:2])


def test_notes_that_differ_in_numbers_are_merged() -> None:
    notes = [
        ("a", "94 of 1,200 are fake."),
        ("a", "7 of 80 are fake."),
        ("b", "94 of 1,200 are fake."),
        ("b", "Other."),
    ]
    assert merged_notes(notes) == [(["a", "b"], "94 of 1,200 are fake.", 1), (["b"], "Other.", 0)]
