"""The decision on a comparison's page: the grid, a reader's questions and their answers, and all results."""

import json
import re
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import LEAST_TRUST_FIRST
from simulation.analysis.decision import Candidate, candidates
from simulation.analysis.populations import Course, courses
from simulation.analysis.protocol_results import read_comparison, read_rows
from simulation.analysis.vocabulary import METRICS
from simulation.storage.files import csv_of_rows
from tests.simulation.pages.browser import Browser, in_browser
from tests.simulation.pages.conftest import words_of, write_comparison

RMSE = METRICS[0]
TRUSTS = [*LEAST_TRUST_FIRST]
WHOLE, HIDDEN, PER_RATING = ("values", "profile"), ("cell", "profile"), ["epsilon_per_rating"]
NAMES = ["plain", "</script><b>", "'\"&", *(f"protocol-{place}" for place in range(25))]


def _gain(mean: float, half_width: float = 0.1) -> dict[str, Any]:
    ends = {"rmse_gain_low": mean - half_width, "rmse_gain_high": mean + half_width}
    return {"against": "nothing-sent", "rmse_gain": mean, **ends}


def _with_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Put other lines into a comparison, and draw its page."""
    (folder / "comparison.csv").write_text("".join(csv_of_rows(rows)))
    (folder / "report.html").write_text(words_of(folder)[0])
    return folder


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a comparison whose trust, protection, losses, bytes and gains are drawn at random."""
    folder = tmp_path_factory.mktemp("decision") / "comparison"
    plain = [{"name": "plain", "rmse": 1.0}]
    write_comparison(folder, plain, epsilons=[1.0], seeds=[1], match={"epsilon": "user"})
    (row,) = read_rows(folder / "comparison.csv")
    draw, rows = np.random.default_rng(3), []
    for name, budget in product(NAMES, (0.5, 1.0, 4.0)):
        rmse, place = draw.uniform(0.8, 1.2) - 0.02 * budget, NAMES.index(name)
        own = {
            "name": name,
            "epsilon": budget,
            "trust": LEAST_TRUST_FIRST[place % 4],
            "hides_rated_items": str(place % 3 == 0),
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
        if place % 2:
            more = draw.uniform(0.8, 1.2)
            larger = {"population": "5000", "users": 5000, "rmse": more, **_gain(1.0 - more)}
            rows.append({**row, **own, **larger})
    free = dict.fromkeys([key for key in row if key.endswith("_per_user")], 0.0)
    quiet = {"name": "nothing-sent", "baseline": "nothing-sent", "epsilon": None, "rmse": 1.0}
    base = {**row, **free, **quiet}
    return _with_rows(folder, [*rows, base, {**base, "population": "5000", "users": 5000}])


def held(page: str) -> tuple[dict[str, list[str]], Any, list[int]]:
    """Return what a page lets its readers choose, the answers, and which of them each question has."""
    (form,) = re.findall(r'<form class="decision".*?</form>', page, re.S)
    fields = {
        name: [unescape(each) for each in re.findall(r'<option value="([^"]*)"', inner)]
        for name, inner in re.findall(r'<select name="(\w+)">(.*?)</select>', form, re.S)
    }
    (table,) = re.findall(r'<script type="application/json" id="answers">(.*?)</script>', page)
    return fields, json.loads(table)["answers"], json.loads(table)["places"]


Taken = tuple[str, float | None] | None


def taken(every: list[Candidate], tried: dict[Any, Course], asked: dict[str, str]) -> Taken:
    """Return what is to be taken, from the lines of a table alone."""
    amount, unit, kind, *_ = asked["bytes"].split(" ", 3) if asked["bytes"] else ("inf", "B", "of")
    most = float(amount) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit]
    worth = []
    for each in every:
        line, key, better = each.result.rows[0], (each.result.name, each.result.budget), each.better
        accuracy, spent = each.accuracy, line
        if asked["users"] and (course := tried.get(key)):
            users = float(asked["users"])
            point = next((own for own in reversed(course.points) if own.users <= users), course.points[0])
            better = course.crossing is not None and users >= course.crossing
            accuracy, spent = point.accuracy, point.result.rows[0]
        columns = ["epsilon_per_user_max", "epsilon_composed_max"]
        losses = [line[column] for column in (columns if asked["protect"] in WHOLE else PER_RATING)]
        carried = "message" if kind == "of" else "network"
        sent = sum(float(spent[f"{way}link_{carried}_mean_per_user"]) for way in ("up", "down"))
        trusted = LEAST_TRUST_FIRST.index(line["trust"]) <= TRUSTS.index(asked["trust"])
        kept = any(own is not None and own <= float(asked["epsilon"]) for own in losses)
        protects = line["status"] == "proved" and line["hides_rated_items"] == (asked["protect"] in HIDDEN)
        if not line["baseline"] and kept and protects and trusted and better and sent <= most:
            worth.append((accuracy, key))
    return min(worth)[1] if worth else None


def test_every_question_has_the_answer_that_the_table_gives(comparison: Path) -> None:
    files = read_comparison(comparison)
    page = (comparison / "report.html").read_text()
    assert "</script><b>" not in page
    assert page.count("<script") == 2
    fields, answers, places = held(page)
    assert list(fields) == ["trust", "protect", "epsilon", "users", "bytes"]
    assert (fields["trust"], fields["epsilon"]) == (TRUSTS, ["0.5", "1", "4", "10"])
    questions = [dict(zip(fields, own, strict=True)) for own in product(*fields.values())]
    assert len(questions) == len(places)
    tried = {(each.name, each.budget): each for each in courses([*files.results, *files.populations], RMSE)}
    every, seen = candidates(files.results, RMSE), set()
    for question, place in zip(questions, places, strict=True):
        answer, expected = answers[place], taken(every, tried, question)
        before, name, _ = answer["verdict"]
        seen.add(expected)
        if expected is None:
            assert answer["row"] is None
            assert name.lower() in ("send nothing", "no protocol")
        else:
            assert (before, name) == ("Take ", expected[0])
            assert answer["row"].endswith(f"-{expected[1]:g}")
            assert answer["row"] not in answer["out"]
    assert len(tried) > 10
    assert len(seen) > 15


STATE = """
const form = document.querySelector(".decision"), verdict = form.querySelector(".verdict");
const taken = document.querySelector(".headline .taken")?.cells[0].dataset.value;
return [verdict.textContent, form.elements.epsilon.value, taken ?? null, location.hash,
        verdict.getBoundingClientRect().bottom];
"""
SET = "const field = document.querySelector('.decision').elements.NAME; field.value = 'VALUE';" + (
    "field.dispatchEvent(new Event('change', { bubbles: true }))"
)


def _ask(browser: Browser, **asked: str) -> None:
    for name, value in asked.items():
        browser.run(SET.replace("NAME", name).replace("VALUE", value))


@in_browser
def test_the_script_shows_the_answer_to_what_is_asked_and_keeps_it_in_the_address(
    browser: Browser, comparison: Path
) -> None:
    page = comparison / "report.html"
    fields, answers, places = held(page.read_text())
    browser.open(page, 1280)
    first = browser.run(STATE)
    assert first[3] == ""
    for asked in (
        {"trust": "central", "protect": "profile", "epsilon": "4", "users": "", "bytes": ""},
        {"trust": "shuffle", "protect": "rating", "epsilon": "0.5", "users": "5000", "bytes": ""},
    ):
        _ask(browser, **asked)
        sizes = [(own.index(asked[name]), len(own)) for name, own in fields.items()]
        place = 0
        for index, size in sizes:
            place = place * size + index
        answer, state = answers[places[place]], browser.run(STATE)
        assert state[0] == "".join(answer["verdict"])
        assert state[2] == (answer["verdict"][1] if answer["row"] else None)
        assert f"trust={asked['trust']}" in state[3]
    browser.open(comparison / "empty.html", 1280)
    browser.call("/url", {"url": f"{page.as_uri()}{state[3]}"})
    assert browser.run(STATE)[:4] == state[:4]
    _ask(browser, epsilon="1")
    browser.run("history.back()")
    assert browser.run(STATE)[:4] == state[:4]


@in_browser
def test_without_scripts_there_is_the_grid_and_no_control(browser: Browser, comparison: Path) -> None:
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("/url", {"url": (comparison / "report.html").as_uri()})
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
