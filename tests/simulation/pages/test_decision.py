"""The decision on a comparison's page: the grid, the reader's own limits, and the table of all results."""

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import LEAST_TRUST_FIRST
from simulation.analysis.answer import candidates, decision_grid, kept_epsilon
from simulation.analysis.populations import Course, courses
from simulation.analysis.protocol_results import ProtocolResult, read_comparison, read_rows
from simulation.analysis.vocabulary import METRICS
from simulation.pages.comparison_page import comparison_page
from simulation.pages.drawing import Rendered
from simulation.storage.files import csv_of_rows
from tests.simulation.pages.browser import CHROMIUM, DRIVER, Browser, chromium

in_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver on this machine"
)
RMSE = METRICS[0]
UNITS: dict[str, tuple[Any, bool]] = {
    "rating": ("rating", False),
    "cell": ("rating", True),
    "values": ("user", False),
    "profile": ("user", True),
}
HIDING = {"mechanism": "zheng-randomized-response", "completion": "mf"}
NAMES = ["plain", "</script><b>", "'\"&", *(f"protocol-{place}" for place in range(25))]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory, writers: dict[str, Callable[..., Path]]) -> Path:
    """Return a comparison whose trust, protection, losses, bytes and gains are drawn at random."""
    folder = tmp_path_factory.mktemp("decision") / "comparison"
    writers["comparison"](
        folder, [{"name": "plain", "rmse": 1.0}], epsilons=[1.0], seeds=[1], match={"epsilon": "user"}
    )
    (row,) = read_rows(folder / "comparison.csv")
    draw, rows = np.random.default_rng(3), []
    for name, budget in product(NAMES, (0.5, 1.0, 4.0)):
        rmse = draw.uniform(0.8, 1.2) - 0.02 * budget
        own = {
            "name": name,
            "epsilon": budget,
            "trust": LEAST_TRUST_FIRST[NAMES.index(name) % 4],
            "hides_rated_items": str(NAMES.index(name) % 3 == 0),
            "status": "claimed" if name == "protocol-7" else "proved",
            "epsilon_per_rating": budget / 10 if name != "protocol-3" else None,
            "epsilon_per_user_max": budget * draw.uniform(0.5, 40),
            "epsilon_composed_max": budget,
            "delta": 1e-6,
            "rmse": rmse,
            **_gain(1.0 - rmse),
            "uplink_message_mean_per_user": draw.integers(100, 10_000),
            "downlink_message_mean_per_user": draw.integers(0, 10_000),
            "uplink_network_mean_per_user": draw.integers(20_000, 90_000),
            "downlink_network_mean_per_user": draw.integers(20_000, 90_000),
        }
        rows.append({**row, **own})
        if NAMES.index(name) % 2:
            more = draw.uniform(0.8, 1.2)
            larger = {"population": "5000", "users": 5000, "rmse": more, **_gain(1.0 - more)}
            rows.append({**row, **own, **larger})
    nothing = dict.fromkeys([key for key in row if key.endswith("_per_user")], 0.0)
    base = {
        **row,
        **nothing,
        "name": "nothing-sent",
        "baseline": "nothing-sent",
        "epsilon": None,
        "rmse": 1.0,
    }
    rows += [base, {**base, "population": "5000", "users": 5000}]
    (folder / "comparison.csv").write_text("".join(csv_of_rows(rows)))
    (folder / "tables.json").unlink()
    (folder / "report.html").write_text(page_of(folder))
    return folder


def _gain(mean: float, half_width: float = 0.1) -> dict[str, Any]:
    return {
        "against": "nothing-sent",
        "rmse_gain": mean,
        "rmse_gain_low": mean - half_width,
        "rmse_gain_high": mean + half_width,
    }


def page_of(folder: Path) -> str:
    return comparison_page(read_comparison(folder), None, lambda plot: Rendered(plot, "<svg/>", "<svg/>"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


Chosen = tuple[str, float] | None


def _of_grid(results: list[ProtocolResult], asked: dict[str, Any]) -> Chosen:
    """Return what the grid takes of the results within the bytes, whomever of those asked for one trusts."""
    unit, hides = UNITS[asked["protect"]]
    kept = [result for result in results if result.baseline or _cheap(result, asked)]
    cells = decision_grid(kept, RMSE, unit, None, epsilons=[asked["epsilon"]])
    worth = [
        cell.best
        for cell in cells
        if cell.best and cell.hides == hides and LEAST_TRUST_FIRST.index(cell.trust) <= asked["trust"]
        if not cell.nothing_sent_wins
    ]
    best = min(worth, key=lambda result: result.mean("rmse") or 0.0, default=None)
    return None if best is None else (best.name, best.budget or 0.0)


def _cheap(result: ProtocolResult, asked: dict[str, Any]) -> bool:
    spent = result.bytes_per_user if asked["carried"] == "messages" else result.network_bytes_per_user
    return not asked["bytes"] or (spent is not None and spent <= asked["bytes"])


def _with_users(results: list[ProtocolResult], every: list[Course], asked: dict[str, Any]) -> Chosen:
    """Return the same with as many users as were run, at most as many as asked for, where that was tried."""
    unit, hides = UNITS[asked["protect"]]
    tried = {(each.name, each.budget): each for each in every}
    worth = []
    for each in candidates(results, RMSE):
        key, accuracy, result = (each.result.name, each.result.budget or 0.0), each.accuracy, each.result
        better = each.against is not None and each.against.better
        if course := tried.get(key):
            below = [point for point in course.points if point.users <= asked["users"]]
            point = below[-1] if below else course.points[0]
            accuracy, result = point.accuracy, point.result
            better = course.crossing is not None and asked["users"] >= course.crossing
        loss = kept_epsilon(each.result, unit, None)
        kept = loss is not None and loss <= asked["epsilon"] and each.hides == hides
        trusted = LEAST_TRUST_FIRST.index(each.result.trust) <= asked["trust"]
        if kept and trusted and better and _cheap(result, asked):
            worth.append((accuracy, key))
    return min(worth)[1] if worth else None


SETTINGS = [
    {
        "trust": trust,
        "protect": protect,
        "epsilon": epsilon,
        "bytes": most,
        "carried": carried,
        "users": users,
    }
    for trust, protect, epsilon, (most, carried), users in product(
        range(4),
        UNITS,
        (0.05, 0.1, 0.5, 1.0, 4.0, 30.0),
        ((0, "messages"), (6_000, "messages"), (90_000, "network")),
        (0, 50, 2_000, 9_000),
    )
]


@in_browser
def test_the_script_takes_what_the_grid_takes(browser: Browser, comparison: Path) -> None:
    files = read_comparison(comparison)
    every = courses([*files.results, *files.populations], RMSE)
    browser.open(comparison / "report.html", 1280)
    taken = browser.run(
        "const { offers } = JSON.parse(document.querySelector('#offers').textContent);"
        f"return {json.dumps(SETTINGS)}.map((asked) => decide(offers, asked).taken?.row ?? null)"
    )
    rows = browser.run(
        "return [...document.querySelectorAll('table[data-shown] tbody tr')]"
        ".map(row => [row.id, row.cells[0].dataset.value, +row.cells[1].dataset.value])"
    )
    named = {anchor: (name, budget) for anchor, name, budget in rows}
    chosen = [None if row is None else named[row] for row in taken]
    expected = [
        _with_users(files.results, every, asked) if asked["users"] else _of_grid(files.results, asked)
        for asked in SETTINGS
    ]
    assert chosen == expected
    assert len(set(chosen)) > 15
    assert len(every) > 10


STATE = """
const form = document.querySelector(".decision"), verdict = form.querySelector(".verdict");
const taken = document.querySelector(".headline .taken")?.cells[0].dataset.value;
return [verdict.textContent, form.elements.epsilon.value, taken, location.hash,
        verdict.getBoundingClientRect().bottom];
"""
SET = "const field = document.querySelector('.decision').elements.NAME; field.value = 'VALUE';" + (
    "field.dispatchEvent(new Event('change', { bubbles: true }))"
)


def _ask(browser: Browser, name: str, value: str) -> None:
    browser.run(SET.replace("NAME", name).replace("VALUE", value))


@in_browser
def test_limits_are_in_the_address_and_the_way_back_leads_to_those_before(
    browser: Browser, comparison: Path
) -> None:
    browser.open(comparison / "report.html", 1280)
    before = browser.run(STATE)
    assert before[3] == ""
    _ask(browser, "trust", "central")
    _ask(browser, "epsilon", "4")
    after = browser.run(STATE)
    assert "trust=central" in after[3]
    assert "epsilon=4" in after[3]
    assert after[2] in after[0]
    assert after[0] != before[0]
    browser.run("history.back()")
    assert browser.run(STATE)[1] == before[1]
    browser.run("history.back()")
    assert browser.run(STATE) == before
    browser.open(comparison / "empty.html", 1280)
    browser.call("/url", {"url": f"{(comparison / 'report.html').as_uri()}{after[3]}"})
    assert browser.run(STATE)[:4] == after[:4]


@in_browser
def test_a_name_is_no_markup_in_rows_options_and_data(browser: Browser, comparison: Path) -> None:
    page = (comparison / "report.html").read_text()
    assert "</script><b>" not in page
    assert page.count("<script") == 2
    browser.open(comparison / "report.html", 1280)
    for name in NAMES[1:3]:
        _ask(browser, "protocol", name.replace("'", "\\'"))
        assert name in browser.run(STATE)[0]
    assert browser.log("browser") == []


@in_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_readers_find_their_answer_on_the_first_screen(
    browser: Browser, comparison: Path, width: int
) -> None:
    for dark in (False, True):
        browser.open(comparison / "report.html", width, dark=dark)
        for name, value in (("epsilon", "1"), ("users", "10000"), ("protocol", "protocol-4")):
            _ask(browser, name, value)
            words, *_, bottom = browser.run(STATE)
            assert bottom < 844
            assert re.search(r"messages, .* on the network|^No protocol here", words)
        assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def whole_users(tmp_path_factory: pytest.TempPathFactory, writers: dict[str, Callable[..., Path]]) -> Path:
    """Return the page on whole profiles, of which one protocol was run with users who are drawn, too."""
    folder = tmp_path_factory.mktemp("whole") / "comparison"
    names = {"bit": 1.04, "pg-mf": 2.5, "totals": 0.95}
    writers["comparison"](
        folder,
        [
            {"name": name, "rmse": rmse, "per": "user", "hides": True, **HIDING}
            for name, rmse in names.items()
        ],
        epsilons=[1.0],
        seeds=[1],
        match={"epsilon": "user", "delta": 1e-6},
    )
    rows = [
        {
            **row,
            **_gain(0.0 if row["name"] == "bit" else 1.0 - names[str(row["name"])], 0.02),
            "rmse": names[str(row["name"])],
            "users": 943,
            "dataset": "movielens-100k",
            "trust": "secure-aggregation" if row["name"] == "totals" else "local",
            "epsilon_per_user_max": 1.0,
            "epsilon_composed_max": 1.0 - 1e-6,
            "delta": 1e-6,
            "uplink_message_mean_per_user": 300.0,
            "downlink_message_mean_per_user": 700.0,
            "uplink_network_mean_per_user": 21_000.0,
            "downlink_network_mean_per_user": 9_000.0,
        }
        for row in read_rows(folder / "comparison.csv")
    ]
    larger = {"population": "10000", "users": 10_000, "dataset": "synthetic"}
    gains = {1_000: 0.0, 10_000: 0.03}
    rows += [
        {**rows[0], **larger, "population": str(users), "users": users, "rmse": 0.5, **_gain(mean, 0.02)}
        for users, mean in gains.items()
    ]
    base = {
        **rows[0],
        "name": "nothing-sent",
        "baseline": "nothing-sent",
        "epsilon": None,
        "rmse": 1.0,
        "against": None,
        "rmse_gain": None,
    }
    rows += [
        base,
        *(
            {**base, **larger, "population": str(users), "users": users, "rmse": 0.5 + mean}
            for users, mean in gains.items()
        ),
    ]
    (folder / "comparison.csv").write_text("".join(csv_of_rows(rows)))
    (folder / "tables.json").unlink()
    (folder / "report.html").write_text(page_of(folder))
    return folder / "report.html"


def test_the_questions_begin_with_what_the_headline_answers(whole_users: Path) -> None:
    folder, page = whole_users.parent, whole_users.read_text()
    (held,) = re.findall(r'<script type="application/json" id="offers">(.*?)</script>', page)
    (headline, *_) = re.findall(r'<p class="sentence">(.*?)</p>', page)
    start, results = json.loads(held)["start"], read_comparison(folder).results
    assert start == {"trust": "secure-aggregation", "protect": "profile", "epsilon": 1.0}
    asked = {**start, "trust": LEAST_TRUST_FIRST.index(start["trust"]), "bytes": 0, "carried": "messages"}
    assert _of_grid(results, asked) == ("totals", 1.0)
    assert ": totals in the model of secure aggregation" in headline


TASKS = {
    "whom to trust with 10,000 users": (
        {"trust": "local", "users": "10000"},
        ["Take bit at ε 1: RMSE 0.500", "0.030 ± 0.020 better", "Measured with 10,000 users (synthetic)."],
    ),
    "what a bit costs on the network": (
        {"protocol": "bit"},
        ["Send nothing (RMSE 1.000): the nearest, bit", "1 kB of messages, 30 kB on the network a user"],
    ),
    "more users than were run": (
        {"protocol": "pg-mf", "users": "1000000"},
        ["With 943 users, send nothing: the nearest, pg-mf, reaches RMSE 2.500", "It was not run with more."],
    ),
    "fewer users than were run": (
        {"protocol": "pg-mf", "users": "100"},
        ["Send nothing (RMSE 1.000): the nearest, pg-mf", "Measured with 943 users."],
    ),
}


@in_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("task", TASKS)
def test_of_other_users_nothing_is_said_that_was_not_measured(
    browser: Browser, whole_users: Path, task: str, width: int
) -> None:
    limits, expected = TASKS[task]
    browser.open(whole_users, width)
    for name, value in limits.items():
        _ask(browser, name, value)
    words, *_, bottom = browser.run(STATE)
    assert [each for each in expected if each not in words] == []
    assert bottom < 844


@in_browser
@pytest.mark.parametrize(
    ("epsilon", "text"), [(1, "1"), (0.0005, "0.0005"), (2.1123, "2.112"), (1779.2, "1,779")]
)
def test_a_loss_is_written_with_four_digits(
    browser: Browser, whole_users: Path, epsilon: float, text: str
) -> None:
    browser.open(whole_users, 1280)
    assert browser.run(f"return written([{epsilon}, ''])") == f"ε {text}"


@in_browser
def test_drawn_users_are_held_against_others_by_what_they_gain(browser: Browser, whole_users: Path) -> None:
    browser.open(whole_users, 1280)
    # It opens with what the headline takes.
    assert browser.run(STATE)[2] == "totals"
    for name, value in (("trust", "central"), ("users", "10000")):
        _ask(browser, name, value)
    # The smaller error of the other is that on ratings which are easier to predict.
    assert browser.run(STATE)[2] == "totals"


@in_browser
def test_without_scripts_there_is_the_grid_and_no_control(browser: Browser, comparison: Path) -> None:
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(comparison / "report.html", 1280)
        tree = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    assert roles.count("table") >= 3
    assert not {"combobox", "spinbutton", "searchbox", "checkbox"} & set(roles)


SHOWN = """
const table = document.querySelector("table[data-shown]"), visible = (e) => e.checkVisibility();
return [[...table.tBodies[0].rows].filter(visible).length,
        [...table.tHead.rows[0].cells].filter(visible).map(cell => cell.querySelector("span").textContent)];
"""


@in_browser
def test_results_are_filtered_their_columns_chosen_and_rows_linked(
    browser: Browser, comparison: Path
) -> None:
    browser.open(comparison / "report.html", 1280)
    browser.run("document.querySelector('#table').closest('details').open = true")
    rows, columns = browser.run(SHOWN)
    assert rows == 3 * len(NAMES) + 1
    assert "rounds" not in columns
    browser.run(
        "const tools = document.querySelector('.tools'), filter = tools.querySelector('input');"
        "filter.value = 'Protocol-4'; filter.dispatchEvent(new Event('input'));"
        "[...tools.querySelectorAll('label')].find(e => e.textContent.includes('rounds')).control.click()"
    )
    assert browser.run(SHOWN) == [3, [*columns, "rounds"]]
    assert browser.run("return document.querySelector('.tools output').value") == f"3 of {3 * len(NAMES) + 1}"
    browser.run(
        "document.querySelector('#table').closest('details').open = false; location.hash = 'row-plain-1'"
    )
    assert browser.run("return document.querySelector(':target').checkVisibility()")


def test_a_grid_says_what_to_take_and_where_trust_buys_nothing(
    tmp_path: Path, writers: dict[str, Callable[..., Path]]
) -> None:
    folder = writers["comparison"](
        tmp_path / "comparison",
        [
            {"name": "alone", "per": "user", "rmse": 0.5},
            {"name": "vain", "per": "user", "rmse": 0.6, "trust": "shuffle"},
            {"name": "noise", "per": "user", "rmse": 2.0, "hides": True, **HIDING},
        ],
        epsilons=[1.0],
        seeds=[1],
        match={"epsilon": "user"},
    )
    writers["baseline"](folder, 1.1)
    hidden, values = re.findall(r'<table class="grid">.*?</table>', page_of(folder), re.S)
    assert "alone" in values
    assert "noise" not in values
    assert "trusting a shuffler buys nothing here" in values
    assert "no better than alone (local)" in values
    assert "send nothing" not in values
    assert re.search(r"send nothing</b><small>nearest: <a href=.#row-noise-1.>noise", hidden)
    assert "alone" not in hidden
