"""The pages as a reader sees them: opened in headless Chromium, at a desk's and at a phone's width."""

import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from simulation.analysis.groups import row_of
from simulation.analysis.protocol_results import read_comparison
from simulation.auditing import Audit, Finding
from simulation.pages import report
from simulation.pages.audit_page import audit_page
from simulation.storage.files import csv_of_rows
from simulation.storage.summary import GroupSummary
from tests.simulation.pages.browser import ENTER, TAB, Browser, in_browser
from tests.simulation.pages.conftest import CROSS_DOMAIN, HOSTILE, write_comparison, write_run

pytestmark = in_browser


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
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    x_map = {"altered": {"protocol": "x-map", "domains": CROSS_DOMAIN}}
    clear = {"mechanism": "none", "epsilon": None, "completion": "mf"}
    audit = folder / "audit" / "report.html"
    audit.parent.mkdir()
    audit.write_text(audit_page(_audit().values()))
    return {
        "run": report(write_run(folder / "run", altered={"groups": GROUPS}), 10e6),
        "x-map": report(write_run(folder / "x-map", **clear, **x_map)),
        "comparison": report(_with_groups(write_comparison(folder / "comparison")), 10e6),
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


def _audit() -> Audit:
    values = {"unit": "rating", "promised": 1.0, "charged": 1.0, "exact": False}
    findings = (
        Finding("all pairs of levels, from the matrix", "rating", 1.0, 1.0, None, exact=True, power=1.0),
        Finding(test="value of one rating", at_least=0.7, power=0.9, **values),  # type: ignore[arg-type]
        Finding(test="one of three ratings", at_least=1.2, power=0.9, **values),  # type: ignore[arg-type]
    )
    return Audit("blp-mf", "one-shot", "bounded-laplace", 1000, 0.99, findings)


LOOK = """
return [
  [...document.querySelectorAll(".plot")].map(plot => [plot.getAttribute("aria-label").length,
    ...[...plot.children].map(s => s.getBoundingClientRect()).map(r => [r.width, r.height])]),
  document.documentElement.scrollWidth,
  [...document.querySelectorAll(".scroll")].filter(e => e.getBoundingClientRect().right > innerWidth).length,
];
"""
UNFOLD = "for (const each of document.querySelectorAll('details')) each.open = true"
AXE = """
axe.run(document, {resultTypes: ["violations"], runOnly: RULES}).then(found => found.violations
  .filter(each => ["serious", "critical"].includes(each.impact))
  .map(each => `${each.id} (SCHEME): ${each.nodes.map(node => node.target.join(" ")).join(", ")}`))
"""


@pytest.mark.parametrize("kind", ["run", "x-map", "comparison", "audit"])
@pytest.mark.parametrize("width", [1280, 390])
def test_quiet_complete_within_the_window_and_for_everybody(
    browser: Browser, pages: dict[str, Path], kind: str, width: int
) -> None:
    browser.open(pages[kind], width)
    browser.run(UNFOLD)
    figures, needed, escaping = browser.run(LOOK)
    assert len(figures) == len(list(pages[kind].parent.rglob("figures/*.svg")))
    for words, *panels in figures:
        assert words > 40
        assert all(wide > 200 and high > 30 for wide, high in panels)
    assert needed <= width
    # Tables wider than the page scroll inside their own container.
    assert escaping == 0
    assert [entry for entry in browser.log("browser") if entry["level"] in ("WARNING", "SEVERE")] == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []
    if keep := os.environ.get("DPREC_SCREENSHOTS"):
        browser.screenshot(Path(keep) / f"{kind}-{width}.png")
    assert violations(browser) == []


def violations(browser: Browser) -> list[str]:
    """Return what axe calls serious or critical, unfolded, in both colour schemes; nothing without axe."""
    try:
        script = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        return []
    # To assistive technology a drawing is its words alone, and axe takes long for what is inside.
    browser.run("for (const each of document.querySelectorAll('.plot svg')) each.remove()")
    browser.evaluate(f"{script}; 0")
    found: list[str] = []
    # Of all rules, the one on contrast alone depends on the colour scheme.
    for dark, rules in ((False, '["wcag2a", "wcag2aa"]'), (True, '["color-contrast"]')):
        browser.scheme(dark=dark)
        found += browser.evaluate(AXE.replace("RULES", rules).replace("SCHEME", "dark" if dark else "light"))
    return found


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


def test_a_hostile_page_runs_nothing(browser: Browser, run_directory: Callable[..., Path]) -> None:
    altered = {"name": HOSTILE, "completion": HOSTILE}
    page = report(run_directory(notes=[HOSTILE], altered=altered))
    browser.open(page, 1280)
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert HOSTILE in browser.run("return document.querySelector('h1').textContent")
    assert browser.log("browser") == []
