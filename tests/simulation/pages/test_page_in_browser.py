"""The pages as a reader sees them: opened in headless Chromium, at a desk's and at a phone's width."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from simulation.analysis.groups import row_of
from simulation.analysis.protocol_results import read_comparison
from simulation.auditing import Audit, Finding
from simulation.pages import report
from simulation.pages.audit_page import audit_page
from simulation.pages.build import report_runs
from simulation.pages.comparison_page import comparison_page
from simulation.pages.figures.drawing import Plot, Rendered, render
from simulation.pages.page import Section, page
from simulation.storage.columns import read_rows
from simulation.storage.files import csv_of_rows
from simulation.storage.summary import GroupSummary
from tests.simulation.pages.browser import CHROMIUM, DRIVER, ENTER, SPACE, TAB, Browser, chromium

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver on this machine"
)


def _layers(*counts: int) -> dict[str, int]:
    names = "bridges", "next_to_bridges", "away_from_bridges", "edges_to_bridges", "edges_from_away"
    return dict(zip(names, counts, strict=True))


CROSS_DOMAIN = {
    "source": {"name": "A", **_layers(90, 9, 1, 40, 2)},
    "target": {"name": "B", **_layers(80, 4, 2, 30, 1)},
    "edges_between": 400,
    "alter_ego": {
        "user": "7",
        "scale": [1.0, 5.0],
        "source_ratings": 20,
        "items": 18,
        "before": [["A:1", 2.0], ["A:2", 4.0]],
        "after": [["B:3", 5.0], ["B:4", 3.0]],
    },
}


def _group(name: str, users: int, rmse: float) -> dict[str, Any]:
    figures = {
        **{"group": name, "users": users, "test_ratings": 12 * users, "rmse": rmse, "mae": 0.8 * rmse},
        **{"rmse_alone": 1.08, "gain_p": 1e-9, "worse": 0.4 * rmse - 0.3, "worse_by_chance": 0.06},
        **{"worse_p": 0.004, "popularity_lift": 0.1, "coverage": 0.2, "message_bytes": 1500.0},
        **{"epsilon_per_rating": 1.0, "epsilon_per_user": 40.0},
    }
    return dict.fromkeys(GroupSummary.model_fields) | figures


GROUPS = {
    "all": [_group("everybody", 400, 0.92)],
    "activity": [_group(f"{20 * place} to {20 * place + 19}", 100, 1.1 - 0.1 * place) for place in range(4)],
    "occupation": [_group(f"<b>of the name {place}</b>", 20, 1 - 0.01 * place) for place in range(20)],
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(
    tmp_path_factory: pytest.TempPathFactory, writers: dict[str, Callable[..., Path]]
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    run, comparison = writers["run"], writers["comparison"]
    iterative = {"protocol": "iterative", "per": "user", "rounds": 12, "downlink": 68_000}
    x_map = {"altered": {"protocol": "x-map", "domains": CROSS_DOMAIN}}
    clear = {"mechanism": "none", "epsilon": None, "completion": "mf"}
    audit = folder / "audit" / "report.html"
    audit.parent.mkdir()
    audit.write_text(audit_page(_audit().values()))
    return {
        "run": report(run(folder / "run", altered={"groups": GROUPS}), 10e6),
        "iterative": report(run(folder / "iterative", **iterative)),
        "x-map": report(run(folder / "x-map", **clear, **x_map)),
        "comparison": report(_with_groups(comparison(folder / "comparison")), 10e6),
        "single-file": report(_with_pages_of_runs(comparison(folder / "single-file")), single_file=True),
        "audit": audit,
    }


def _with_groups(folder: Path) -> Path:
    """Return a comparison in which all protocols do the same to groups of users."""
    rows = [
        row_of({"name": result.name, "epsilon": result.budget}, by, GroupSummary.model_validate(each))
        for result in read_comparison(folder).results
        for by, own in GROUPS.items()
        for each in own
    ]
    (folder / "groups.csv").write_text("".join(csv_of_rows(rows)))
    return folder


def _with_pages_of_runs(folder: Path) -> Path:
    """Return a comparison whose runs have pages."""
    report_runs(folder)
    return folder


def _audit() -> Audit:
    values = {"unit": "rating", "promised": 1.0, "charged": 1.0, "exact": False}
    findings = (
        Finding("all pairs of levels, from the matrix", "rating", 1.0, 1.0, None, exact=True, power=1.0),
        Finding(test="value of one rating", at_least=0.7, power=0.9, **values),  # type: ignore[arg-type]
        Finding(test="one of three ratings", at_least=1.2, power=0.9, **values),  # type: ignore[arg-type]
    )
    return Audit("blp-mf", "one-shot", "bounded-laplace", 1000, 0.99, findings)


@dataclass(frozen=True)
class Visit:
    """What a page looked like when it was opened once.

    Parameters
    ----------
    figures : list
        Of every figure the length of its words, and width and height of its panels.
    window, needed : int
        Width of the window, and of what is in it.
    escaping : int
        Tables that leave the window.
    complaints : list
        Warnings and errors in the console.
    requests : list of str
        Addresses outside.
    violations : list of str or None
        What axe calls serious or critical, unfolded, in both colour schemes; None without axe.
    """

    figures: list[list[Any]]
    window: int
    needed: int
    escaping: int
    complaints: list[Any]
    requests: list[str]
    violations: list[str] | None


LOOK = """
return [
  [...document.querySelectorAll(".plot")].map(plot => [plot.getAttribute("aria-label").length,
    ...[...plot.children].map(s => s.getBoundingClientRect()).map(r => [r.width, r.height])]),
  innerWidth, document.documentElement.scrollWidth,
  [...document.querySelectorAll(".scroll")].filter(e => e.getBoundingClientRect().right > innerWidth).length,
];
"""
UNFOLD = "for (const each of document.querySelectorAll('details')) each.open = true"
AXE = """
axe.run(document, {resultTypes: ["violations"], runOnly: RULES}).then(found => found.violations
  .filter(each => ["serious", "critical"].includes(each.impact))
  .map(each => `${each.id} (SCHEME): ${each.nodes.map(node => node.target.join(" ")).join(", ")}`))
"""


@pytest.fixture(scope="module")
def visit(browser: Browser, pages: dict[str, Path]) -> Callable[[str, int], Visit]:
    """What opens a page at a width, once for all tests."""
    visits: dict[tuple[str, int], Visit] = {}

    def visited(kind: str, width: int) -> Visit:
        if (kind, width) not in visits:
            visits[kind, width] = _visit(browser, pages[kind], width)
        return visits[kind, width]

    return visited


def _visit(browser: Browser, page: Path, width: int) -> Visit:
    browser.open(page, width)
    browser.run(UNFOLD)
    figures, window, needed, escaping = browser.run(LOOK)
    if keep := os.environ.get("DPREC_SCREENSHOTS"):
        browser.screenshot(Path(keep) / f"{page.parent.name}-{width}.png")
    violations = _violations(browser)
    return Visit(
        figures,
        window,
        needed,
        escaping,
        [entry for entry in browser.log("browser") if entry["level"] in ("WARNING", "SEVERE")],
        [url for url in browser.requests() if not url.startswith(("file:", "data:"))],
        violations,
    )


def _violations(browser: Browser) -> list[str] | None:
    try:
        script = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        return None
    # To assistive technology a drawing is its words alone, and axe takes long for what is inside.
    browser.run("for (const each of document.querySelectorAll('.plot svg')) each.remove()")
    browser.evaluate(f"{script}; 0")
    found: list[str] = []
    # Of all rules, the one on contrast alone depends on the colour scheme.
    for dark, rules in ((False, '["wcag2a", "wcag2aa"]'), (True, '["color-contrast"]')):
        browser.scheme(dark=dark)
        found += browser.evaluate(AXE.replace("RULES", rules).replace("SCHEME", "dark" if dark else "light"))
    return found


KINDS = ["run", "iterative", "x-map", "comparison", "single-file", "audit"]
EVERY_PAGE = [(kind, width) for kind in KINDS for width in (1280, 390)]


@pytest.mark.parametrize(("kind", "width"), EVERY_PAGE)
def test_quiet_complete_and_within_the_window(
    visit: Callable[[str, int], Visit], pages: dict[str, Path], kind: str, width: int
) -> None:
    seen = visit(kind, width)
    assert len(seen.figures) == len(list(pages[kind].parent.rglob("figures/*.svg")))
    for words, *panels in seen.figures:
        assert words > 40
        assert all(wide > 200 and high > 30 for wide, high in panels)
    assert seen.window == width
    assert seen.needed <= width
    # Tables wider than the page scroll inside their own container.
    assert seen.escaping == 0
    assert seen.complaints == []
    assert seen.requests == []


@pytest.mark.parametrize(("kind", "width"), EVERY_PAGE)
def test_nothing_serious_for_assistive_technology(
    visit: Callable[[str, int], Visit], kind: str, width: int
) -> None:
    violations = visit(kind, width).violations
    if violations is None:
        pytest.skip("axe-core-python is not installed")
    assert violations == []


CONTROLS = "[...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')]"
FOCUS = f"""
const focus = document.activeElement;
const shown = focus.getBoundingClientRect(), style = getComputedStyle(focus);
return [{CONTROLS}.indexOf(focus), shown.width * shown.height > 0, style.outlineStyle, style.outlineWidth];
"""


def test_every_control_is_reached_by_key_in_order_and_seen(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["run"], 1280)
    shown = browser.run(f"return {CONTROLS}.flatMap((each, place) => each.checkVisibility() ? [place] : [])")
    reached = []
    for _ in shown:
        browser.press(TAB)
        place, *visible = browser.run(FOCUS)
        reached.append(place)
        assert visible == [True, "solid", "2px"]
    assert reached == shown


def test_keys_skip_to_the_results_and_unfold(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["run"], 1280)
    browser.press(TAB)
    assert browser.run("return document.activeElement.textContent") == "Skip to the results"
    browser.press(ENTER)
    assert browser.run("return location.hash") == "#main"
    browser.press(TAB)
    assert browser.run("return document.activeElement.closest('main') !== null")
    opened = "return document.querySelector('.folded').open"
    browser.run("document.querySelector('.folded > summary').focus()")
    for key, expected in ((ENTER, True), (SPACE, False)):
        browser.press(key)
        assert browser.run(opened) is expected


SORTED = """
const table = document.querySelector("#table").closest("section").querySelector("table");
const header = [...table.querySelectorAll("thead th")].findIndex(th => th.textContent.startsWith("RMSE"));
return [table.querySelectorAll("thead th")[header].getAttribute("aria-sort"),
        [...table.tBodies[0].rows].map(row => row.cells[header].dataset.value).map(Number)];
"""
BUTTON = """
const table = document.querySelector("#table").closest("section").querySelector("table");
return [...table.querySelectorAll("thead button")].find(b => b.textContent.startsWith(arguments_[0]));
"""


def test_tables_sort_by_click_and_by_key(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["comparison"], 1280)
    browser.run(UNFOLD)
    (button,) = browser.run(BUTTON.replace("arguments_[0]", "'RMSE'")).values()
    browser.call(f"/element/{button}/click", {})
    order, values = browser.run(SORTED)
    assert order == "ascending"
    assert values == sorted(values)
    browser.run("document.activeElement.blur(); document.querySelector('#table').scrollIntoView()")
    browser.call(f"/element/{button}/value", {"text": ENTER})
    order, values = browser.run(SORTED)
    assert order == "descending"
    assert values == sorted(values, reverse=True)


def test_what_does_not_apply_sorts_last_either_way(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["comparison"], 1280)
    browser.run(UNFOLD)
    browser.run("document.querySelectorAll('.tools [type=checkbox]:not(:checked)').forEach(e => e.click())")
    (button,) = browser.run(BUTTON.replace("arguments_[0]", "'ε per rating'")).values()
    script = SORTED.replace('"RMSE"', '"ε per rating"').replace(".map(Number)", "")
    for _ in range(2):
        browser.call(f"/element/{button}/click", {})
        assert browser.run(script)[1][-1] is None


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, writers: dict[str, Callable[..., Path]]) -> Path:
    """Return the page of 22 protocols beside four baselines, of which only the first figure is drawn."""
    folder, drawn = tmp_path_factory.mktemp("large") / "comparison", []
    writers["comparison"](
        folder, [{"name": "protocol-0", "rmse": 0.8}], seeds=[1, 2], title="Side by side " * 5
    )
    rows = read_rows(folder / "comparison.csv")
    others = [
        {**row, "name": f"protocol-{n}", "rmse": row["rmse"] + n / 50} for n in range(1, 22) for row in rows
    ]
    (folder / "comparison.csv").write_text("".join(csv_of_rows([*rows, *others])))
    for place, baseline in enumerate(("nothing-sent", "sets-only", "item-average", "global-mean")):
        writers["baseline"](folder, 1.1 + place / 100, baseline)

    def first_only(plot: Plot) -> Rendered:
        drawn.append(plot)
        return render(plot) if len(drawn) == 1 else Rendered(plot, "<svg/>", "<svg/>")

    (folder / "report.html").write_text(comparison_page(read_comparison(folder), None, first_only))
    return folder / "report.html"


ENDS = """
const answer = document.querySelector(".answer");
const end = (e) => e.getBoundingClientRect().bottom + scrollY;
return [[".verdict", ".headline", ".grid"].map(each => end(answer.querySelector(each))),
        answer.querySelector(".headline tbody").rows.length,
        Math.max(...[...answer.querySelectorAll(".headline tbody *")].map(e => e.scrollWidth)),
        getComputedStyle(answer.querySelector(".headline td"), "::before").content];
"""


@pytest.mark.parametrize(("width", "lowest", "widest"), [(1280, 1400, 1152), (390, 2600, 362)])
def test_answer_headline_and_grid_are_at_the_top(
    browser: Browser, large: Path, width: int, lowest: int, widest: int
) -> None:
    browser.open(large, width)
    ends, rows, needed, label = browser.run(ENDS)
    assert 0 < min(ends) <= max(ends) <= lowest
    assert ends[0] <= 844
    assert rows == 10
    assert needed <= widest
    assert ("none" in label) is (width == 1280)
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_every_column_is_printed(browser: Browser, large: Path) -> None:
    browser.open(large, 1280)
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    browser.devtools(
        "Emulation.setDeviceMetricsOverride", width=1032, height=702, deviceScaleFactor=1, mobile=False
    )
    browser.run("dispatchEvent(new Event('beforeprint'))")
    columns, needed = browser.run(
        "const table = document.querySelector('#table').closest('section').querySelector('table');"
        "return [table.rows[0].cells.length, table.getBoundingClientRect().right]"
    )
    browser.devtools("Emulation.setEmulatedMedia", media="")
    assert columns >= 20
    assert needed <= 1032


def test_links_and_paper_unfold_what_is_folded(browser: Browser, tmp_path: Path) -> None:
    sections = [Section(f"part-{number}", "Part", ("Words.",), folded=True) for number in range(3)]
    file = tmp_path / "page.html"
    link = Markup('<a href="#part-1">Part</a>')
    file.write_text(page("Title", "dprec run", "", [link], sections, render))
    folded = "return [...document.querySelectorAll('details')].map(each => each.open)"
    browser.open(file, 1280)
    assert browser.run(folded) == [False, False, False]
    browser.run("document.querySelector('a[href=\"#part-1\"]').click()")
    assert browser.run(folded) == [False, True, False]
    browser.run("document.querySelectorAll('details')[1].open = false")
    browser.run("document.querySelector('a[href=\"#part-1\"]').click()")
    assert browser.run(folded) == [False, True, False]
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run(folded) == [True, True, True]
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(folded) == [False, True, False]


def test_dark_figures_are_shown_in_the_dark(browser: Browser, pages: dict[str, Path]) -> None:
    seen = []
    for dark in (False, True):
        browser.open(pages["run"], 1280, dark=dark)
        looks = "['.plot text', 'body'].map(e => getComputedStyle(document.querySelector(e)))"
        seen.append(browser.run(f"return {looks}.map(s => [s.fill, s.color, s.backgroundColor].join())"))
    assert all(light != dark for light, dark in zip(*seen, strict=True))


def test_a_hostile_page_runs_nothing(
    browser: Browser, tmp_path: Path, hostile: str, writers: dict[str, Callable[..., Path]]
) -> None:
    page = report(
        writers["run"](tmp_path / "run", notes=[hostile], altered={"name": hostile, "completion": hostile})
    )
    browser.open(page, 1280)
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert hostile in browser.run("return document.querySelector('h1').textContent")
    assert browser.log("browser") == []
