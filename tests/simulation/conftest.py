"""A population small enough to run in an instant, and the presets that are tried on it."""

import copy
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from simulation import run
from simulation.configuration.strict_yaml import presets as preset_files
from simulation.configuration.strict_yaml import read_yaml, replace_value
from simulation.console.command_line import main
from simulation.result import RunResult
from tests.make import ON_THIS_MACHINE, POSITIVE_DATA
from tests.simulation.divisions import Expected, bits, divided

TINY: dict[str, Any] = {
    "name": "tiny",
    "seed": 1,
    "dataset": {"kind": "synthetic", "users": 40, "items": 30, "ratings": 400},
    "split": {"kind": "holdout", "test_fraction": 0.2},
    "protocol": {
        "kind": "one-shot",
        "privacy": {"epsilon": 1.0, "per": "rating"},
        "mechanism": {"kind": "bounded-laplace"},
        "completion": {"kind": "mf", "rank": 2, "iterations": 10},
    },
    "simulation": {"backend": "local", "users_per_node": 20},
}


@pytest.fixture
def tiny() -> dict[str, Any]:
    """Return a configuration that may be changed."""
    return copy.deepcopy(TINY)


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    """Return what gives the bits of a configuration, which runs once for all that is compared with it."""
    known: dict[str, dict[str, Any]] = {}

    def in_one_process(values: dict[str, Any]) -> dict[str, Any]:
        key = repr(values)
        if key not in known:
            folder = tmp_path_factory.mktemp("expected") / "run"
            known[key] = bits(None, divided(values, "local", 1, "all"), folder)
        return known[key]

    return in_one_process


CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "gram-with-groups": (
        "gram-secagg",
        {"protocol.table": {"items": 20, "popularity_share": 0.2, "groups": 4, "grouped_items": 60}},
    ),
    "secagg-als": ("secagg-item-effects", {"protocol.factorization.rank": 3}),
    "weekly-fresh": ("weekly-increments", {"schedule.kind": "fresh"}),
    "weekly-two-layers": ("weekly-increments", {"schedule.kind": "two-layers"}),
}
"""What is tried like presets: a preset, and what is changed in it."""


def presets() -> dict[str, dict[str, Any]]:
    """Return every preset that is a run and not a comparison, on the small population; it may be changed.

    Without PyTorch, what needs it is left out.
    """
    return copy.deepcopy(_presets())


@cache
def _presets() -> dict[str, dict[str, Any]]:
    found = {name: read_yaml(path) for name, path in preset_files().items()}
    for name, (preset, changes) in CHANGED.items():
        found[name] = {**copy.deepcopy(found[preset]), "name": name}
        for key, value in changes.items():
            replace_value(found[name], key, value, name)
    small = {**TINY, "dataset": {"kind": "synthetic", "users": 40, "items": 60, "ratings": 800}}
    runs = {
        name: {**values, **copy.deepcopy({key: small[key] for key in ("dataset", "split", "simulation")})}
        for name, values in found.items()
        if "protocol" in values
    }
    for name, values in runs.items():
        if "positive" in found[name]["dataset"]:
            values["dataset"]["positive"] = found[name]["dataset"]["positive"]
        if values["protocol"]["kind"] == "x-map":
            values["dataset"] = {"kind": "synthetic-domains", "users": 40, "items": 60, "ratings": 800}
            values["split"] = {"kind": "cold-start", "test_fraction": 0.4}
        if "schedule" in values:
            values["dataset"]["arrivals"] = {}
            values["schedule"]["days"] = 40
        if "rounds" in values["protocol"]:
            values["protocol"]["rounds"] = min(values["protocol"]["rounds"], 4)
    if find_spec("torch") is None:
        del runs["fedrep"]
    return runs


class Finished(NamedTuple):
    """What a command left behind."""

    code: object
    out: str
    err: str


@pytest.fixture
def dprec(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the command line as a function of its arguments."""

    def command(*arguments: object) -> Finished:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Finished(caught.value.code, captured.out, captured.err)

    return command


def run_of_sets(name: str, output: Path | None = None, copies: int = 0, **parts: Any) -> RunResult:
    """Run a preset, or one of `CHANGED`, on positive pairs of few users, or on so many copies of these."""
    data = {**POSITIVE_DATA, "copies": copies} if copies else POSITIVE_DATA
    name, changes = CHANGED.get(name, (name, {}))
    overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()] + parts.pop("overrides", [])
    settings: dict[str, Any] = {"dataset": data, "simulation": ON_THIS_MACHINE, **parts}
    return run(name, output, page=False, overrides=overrides, **settings)


def run_of_ratings(
    name: str,
    *settings: str,
    users: int = 200,
    items: int = 60,
    count: int = 6000,
    seed: int = 1,
    **parts: Any,
) -> RunResult:
    """Run a preset on so many ratings; ``settings`` are those of its protocol."""
    dataset = {"kind": "synthetic", "users": users, "items": items, "ratings": count}
    overrides = [f"seed={seed}", *(f"protocol.{setting}" for setting in settings)]
    given: dict[str, Any] = {"dataset": dataset, "simulation": ON_THIS_MACHINE, **parts}
    return run(name, page=False, overrides=overrides, **given)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what takes a preset with every one of them."""
    if "preset" in metafunc.fixturenames:
        every = presets()
        metafunc.parametrize("preset", list(every.values()), ids=list(every))
