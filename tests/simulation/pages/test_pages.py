"""The pages: complete, self-contained, escaped, the same every time, and clear about damaged directories."""

import base64
import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from markupsafe import escape
from matplotlib.figure import Figure

from dprec.errors import InputError
from simulation import compare, run
from simulation.pages import report
from simulation.pages.build import in_one_file
from simulation.pages.drawing import to_figure
from simulation.storage.files import csv_of_rows
from tests.approved import check, words_of_page
from tests.refusals import refused_at
from tests.simulation.pages.conftest import HOSTILE, add_baseline, words_of, write_comparison, write_run

Directories = Callable[..., Path]

FEW: list[dict[str, Any]] = [
    {"name": "plain-mf", "mechanism": "none", "epsilon": None, "rmse": 0.93},
    {"name": "blp-mog-mf", "rmse": 1.05},
    {"name": "pg-mf", "protocol": "iterative", "per": "user", "rounds": 3, "rmse": 1.35},
]
"""Protocols whose page has every kind of figure."""


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
    assert outline.pictures.count("img") == outline.tags.count("figcaption") == len(figures) >= 2
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


def test_hostile_text_is_text(run_directory: Directories) -> None:
    directory = run_directory(
        notes=[HOSTILE],
        altered=dict.fromkeys(("name", "protocol", "mechanism", "completion", "dataset.kind"), HOSTILE),
    )
    (directory / "config.yaml").write_text(yaml.safe_dump({"name": HOSTILE, HOSTILE: HOSTILE}))
    page = words_of(directory)[0]
    assert HOSTILE not in page
    assert page.count("<script") == 1
    assert str(escape(HOSTILE)) in page


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
def test_a_page_is_as_approved(tmp_path: Path, name: str) -> None:
    matched = {"epsilon": "user", "delta": 1e-6}
    once = {"epsilons": [1.0], "seeds": [1], "left_out": {"other": "5 domains; accepted: 2 <domains>"}}
    folder = tmp_path / "study"
    if name == "run":
        write_run(folder, completion="mf", notes=["Mind the gap."])
    elif name == "run-in-rounds":
        write_run(folder, protocol="iterative", rounds=6, per="user")
    elif name == "comparison-noted":
        _claims(write_comparison(folder, NOTED, **once))
    elif name == "comparison-per-user":
        add_baseline(write_comparison(folder, TRUSTED, match=matched), 1.1)
    else:
        write_comparison(folder, published=PUBLISHED)
        for baseline, rmse in {"nothing-sent": 1.1, "item-average": 1.05, "sets-only": 0.95}.items():
            add_baseline(folder, rmse, baseline)
    words, _ = words_of(folder, 1e6)
    check(f"page-{name}", words_of_page(words))


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
    _, plots = words_of(
        comparison_directory([{"name": "blp", "rmse": 1.0}, {"name": "bits", "rmse": 0.7, **other}])
    )
    for kind, drawn, elsewhere in zip(kinds, ("blp", "bits"), ("bits", "blp"), strict=True):
        axes = to_figure(plots[f"accuracy-{kind}"]).axes
        shown = {text.get_text() for ax in axes for text in ax.texts}
        assert (drawn in shown, elsewhere in shown) == (True, False)


def test_figures_of_a_hostile_table_stay_in_their_directory(comparison_directory: Directories) -> None:
    kinds = ("< 1", "> 1", "../../elsewhere")
    hostile = [{"name": kind[0], "rmse": 1.0, "altered": {"dataset.kind": kind}} for kind in kinds]
    _, plots = words_of(comparison_directory(hostile))
    assert {"accuracy-1", "accuracy-1-2", "accuracy-elsewhere"} <= set(plots)
    assert not any("/" in name for name in plots)


def test_names_in_a_table_do_not_lead_out_of_the_directory(
    comparison_directory: Directories, tmp_path: Path
) -> None:
    directory = comparison_directory([{"name": "blp", "rmse": 1.0}], epsilons=[1.0], seeds=[1])
    (cell,) = (directory / "cells").iterdir()
    cell.rename(tmp_path / cell.name.replace("blp", "away"))
    table = directory / "comparison.csv"
    table.write_text(table.read_text().replace("\nblp,", "\n../../away,"))
    assert "– The runs themselves are not in this directory." in words_of(directory)[0]


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


def test_runs_and_comparisons_leave_linked_pages(tmp_path: Path, tiny: dict[str, Any]) -> None:
    shared = {key: tiny[key] for key in ("dataset", "split", "simulation")}
    published = [{"label": "blp", "up": "1 bit", "down": "No transfer", "source": "Table 4"}]
    entries = [{"name": "blp", "protocol": tiny["protocol"]}]
    study = {"name": "study", "epsilons": [1.0, 2.0], "protocols": entries, "published": published, **shared}
    result = compare(study, tmp_path / "out", users_a_day=1e6)
    page, run_page = (tmp_path / "out" / "report.html").read_text(), "cells/blp-eps1.0-seed0/report.html"
    assert "No transfer" in page
    pages = {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("report.html")}
    assert pages == {"report.html", run_page}
    assert set(re.findall('<a href="([^#"]*)"', page)) == {run_page, "comparison.csv", "figures/"}
    # In the headline and among all results; the line at another budget is not about that run.
    assert page.count(f'<a href="{run_page}">blp</a>') == 2
    (tmp_path / "out" / run_page).unlink()
    assert run_page not in words_of(tmp_path / "out")[0]
    assert isinstance(result.plot(), Figure)
    assert len(run(tiny, tmp_path / "run", page=False).plot().axes) == 3
