"""The locked environments of `make`."""

import tomllib

import pytest

from release.locks import CONSTRAINTS, LOCKS, hashes_of, pins_of
from tests.paths import ROOT
from tests.test_sources import declared

TEXTS = {name: (ROOT / "requirements" / name).read_text(encoding="utf-8") for name in LOCKS}
CHOSEN = pins_of((ROOT / CONSTRAINTS).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_the_chosen_versions_and_a_hash_for_each(name: str) -> None:
    pins, hashes = pins_of(TEXTS[name]), hashes_of(TEXTS[name])
    assert pins == {each: CHOSEN.get(each) for each in pins}
    assert pins.keys() == hashes.keys()
    assert all(len(digit) == 64 for own in hashes.values() for digit in own)
    assert [each for each, own in hashes.items() if not own] == []


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_index_and_no_place(name: str) -> None:
    assert [
        line for line in TEXTS[name].splitlines() if "://" in line or line.startswith(("-", "/", "."))
    ] == []


def test_the_locks_have_all_that_is_declared() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, build = table["project"], table["dependency-groups"]["build"]
    extras = project["optional-dependencies"]
    run = declared([*project["dependencies"], *build])
    test = run.union(*(declared(extras[name]) for name in ("test", "docs", "spreadsheets", "tune")))
    of_release = [each for each in table["dependency-groups"]["release"] if isinstance(each, str)]
    assert run - pins_of(TEXTS["run.txt"]).keys() == set()
    assert test - pins_of(TEXTS["test.txt"]).keys() == {"dprec"}
    assert declared([*of_release, *build]) - pins_of(TEXTS["release.txt"]).keys() == set()
