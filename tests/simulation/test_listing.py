"""What a folder of results is said to hold, whatever is in it."""

import copy
import json
import shutil
from pathlib import Path

import pytest
import yaml

from simulation import audit, compare, ls, run, tune
from simulation.listing import Found
from tests.simulation.conftest import TINY


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one result of every kind."""
    folder = tmp_path_factory.mktemp("results")
    tiny = copy.deepcopy(TINY)
    run(tiny, folder / "runs" / "one", page=False)
    comparison = {
        "name": "two",
        "dataset": tiny["dataset"],
        "split": tiny["split"],
        "epsilons": [1.0, 4.0],
        "baselines": False,
        "protocols": [{"name": "blp-mf"}],
        "simulation": {"backend": "local"},
    }
    compare(comparison, folder / "compared", page=False)
    audit(tiny, folder / "audited", trials=200)
    tune([tiny], folder / "tuned", 2)
    return folder


def by_name(folder: Path) -> dict[str, Found]:
    return {each.path.name: each for each in ls(folder)}


def test_every_kind_is_found_with_its_state_and_best_figure(results: Path) -> None:
    found = by_name(results)
    kinds = {"one": "run", "compared": "comparison", "audited": "audit", "tuned": "tuning"}
    assert {name: each.kind for name, each in found.items()} == kinds
    assert {each.state for each in found.values()} == {"finished"}
    rmse = json.loads((results / "runs" / "one" / "summary.json").read_text())["accuracy"]["rmse"]
    assert (found["one"].what, found["one"].best) == ("tiny on synthetic", f"RMSE {rmse:.4f}")
    assert (found["compared"].done, found["compared"].planned) == (2, 2)
    assert found["compared"].best.endswith(("(blp-mf, budget 1)", "(blp-mf, budget 4)"))
    assert found["audited"].best.startswith("not broken: \u03b5 = 1, at least ")
    assert (found["tuned"].what, found["tuned"].best) == ("tiny", "2 trials")


def test_what_is_not_finished_says_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(TINY))
    cells = tmp_path / "compared" / "cells"
    for name in ("a", "c", "other"):
        (cells / name).mkdir(parents=True)
    for name in ("a", "other"):
        (cells / name / "summary.json").touch()
    (tmp_path / "compared" / "comparison.yaml").write_text("name: x\ncells: {a: 1, b: 2, c: 3}\n")
    found = by_name(tmp_path)
    assert {each.state for each in found.values()} == {"unfinished"}
    assert (found["run"].what, found["run"].progress) == ("tiny on synthetic", "unfinished")
    assert (found["compared"].what, found["compared"].progress) == ("x", "1 of 3 finished")


def test_the_server_of_a_pilot_is_no_run_and_its_runs_are_listed(results: Path, tmp_path: Path) -> None:
    server = tmp_path / "pilots" / "first" / "server"
    shutil.copytree(results / "runs" / "one", server / "runs" / "one")
    (server / "runs" / "two").mkdir()
    for path in (server, server / "runs" / "two"):
        (path / "config.yaml").write_text(yaml.safe_dump(TINY))
    (server / "deployment.json").write_text("{}")
    for top in (tmp_path, server):
        found = {name: each.state for name, each in by_name(top).items()}
        assert found == {"one": "finished", "two": "unfinished"}


def test_a_comparison_that_is_yet_to_be_run_hides_no_results(tmp_path: Path) -> None:
    (tmp_path / "comparison.yaml").write_text("name: x\n")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "config.yaml").write_text(yaml.safe_dump(TINY))
    assert set(by_name(tmp_path)) == {"one"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("summary.json", b"{"),
        ("comparison.yaml", b"name: \x1b[31m"),
        ("comparison.csv", b"name\n1\n"),
        ("tuning.yaml", b"configurations: ["),
        ("trials.json", b"{}"),
        ("audit.json", b'{"holds": 1}'),
    ],
)
def test_what_is_damaged_is_listed_as_such(tmp_path: Path, name: str, content: bytes) -> None:
    claimed = {
        "summary.json": "config.yaml",
        "comparison.csv": "comparison.yaml",
        "trials.json": "tuning.yaml",
    }
    for folder in ("bad", "other"):
        (tmp_path / folder / "cells").mkdir(parents=True)
        (tmp_path / folder / claimed.get(name, "config.yaml")).write_text("name: x\n")
    (tmp_path / "bad" / name).write_bytes(content)
    found = by_name(tmp_path)
    assert (found["bad"].state, found["other"].state) == ("damaged", "unfinished")
    assert found["bad"].damage
    assert "\n" not in found["bad"].damage
