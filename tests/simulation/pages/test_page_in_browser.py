"""The pages as a reader sees them: opened in headless Chromium, at a desk's and at a phone's width."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simulation.analysis.comparison_files import read_comparison
from simulation.analysis.settings import read_rows
from simulation.pages import report
from simulation.pages.comparison_page import comparison_page
from simulation.pages.figures.rendering import Plot, Rendered, render
from simulation.pages.page import Section, page, paragraph
from simulation.storage.tables import csv_of_rows

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
ENTER = "\ue007"

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver on this machine"
)


class Browser:
    """A page in headless Chromium, through the WebDriver protocol."""

    def __init__(self, session: str) -> None:
        self.session = session

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.session + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)["value"]

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script: str) -> Any:
        return self.call("/execute/sync", {"script": script, "args": []})

    def open(self, page: Path, width: int, *, dark: bool = False) -> None:
        self.log("browser"), self.log("performance")
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=844, deviceScaleFactor=1, mobile=width < 640,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])
        self.call("/url", {"url": page.absolute().as_uri()})

    def log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.call("/se/log", {"type": kind})
        return entries

    def requests(self) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, file: Path) -> None:
        size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1})
        file.write_bytes(base64.b64decode(shot["data"]))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert DRIVER is not None
    driver = subprocess.Popen(
        [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    arguments = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ]  # fmt: skip
    capabilities = {
        "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments},
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
    }
    try:
        root = f"http://127.0.0.1:{port}/session"
        started = Browser(root)
        for _ in range(100):
            try:
                answer = started.call("", {"capabilities": {"alwaysMatch": capabilities}})
                break
            except urllib.error.HTTPError as error:
                pytest.skip(f"Chromium does not start here: {error.read()[:200]!r}")
            except urllib.error.URLError:
                time.sleep(0.1)
        else:
            pytest.skip("chromedriver does not answer")
        opened = Browser(f"{root}/{answer['sessionId']}")
        yield opened
        urllib.request.urlopen(urllib.request.Request(opened.session, method="DELETE"), timeout=30)
    finally:
        driver.terminate()
        driver.wait(timeout=10)


@pytest.fixture(scope="module")
def pages(
    tmp_path_factory: pytest.TempPathFactory, writers: dict[str, Callable[..., Path]]
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    iterative = {"protocol": "iterative", "per": "user", "rounds": 12, "downlink": 68_000}
    return {
        "run": report(writers["run"](folder / "run"), 10e6),
        "iterative": report(writers["run"](folder / "iterative", **iterative)),
        "comparison": report(writers["comparison"](folder / "comparison"), 10e6),
    }


UNFOLD = "for (const folded of document.querySelectorAll('details')) folded.open = true"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", ["run", "iterative", "comparison"])
def test_quiet_complete_and_within_the_window(
    browser: Browser, pages: dict[str, Path], kind: str, width: int
) -> None:
    browser.open(pages[kind], width, dark=width == 390)
    browser.run(UNFOLD)
    figures = browser.run(
        "return [...document.querySelectorAll('.plot')].map(p => [p.getAttribute('aria-label').length,"
        "...[...p.querySelectorAll('svg')].map(s => s.getBoundingClientRect())"
        ".map(r => [r.width, r.height])])"
    )
    assert len(figures) == len(list((pages[kind].parent / "figures").glob("*.svg")))
    for words, *forms in figures:
        shown, hidden = reversed(forms) if width == 390 else forms
        assert words > 40
        assert shown[0] > 200
        assert shown[1] > 100
        assert hidden == [0, 0]
    shown, needed = browser.run("return [innerWidth, document.documentElement.scrollWidth]")
    assert shown == width
    assert needed <= width
    # Tables wider than the page scroll inside their own container.
    escaping = browser.run(
        "return [...document.querySelectorAll('.scroll')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth).length"
    )
    assert escaping == 0
    assert [entry for entry in browser.log("browser") if entry["level"] in ("WARNING", "SEVERE")] == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []
    keep = os.environ.get("DPREC_SCREENSHOTS")
    if keep:
        browser.screenshot(Path(keep) / f"{kind}-{width}.png")


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
    (button,) = browser.run(BUTTON.replace("arguments_[0]", "'ε per rating'")).values()
    script = SORTED.replace('"RMSE"', '"ε per rating"').replace(".map(Number)", "")
    for _ in range(2):
        browser.call(f"/element/{button}/click", {})
        assert browser.run(script)[1][-1] is None


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, writers: dict[str, Callable[..., Path]]) -> Path:
    """Return the page of 22 protocols beside four floors, of which only the first figure is drawn."""
    folder, drawn = tmp_path_factory.mktemp("large") / "comparison", []
    writers["comparison"](
        folder, [{"name": "protocol-0", "rmse": 0.8}], seeds=[1, 2], title="Side by side " * 5
    )
    rows = read_rows(folder / "comparison.csv")
    others = [
        {**row, "name": f"protocol-{n}", "rmse": row["rmse"] + n / 50} for n in range(1, 22) for row in rows
    ]
    (folder / "comparison.csv").write_text("".join(csv_of_rows([*rows, *others])))
    for place, floor in enumerate(("nothing-sent", "sets-only", "item-average", "global-mean")):
        writers["floor"](folder, 1.1 + place / 100, floor)

    def first_only(plot: Plot) -> Rendered:
        drawn.append(plot)
        return render(plot) if len(drawn) == 1 else Rendered(plot, "<svg/>", "<svg/>", b"")

    (folder / "report.html").write_text(comparison_page(read_comparison(folder), None, first_only))
    return folder / "report.html"


ENDS = """
const answer = document.querySelector(".compared");
const end = (e) => e.getBoundingClientRect().bottom + scrollY;
return [[".main", ".picture .plot", ".headline"].map(each => end(answer.querySelector(each))),
        answer.querySelector(".headline tbody").rows.length,
        Math.max(...[...answer.querySelectorAll(".headline, .headline *")].map(e => e.scrollWidth)),
        getComputedStyle(answer.querySelector(".headline td"), "::before").content];
"""


@pytest.mark.parametrize(("width", "lowest", "widest"), [(1280, 1400, 1152), (390, 2400, 362)])
def test_answer_picture_and_headline_are_at_the_top(
    browser: Browser, large: Path, width: int, lowest: int, widest: int
) -> None:
    browser.open(large, width)
    ends, rows, needed, label = browser.run(ENDS)
    assert 0 < min(ends) <= max(ends) <= lowest
    assert rows == 10
    assert needed <= widest
    assert ("none" in label) is (width == 1280)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return document.querySelectorAll('.compared tbody tr').length") == 26


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
    sections = [Section(f"part-{number}", "Part", (paragraph("Words."),), folded=True) for number in range(3)]
    file = tmp_path / "page.html"
    file.write_text(page("Title", "dprec run", "", [], sections))
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
        looks = "['.plot path', 'body'].map(e => getComputedStyle(document.querySelector(e)))"
        seen.append(browser.run(f"return {looks}.map(s => [s.fill, s.color, s.backgroundColor].join())"))
    assert "rgb(255, 255, 255)" in seen[0][0]
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
