"""The presets that carry a published name hold the paper's settings, and ours say what they change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dprec.deviations import deviations
from dprec.options import Options, published_of
from simulation import load
from simulation.comparison.planning import load_comparison
from simulation.configuration.dotted_keys import at
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import read_yaml

ROOT = Path(__file__).parents[3]
PAPERS: dict[str, Any] = read_yaml(ROOT / "docs" / "papers.yaml")
PUBLISHED, OURS, DEPARTURES = PAPERS["published"], PAPERS["ours"], PAPERS["departures"]


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
    assert found(name) == {own["key"]: own["value"] for own in DEPARTURES if name in own["presets"]}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_setting_that_can_leave_the_paper_is_listed(name: str) -> None:
    parts = [*PUBLISHED[name]["settings"], *(own for own in DEPARTURES if name in own["presets"])]
    assert set(declared(configured(name).protocol)) <= {part["key"] for part in parts}


@pytest.mark.parametrize("name", OURS)
def test_what_is_beyond_the_paper_is_what_an_improved_preset_changes(name: str) -> None:
    original = OURS[name]["of"]
    assert {key: value for key, value in found(name).items() if key not in found(original)} == OURS[name][
        "differs"
    ]
    assert OURS[name]["differs"].items().isdisjoint(found(original).items())


def test_only_the_bound_of_the_entries_is_excused() -> None:
    (own,) = DEPARTURES
    assert (own["key"], own["published"], own["at"]) == ("completion.bounded", True, "Eq. 2")
    assert all(name.startswith("one-bit-") for name in own["presets"])
    assert own["why"]


def test_the_comparison_holds_the_published_and_the_improved_form() -> None:
    compared = {cell.protocol for cell in load_comparison("compare-seeds").cells}
    assert {*PUBLISHED, *OURS} - {"pg-mf-reduced"} <= compared


def test_sources_are_references() -> None:
    references = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    papers = {own["paper"] for own in PUBLISHED.values()}
    assert all(f"{{{paper}," in references for paper in papers)
    for name, own in PUBLISHED.items():
        for deviation in deviations(configured(name).protocol):
            assert deviation.source.partition(",")[0] == own["paper"]
