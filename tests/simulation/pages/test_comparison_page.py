"""The page of a comparison in a browser: the answer without scripts, and all results filtered and linked."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dprec.accounting import LEAST_TRUST_FIRST
from simulation.analysis.protocol_results import read_comparison
from simulation.pages.comparison_page import parts_of
from simulation.storage.columns import read_rows
from simulation.storage.directories import COMPARISON
from simulation.storage.files import csv_of_rows
from tests.simulation.pages.browser import Browser, in_browser
from tests.simulation.pages.conftest import RANDOMIZED, add_baseline, words_of, write_comparison

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


def test_hostile_names_are_text_and_there_is_one_script(comparison: Path) -> None:
    page = (comparison / "report.html").read_text()
    assert "</script><b>" not in page
    assert page.count("<script") == 1


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
    browser.run("document.querySelector('#table').closest('details').open = false; location.hash = 'row-1'")
    assert browser.run("return document.querySelector(':target').checkVisibility()")


@pytest.mark.parametrize(("popular", "worth"), [(0.9, False), (1.05, True)])
def test_what_is_worse_than_popularity_is_marked_nowhere(tmp_path: Path, popular: float, worth: bool) -> None:
    """Popularity has no privacy; lists that everybody could have had alike are not to be taken."""
    folder = write_comparison(tmp_path / "lists", [{"name": "own", "rmse": 0.8}], epsilons=[1.0], seeds=[1])
    page = words_of(add_baseline(add_baseline(folder, 1.2), popular, "popularity"))[0]
    assert ('class="taken"><b>' in page, "<b>" in page) == (worth, worth)
    assert ('<tr class="taken">' in page) is worth
    assert (
        f"<small>worse than popularity, which has no privacy ({popular:.3f})</small>" in page
    ) is not worth
    assert f"popularity, without privacy, {popular:.3f}" in page


def test_the_grid_begins_with_what_the_answer_is_about(tmp_path: Path) -> None:
    protocols = [{"name": "shown", "rmse": 0.8}, {"name": "hidden", "rmse": 0.9, **RANDOMIZED}]
    folder = add_baseline(write_comparison(tmp_path / "both", protocols, epsilons=[1.0], seeds=[1]), 1.2)
    page = words_of(folder)[0]
    captions = re.findall(r"<caption>The protocol to take, held against nothing sent: (.*?)</caption>", page)
    assert captions == ["ε for the value of one rating", "ε for one rating, given or not"]
    assert re.findall(r'class="taken"><b><a href="#row-\d">(.*?)</a>', page) == ["shown"]


def test_only_budgets_that_ran_have_a_column(tmp_path: Path) -> None:
    """Of a quick comparison, of which the middle one alone runs."""
    folder = write_comparison(
        tmp_path / "quick", [{"name": "own", "rmse": 0.8}], epsilons=[1.0], seeds=[1], quick=True
    )
    config = yaml.safe_load((folder / COMPARISON).read_text())
    (folder / COMPARISON).write_text(yaml.safe_dump({**config, "epsilons": [0.5, 1.0, 8.0]}))
    (part,) = parts_of(read_comparison(folder))
    assert {cell.epsilon for cell in part.grid} == {1.0}
