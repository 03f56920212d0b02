"""The presets that carry a published name hold the paper's settings, and ours say what they change."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dprec.components import Options, deviations, published_of
from simulation import load
from simulation.analysis.description import describe
from simulation.comparison.planning import load_comparison
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import at, read_yaml

ROOT = Path(__file__).parents[3]
PAPERS: dict[str, Any] = read_yaml(ROOT / "docs" / "papers.yaml")
PUBLISHED, OURS = PAPERS["published"], PAPERS["ours"]
PLACE = re.compile(
    r"(section \d+(\.\d+)*|(Theorem|Definition|Algorithm|Eq\.) \d+|Eqs\. \d+ and \d+)(?=[,:]|$)"
)


@cache
def configured(name: str) -> RunConfig:
    return load(name)


def settings(name: str) -> dict[str, Any]:
    dumped: dict[str, Any] = configured(name).model_dump(mode="json")["protocol"]
    return dumped


def declared(options: Options, prefix: str = "") -> Iterator[str]:
    """Yield the keys of the settings whose published value is declared."""
    for field in dataclasses.fields(options):
        if published_of(field) is not None:
            yield prefix + field.name
        value = getattr(options, field.name)
        if isinstance(value, Options):
            yield from declared(value, f"{prefix}{field.name}.")


def found(name: str) -> dict[str, Any]:
    return {deviation.key: deviation.value for deviation in deviations(configured(name).protocol)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_preset_has_the_papers_settings(name: str) -> None:
    listed = {setting["key"]: setting["value"] for setting in PUBLISHED[name]["settings"]}
    values = settings(name)
    assert {key: at(values, *key.split(".")) for key in listed} == listed


@pytest.mark.parametrize("name", PUBLISHED)
def test_nothing_of_a_published_preset_is_beyond_the_paper(name: str) -> None:
    assert found(name) == {}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_setting_that_can_leave_the_paper_is_listed(name: str) -> None:
    assert set(declared(configured(name).protocol)) <= {part["key"] for part in PUBLISHED[name]["settings"]}


@pytest.mark.parametrize("name", OURS)
def test_what_is_beyond_the_paper_is_what_an_improved_preset_changes(name: str) -> None:
    original = OURS[name]["of"]
    assert {key: value for key, value in found(name).items() if key not in found(original)} == OURS[name][
        "differs"
    ]
    assert OURS[name]["differs"].items().isdisjoint(found(original).items())


def test_the_comparison_holds_the_published_and_the_improved_form() -> None:
    compared = {cell.protocol for cell in load_comparison("compare-seeds").cells}
    assert {*PUBLISHED, *OURS} - {"pg-mf-reduced"} <= compared


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_setting_says_where_the_paper_states_it(name: str) -> None:
    """A section, equation or theorem; and the page, if the text that was read has pages."""
    pages = PAPERS["texts"][PUBLISHED[name]["paper"]]["pages"]
    for setting in PUBLISHED[name]["settings"]:
        assert PLACE.match(setting["at"]), setting
        assert ("page" in setting) == (pages is not None), setting
        assert pages is None or 1 <= setting["page"] <= pages, setting


def test_the_same_place_is_on_the_same_page() -> None:
    pages: dict[tuple[str, str], set[int]] = {}
    for own in PUBLISHED.values():
        for setting in own["settings"]:
            if "page" in setting:
                place = PLACE.match(setting["at"])
                assert place is not None
                pages.setdefault((own["paper"], place[0]), set()).add(setting["page"])
    assert pages
    assert [place for place, found in pages.items() if len(found) > 1] == []


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_the_code_declares_is_what_the_paper_is_listed_with(name: str) -> None:
    """Of two declarations of a setting, in its class and in docs/papers.yaml, neither goes unnoticed."""
    listed = {setting["key"]: setting["value"] for setting in PUBLISHED[name]["settings"]}
    for line in describe(configured(name)).settings:
        if line.source and line.key in listed:
            assert listed[line.key] in line.published, line
            assert line.source.startswith(f"{PUBLISHED[name]['paper']}, "), line


def test_sources_are_references() -> None:
    references = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    papers = {own["paper"] for own in PUBLISHED.values()}
    assert all(f"{{{paper}," in references for paper in papers)
    for name, own in PUBLISHED.items():
        for deviation in deviations(configured(name).protocol):
            assert deviation.source.partition(",")[0] == own["paper"]
