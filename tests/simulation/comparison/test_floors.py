"""What every comparison holds its protocols against: once for each thing that they predict."""

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

from dprec.errors import InputError
from simulation import compare
from simulation.comparison.planning import Comparison, load_comparison
from simulation.configuration.models import parse_config
from simulation.configuration.presets import presets
from simulation.configuration.strict_yaml import read_yaml
from simulation.protocols.floors import BASELINES, baseline_of
from tests.paths import CONFIGS

DATASET = {"kind": "synthetic", "users": 30, "items": 20, "ratings": 300}
DOMAINS = {"kind": "synthetic-domains", "users": 40, "items": 60, "ratings": 800}
COLD = {"kind": "cold-start", "test_fraction": 0.4}
SHARED: dict[str, Any] = {
    "name": "some",
    "dataset": DATASET,
    "split": {"kind": "holdout", "test_fraction": 0.2},
    "seeds": [1, 2],
    "epsilons": [1.0],
    "simulation": {"backend": "local"},
}


def write(folder: Path, protocols: list[Any], **changes: Any) -> Path:
    path = folder / "some.yaml"
    path.write_text(yaml.safe_dump({**SHARED, "protocols": protocols, **changes}))
    return path


def load(folder: Path, protocols: list[Any], **changes: Any) -> Comparison:
    return load_comparison(write(folder, protocols, **changes))


def names(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(cell.protocol for cell in comparison.cells))


def test_baselines_follow_the_protocols_with_the_same_folds_and_seeds(tmp_path: Path) -> None:
    split = {"kind": "k-fold", "folds": 3, "fold": 0}
    comparison = load(tmp_path, ["blp-mf"], split=split, folds=[0, 2])
    assert names(comparison) == ["blp-mf", *BASELINES]
    for baseline in BASELINES:
        cells = [cell for cell in comparison.cells if cell.protocol == baseline]
        assert [(cell.fold, cell.seed) for cell in cells] == [(0, 1), (0, 2), (2, 1), (2, 2)]
        assert {cell.epsilon for cell in cells} == {None}
        assert all(baseline_of(cell.config.protocol) == baseline for cell in cells)
        assert [cell.config.split.fold for cell in cells] == [0, 0, 2, 2]  # type: ignore[attr-defined]


def test_baselines_can_be_left_out(tmp_path: Path) -> None:
    assert names(load(tmp_path, ["blp-mf"], baselines=False)) == ["blp-mf"]


def test_everything_that_is_predicted_has_its_baselines(tmp_path: Path) -> None:
    elsewhere = {"dataset": DOMAINS, "split": COLD}
    comparison = load(tmp_path, ["plain-mf", "one-bit-clear", {"name": "nx-map", "set": elsewhere}, "blp-mf"])
    kinds = ("", "-signs", "-synthetic-domains")
    expected = [baseline + kind for kind in kinds for baseline in BASELINES]
    assert names(comparison)[4:] == expected
    cells = {cell.protocol: cell.config for cell in comparison.cells}
    assert cells["nothing-sent"].binarization is None
    assert cells["nothing-sent-signs"].binarization == cells["one-bit-clear"].binarization
    assert cells["nothing-sent-synthetic-domains"].dataset == cells["nx-map"].dataset
    assert cells["nothing-sent-synthetic-domains"].split == cells["nx-map"].split


def test_public_data_about_the_items_change_no_rating(tmp_path: Path) -> None:
    films = {"kind": "movielens-100k", "path": "nowhere", "items": True}
    entries = ["blp-mf", {"name": "without", "preset": "blp-mf", "set": {"dataset.items": False}}]
    assert names(load(tmp_path, entries, dataset=films)) == ["blp-mf", "without", *BASELINES]
    fewer = {"name": "fewer", "preset": "blp-mf", "set": {"dataset.items": 10}}
    assert len(names(load(tmp_path, ["blp-mf", fewer]))) == 2 + 2 * len(BASELINES)


def test_what_is_listed_is_not_added_whatever_its_name(tmp_path: Path) -> None:
    elsewhere = {"dataset": DOMAINS, "split": COLD}
    protocols = [
        "blp-mf",
        {"name": "alone", "preset": "nothing-sent", "set": {"protocol.prior": 4}},
        {"name": "item-average", "set": elsewhere},
    ]
    comparison = load(tmp_path, protocols)
    assert "nothing-sent" not in names(comparison)
    assert {"item-average-synthetic", "nothing-sent-synthetic-domains"} <= set(names(comparison))


def test_a_panel_has_its_baselines_in_it(tmp_path: Path) -> None:
    panels_of = {"blp-some": "20 % seen", "blp-all": "all"}
    entries = [{"name": name, "preset": "blp-mf", "panel": panel} for name, panel in panels_of.items()]
    comparison = load(tmp_path, entries)
    panels = {cell.protocol: cell.panel for cell in comparison.cells}
    assert panels["nothing-sent-20-seen"] == "20 % seen"
    assert panels["nothing-sent-all"] == "all"


def test_splits_that_differ_are_numbered(tmp_path: Path) -> None:
    other = {"split": {"kind": "leave-n-per-user"}}
    comparison = load(tmp_path, ["blp-mf", {"name": "blp-svd", "set": other}])
    assert {"nothing-sent", "nothing-sent-synthetic"} <= set(names(comparison))
    comparison = load(tmp_path, ["blp-mf", {"name": "blp-svd", "set": other}, {"name": "isgd", "set": SMALL}])
    assert {"nothing-sent", "nothing-sent-synthetic", "nothing-sent-2"} <= set(names(comparison))


SMALL = {"split": {"kind": "holdout", "test_fraction": 0.1}}


def test_baselines_are_known_among_the_presets() -> None:
    runs = {name: values for name, path in presets().items() if "protocol" in (values := read_yaml(path))}
    known = {name: baseline_of(parse_config(values).protocol) for name, values in runs.items()}
    assert known == {name: name if name in BASELINES else None for name in runs}


def test_averages_of_noisy_ratings_or_on_devices_are_no_baseline() -> None:
    noisy = {"kind": "one-shot", "mechanism": {"kind": "bounded-laplace"}, "privacy": {"epsilon": 1.0}}
    values = read_yaml(presets()["item-average"])
    protocol = {**noisy, "completion": {"kind": "item-average"}}
    assert baseline_of(parse_config({**values, "protocol": protocol}).protocol) is None
    protocol = {**values["protocol"], "personalization": "on-device"}
    assert baseline_of(parse_config({**values, "protocol": protocol}).protocol) is None


def test_the_table_names_baselines_and_an_interrupted_comparison_goes_on(tmp_path: Path) -> None:
    path, folder = write(tmp_path, ["blp-mf"]), tmp_path / "out"
    assert not compare(path, folder, page=False).failures
    table = (folder / "comparison.csv").read_text()
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["baseline"] for row in rows] == [
        "",
        "",
        *(baseline for baseline in BASELINES for _ in SHARED["seeds"]),
    ]
    assert [row["against"] for row in rows[:4]] == ["nothing-sent", "nothing-sent", "", ""]
    better = [float(rows[2 + seed]["rmse"]) - float(rows[seed]["rmse"]) for seed in (0, 1)]
    low, gained, high = (float(rows[0][f"rmse_gain{end}"]) for end in ("_low", "", "_high"))
    assert low < gained < high
    assert gained == pytest.approx(sum(better) / 2, abs=1e-9)
    (folder / "cells" / "nothing-sent-seed2" / "summary.json").unlink()
    assert not compare(path, folder, resume=True, page=False).failures
    assert (folder / "comparison.csv").read_text() == table
    predictions = folder / "cells" / "nothing-sent-seed1" / "predictions.csv"
    predictions.write_text(predictions.read_text().replace("3", "4"))
    with pytest.raises(InputError, match=r"without .*nothing-sent-seed1.summary.json, --resume runs the"):
        compare(path, folder, resume=True, page=False)
    assert load_comparison(folder / "comparison.yaml").cells == load_comparison(path).cells


def test_a_page_of_a_comparison_has_room_for_what_sends_nothing(tmp_path: Path) -> None:
    compare(write(tmp_path, ["nothing-sent"], baselines=False), tmp_path / "out")
    assert "nothing-sent" in (tmp_path / "out" / "report.html").read_text()


def test_experiments_without_baselines_are_those_that_say_so() -> None:
    without = {
        path.stem
        for path in (CONFIGS / "experiments").glob("*.yaml")
        if not load_comparison(path).config.baselines
    }
    assert without == {"neera-fig2", "one-bit-fig1", "one-bit-fig4", "one-bit-fig5"}
