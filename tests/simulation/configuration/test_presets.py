"""Presets by name from anywhere; published names hold the settings of the papers."""

import dataclasses
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from dprec.accounting import ComparableUnit
from dprec.components import Options, deviations, published_of
from dprec.errors import InputError
from dprec.protocols.best import promises
from simulation import load
from simulation.analysis.description import describe
from simulation.analysis.vocabulary import PROTECTED
from simulation.comparison.planning import load_comparison
from simulation.configuration import strict_yaml as presets
from simulation.configuration.loading import checked_parts
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import (
    apply_override,
    at,
    dump_yaml,
    find_configuration,
    parse_yaml,
    preset_folder,
    preset_promise,
    preset_summary,
    read_yaml,
)
from tests.refusals import refused_at


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_preset_is_found_by_its_name() -> None:
    assert load("blp-mf").name == "blp-mf"
    assert load("blp-mf", ["seed=5"]).seed == 5


def test_a_file_comes_before_a_preset_and_a_folder_does_not(elsewhere: Path, tiny: dict[str, Any]) -> None:
    (elsewhere / "plain-mf").mkdir()
    assert load("plain-mf").name == "plain-mf"
    (elsewhere / "blp-mf").write_text(yaml.safe_dump(tiny))
    assert load("blp-mf").name == "tiny"


def test_what_is_neither_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(InputError) as caught:
        find_configuration("blpmf")
    assert (caught.value.where, caught.value.found) == ("blpmf", "neither a file nor a preset")
    assert "blp-mf" in caught.value.accepted
    with refused_at("/somewhere/0123456789.yaml"):
        find_configuration("/somewhere/0123456789.yaml")


@pytest.fixture(scope="module")
def compared() -> dict[str, Any]:
    """Return the cells of a comparison at one budget, by their protocols."""
    return {own.protocol: own for own in load_comparison("compare-answer").cells if own.epsilon == 1.0}


@pytest.mark.parametrize("name", promises("ratings", "rating"))
def test_the_name_of_a_promise_in_a_comparison_is_refused_with_what_sets_it(
    name: str, compared: dict[str, Any]
) -> None:
    with pytest.raises(InputError) as caught:
        find_configuration(name)
    assert "cells/" in caught.value.accepted
    preset, *overrides = caught.value.accepted.rpartition(": ")[2].split(" --set ")
    assert load(preset, overrides).protocol == compared[name].config.protocol


def test_every_preset_has_a_name_and_a_description_of_its_own() -> None:
    files = list(preset_folder().rglob("*.yaml"))
    known = presets.presets()
    assert sorted(known.values()) == sorted(files)
    assert [read_yaml(path)["name"] for path in files] == [path.stem for path in files]
    assert len({path.stem for path in files}) == len(files)
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in files)
    assert [path for path in files if not preset_summary(path).endswith(".")] == []


@pytest.mark.parametrize("name", sorted(path.stem for path in (preset_folder() / "ours").iterdir()))
def test_a_preset_of_ours_says_what_it_promises(name: str) -> None:
    protocol, shape = load(name).protocol, (943, 1682)
    held, privacy = protocol.guarantee(shape), getattr(protocol, "privacy", None)
    unit: ComparableUnit = "user" if getattr(privacy, "per", None) == "user" else "rating"
    said = preset_promise(find_configuration(name))
    promise = f"in the {held.trust} model: {PROTECTED[unit][held.hides_rated_items]}"
    assert said == ("as stated: trust model, unit, item set" if name == "best" else promise)


def test_the_presets_of_an_installed_package_come_first(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, tiny: dict[str, Any]
) -> None:
    monkeypatch.setattr(presets, "_PACKAGE", elsewhere)
    (elsewhere / "presets").mkdir()
    (elsewhere / "presets" / "own.yaml").write_text(yaml.safe_dump(tiny))
    assert load("own").name == "tiny"


def test_values_and_a_configuration_are_loaded_as_they_are(tiny: dict[str, Any]) -> None:
    config = load(tiny, ["seed=5"])
    assert (config.seed, tiny["seed"]) == (5, 1)
    assert load(config) is config
    assert load(config, ["seed=6"]) == config.model_copy(update={"seed": 6})


def test_a_preset_whose_data_are_absent_says_which_setting_to_change() -> None:
    dataset = load_comparison("compare-seeds").config.dataset
    with pytest.raises(InputError, match=r"accepted: .*: --set dataset\.path=PATH"):
        dataset.load()


ROOT = Path(__file__).parents[3]
PAPERS: dict[str, Any] = read_yaml(ROOT / "docs" / "papers.yaml")
PUBLISHED, OURS = PAPERS["published"], PAPERS["ours"]
PLACE = re.compile(
    r"(section \d+(\.\d+)*|(Theorem|Definition|Algorithm|Eq\.) \d+|Eqs\. \d+ and \d+)(?=[,:]|$)"
)


@cache
def configured(name: str) -> RunConfig:
    changed = PAPERS["changed"].get(name)
    return load(name) if changed is None else load(changed["of"], changed["set"])


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
    compared = {cell.protocol: cell.config.protocol for cell in load_comparison("compare-seeds").cells}
    assert {*PUBLISHED, *OURS} - {"pg-mf-reduced"} <= set(compared)
    for name in OURS:
        assert deviations(compared[name]) == deviations(configured(name).protocol)


def test_published_names_stand_for_the_same_in_every_comparison() -> None:
    meant: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in PUBLISHED}
    for name, each in PAPERS["changed"].items():
        pairs = (one.split("=", 1) for one in each["set"])
        meant[name] = each["of"], {key: yaml.safe_load(value) for key, value in pairs}
    for path in (ROOT / "configs" / "comparisons").glob("*.yaml"):
        for entry in read_yaml(path)["protocols"]:
            each = entry if isinstance(entry, dict) else {"name": entry}
            own = {
                key: value
                for key, value in each.get("set", {}).items()
                if not key.startswith(("dataset", "split"))
            }
            if each["name"] in meant:
                assert (each.get("preset", each["name"]), own) == meant[each["name"]], path.name


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_setting_says_where_the_paper_states_it(name: str) -> None:
    """A section, equation or theorem; and the page, if the text that was read has pages."""
    pages = PAPERS["texts"][PUBLISHED[name]["paper"]]["pages"]
    for setting in PUBLISHED[name]["settings"]:
        assert PLACE.match(setting["at"]), setting
        assert ("page" in setting) == (pages is not None), setting
        assert pages is None or 1 <= setting["page"] <= pages, setting


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_the_code_declares_is_what_the_paper_is_listed_with(name: str) -> None:
    """Of two declarations of a setting, in its class and in docs/papers.yaml, neither goes unnoticed."""
    listed = {setting["key"]: setting["value"] for setting in PUBLISHED[name]["settings"]}
    for line in describe(configured(name)).settings:
        if line.source and line.key in listed:
            assert listed[line.key] in line.published, line
            assert line.source.startswith(f"{PUBLISHED[name]['paper']}, "), line


def test_sources_are_references() -> None:
    references = (ROOT / "dprec" / "references.bib").read_text(encoding="utf-8")
    papers = {own["paper"] for own in PUBLISHED.values()}
    assert all(f"{{{paper}," in references for paper in papers)
    for name, own in PUBLISHED.items():
        for deviation in deviations(configured(name).protocol):
            assert deviation.source.partition(",")[0] == own["paper"]


@pytest.mark.parametrize(
    ("content", "line", "found"),
    [
        (b"a: 1\nb: [1, 2\n", 3, "expected ',' or ']'"),
        (b"a: 1\nb: 2\na: 3\n", 3, "the key 'a' twice"),
        (b"a: &x 1\nb: *x\n", 2, "an alias, which is not supported"),
        (b"a: !!python/object/apply:os.system ['true']\n", 1, "could not determine a constructor"),
        (b"\xff\xfe\x00", None, "not UTF-8 text"),
        (b"[" * 5000, None, "recursion"),
    ],
)
def test_what_is_no_mapping_in_yaml_is_refused(
    tmp_path: Path, content: bytes, line: int | None, found: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(file)
    assert caught.value.where == f"{file}, line {line}" if line else str(file) in caught.value.where
    assert found in caught.value.found
    assert "\n" not in str(caught.value)


def test_dumped_yaml_is_read_back_unchanged() -> None:
    values = {
        "text": ["1e5", "1", "-1e+5", "~", "1e5.", "yes", "0x10", "1_000", "2020-01-01"],
        "numbers": [1e5, 1e-7, 1, math.pi],
        "nothing": None,
        "ü": "é",
    }
    assert parse_yaml(dump_yaml(values), "again") == values


@pytest.mark.parametrize(
    ("override", "where"),
    [
        ("seed", "overrides"),
        ("a..b=1", "overrides"),
        ("seed.x=1", "overrides seed.x"),
        ("seed={a: 1, a: 2}", "overrides seed, line 1"),
    ],
)
def test_a_bad_override_is_refused(tiny: dict[str, Any], override: str, where: str) -> None:
    with refused_at(where):
        apply_override(tiny, override)


@pytest.mark.parametrize("overrides", [None, 3, "seed=1", [None], {"seed": 1}])
def test_what_is_no_list_of_overrides_is_refused(tiny: dict[str, Any], overrides: Any) -> None:
    for refused in (
        lambda: load(tiny, overrides),
        lambda: checked_parts({"dataset": [(1, 1, 5), (2, 1, 3)]}, "epsilon", overrides),
    ):
        with refused_at("overrides"):
            refused()
