"""Presets by name from anywhere."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dprec.errors import InputError
from simulation import load
from simulation.comparison.planning import load_comparison
from simulation.configuration import presets
from simulation.configuration.presets import find_configuration, preset_folder, preset_summary


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_preset_is_found_by_its_name() -> None:
    assert load("blp-mf").name == "blp-mf"
    assert load("blp-mf", ["seed=5"]).seed == 5


@pytest.mark.parametrize("name", [name for name in presets.presets() if name.startswith("compare-")])
def test_every_comparison_that_ships_can_be_planned(name: str) -> None:
    assert load_comparison(name).config.name == name


def test_a_comparison_and_its_entries_are_found_by_name(elsewhere: Path) -> None:
    own = {
        "dataset": {"kind": "synthetic"},
        "split": {"kind": "holdout"},
        "epsilons": [1.0],
        "baselines": False,
    }
    (elsewhere / "own.yaml").write_text(yaml.safe_dump({"name": "own", **own, "protocols": ["blp-mf"]}))
    assert [cell.protocol for cell in load_comparison("own.yaml").cells] == ["blp-mf"]


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
    with pytest.raises(InputError, match="see dprec list presets"):
        find_configuration("/somewhere/0123456789.yaml")


def test_every_preset_has_a_name_and_a_description_of_its_own() -> None:
    files = list(preset_folder().rglob("*.yaml"))
    known = presets.presets()
    assert sorted(known.values()) == sorted(files)
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in files)
    assert [path for path in files if not preset_summary(path).endswith(".")] == []


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
    with pytest.raises(InputError, match=r"accepted: .* as the data set's path"):
        dataset.load()
