"""Every setting of every component: what is wrong in it is said in one plain line that names its key."""

import copy
import json
import math
import re
from collections import defaultdict
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import yaml
from pydantic import Field, create_model

from dprec.components import Registry, one_of
from dprec.components.options import ELSEWHERE
from dprec.errors import InputError
from dprec.protocols.components import COMPONENT_REGISTRIES
from dprec.protocols.registry import PROTOCOLS
from simulation import run
from simulation.configuration.models import RunConfig, parse_config, validated
from simulation.configuration.strict_yaml import at, flatten, parse_yaml, replace_value
from tests.refusals import refused_at
from tests.simulation.conftest import presets

SURROGATE, DEEP = "a\ud800", reduce(lambda inner, _: [inner], range(5_000), [])


@pytest.mark.parametrize(
    ("key", "value", "where", "found", "accepted"),
    [
        ("unknown", 1, "unknown", "an unknown key", "name, seed, dataset, split, binarization, protocol"),
        ("simulation.faults.unknown", 1, "simulation.faults.unknown", "an unknown key", "dropout, straggle"),
        ("protocol.privacy.privacy", {}, "protocol.privacy.privacy", "an unknown key", "epsilon, per"),
        ("evaluation.topk", 3, "evaluation.topk", "an unknown key", "; did you mean top_k?"),
        ("split.kind", "hold-out", "split.kind", "'hold-out'", "; did you mean holdout?"),
        ("dataset", {"users": 3}, "dataset.kind", "missing", ""),
        ("split", {"kind": "predefined"}, "split.fold", "missing", ""),
        ("protocol.privacy", {"per": "user"}, "protocol.privacy.epsilon", "missing", ""),
        ("name", "../x", "name", "'../x'", "text that matches '^[A-Za-z0-9][A-Za-z0-9._-]*$'"),
        ("protocol.privacy.epsilon", math.inf, "protocol.privacy.epsilon", "inf", "a finite number"),
        ("simulation.users_per_node", 0, "simulation.users_per_node", "0", "at least 1, or 'auto' or 'all'"),
        ("protocol.mechanism.symbols", 10**400, "protocol.mechanism.symbols", "...", "at most 65536"),
        ("split", {"kind": "k-fold", "folds": 5, "fold": 5}, "split.fold", "5", "0 to 4"),
        ("simulation.faults", {"dropout": 0.9, "corrupt": 0.9}, "simulation.faults", "1.8", ""),
        ("seed", np.int64(-1), "seed", "-1", "at least 0"),
        ("name", SURROGATE, "", "", ""),
        ("name", DEEP, "", "", ""),
    ],
)
def test_what_is_wrong_is_named_by_its_key(
    tiny: dict[str, Any], key: str, value: Any, where: str, found: str, accepted: str
) -> None:
    replace_value(tiny, key, value, "test")
    with refused_at(f"FILE{where and ': '}{where}") as caught:
        parse_config(tiny, "FILE")
    assert found in caught.value.found
    assert accepted in caught.value.accepted


@pytest.mark.parametrize("key", ["protocol", "split"])
def test_a_misspelt_key_comes_before_the_one_that_it_leaves_missing(tiny: dict[str, Any], key: str) -> None:
    misspelt = {name: value for name, value in tiny.items() if name != key} | {key[:-1]: tiny[key]}
    del misspelt["split" if key == "protocol" else "protocol"]
    with refused_at(f"FILE: {key[:-1]}") as caught:
        parse_config(misspelt, "FILE")
    assert caught.value.found == "an unknown key"
    assert caught.value.accepted.endswith(f"did you mean {key}?")


@pytest.mark.parametrize("seed", [2**64, 10**400])
def test_seeds_of_any_size(tiny: dict[str, Any], seed: int) -> None:
    tiny["seed"] = tiny["dataset"]["seed"] = seed
    config = parse_config(tiny)
    assert config.seed == seed
    assert run(config).summary["accuracy"]["rmse"] > 0


def test_configurations_made_in_python_may_hold_numbers_of_numpy(tiny: dict[str, Any]) -> None:
    tiny["protocol"] = {
        "kind": "one-shot",
        "privacy": {"epsilon": np.float64(1)},
        "mechanism": {"kind": "threshold-bit", "threshold": np.int64(4)},
        "completion": {"kind": "calibrated", "sweeps": np.int32(3), "histogram": np.arange(1, 6)},
    }
    config = parse_config({**tiny, "seed": np.uint64(2**63)})
    assert config.seed == 2**63
    assert config.protocol.completion.sweeps == 3  # type: ignore[attr-defined]
    assert config.protocol.completion.histogram == (1, 2, 3, 4, 5)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    """Return what checks values against the schema, as editors do."""
    schema = json.loads(json.dumps(RunConfig.model_json_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_schema_accepts_what_the_models_accept(
    validator: jsonschema.Draft202012Validator, preset: dict[str, Any]
) -> None:
    assert list(validator.iter_errors(preset)) == []
    assert list(validator.iter_errors({**preset, "unknown": 1}))
    assert list(validator.iter_errors({**preset, "seed": -1}))


def test_a_configuration_survives_its_own_yaml(preset: dict[str, Any]) -> None:
    config = parse_config(preset)
    again = parse_config(parse_yaml(config.to_yaml(), "again"))
    assert again == config
    assert again.to_yaml() == config.to_yaml()


def test_paths_are_written_so_that_they_work_from_anywhere(
    tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for path, expected in (
        ("~/data", tmp_path / "data"),
        ("data", tmp_path / "data"),
        ("/data", Path("/data")),
    ):
        config = parse_config({**tiny, "dataset": {"kind": "movielens-100k", "path": path}})
        assert yaml.safe_load(config.to_yaml())["dataset"]["path"] == str(expected)
        items = {"path": path, "numbers": ["year"]}
        config = parse_config({**tiny, "dataset": {"kind": "csv", "path": "x", "items": items}})
        assert yaml.safe_load(config.to_yaml())["dataset"]["items"]["path"] == str(expected)
        parts = dict.fromkeys(("train_path", "test_path", "validation_path"), path)
        config = parse_config({**tiny, "dataset": {"kind": "csv", **parts}})
        written = yaml.safe_load(config.to_yaml())["dataset"]
        assert {written[part] for part in parts} == {str(expected)}


@pytest.mark.parametrize(
    ("users_per_node", "users", "size"), [("all", 7, 7), ("auto", 80, 10), ("auto", 1, 1), (3, 7, 3)]
)
def test_partition_sizes(tiny: dict[str, Any], users_per_node: Any, users: int, size: int) -> None:
    tiny["simulation"]["users_per_node"] = users_per_node
    assert parse_config(tiny).simulation.partition_size(users) == size


def test_the_configuration_of_a_run_gives_the_same_run_again(tmp_path: Path, tiny: dict[str, Any]) -> None:
    first = run(tiny, tmp_path / "first", page=False)
    second = run(tmp_path / "first" / "config.yaml", tmp_path / "second", page=False)
    for file in ("config.yaml", "predictions.csv.gz", "traffic.csv"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()
    assert np.array_equal(first.predictions["prediction"], second.predictions["prediction"])
    assert first.summary["accuracy"] == second.summary["accuracy"]


WRONG: list[Any] = [None, True, -1, 0, -0.5, math.nan, math.inf, 10**400, date(2020, 1, 1), b"x", "word"]
WRONG += [[], [True], [[]], {}, {"kind": "word"}, {"kind": []}, {"unknown": 1}, {"kind": "mf", "unknown": 1}]
PYDANTICS = re.compile(r"\b(Input|should|Value error|valid|Unable|extract|instance of|JSON|or equal)\b")


EVERY = presets()


def settings_by_preset() -> dict[str, list[str]]:
    """Return the keys of presets, each once for all that have it in parts of the same kinds."""
    known: set[tuple[str, ...]] = set()
    found: dict[str, list[str]] = defaultdict(list)
    for name, preset in EVERY.items():
        protocol = preset["protocol"]
        for key in dict.fromkeys([*protocol, *flatten(protocol)]):
            parts = key.split(".")
            setting = key, *(str(at(protocol, *parts[:depth], "kind")) for depth in range(len(parts)))
            if setting not in known:
                known.add(setting)
                found[name].append(f"protocol.{key}")
    return found


@pytest.mark.parametrize(("name", "keys"), settings_by_preset().items())
def test_whatever_is_wrong_is_said_in_plain_words(name: str, keys: list[str]) -> None:
    for key in keys:
        refusals = []
        for value in WRONG:
            changed = copy.deepcopy(EVERY[name])
            replace_value(changed, key, value, "test")
            try:
                parse_config(changed, "FILE")
            except InputError as error:
                refusals.append(error)
        assert refusals, key
        for error in refusals:
            assert error.where.startswith("FILE: protocol")
            assert not PYDANTICS.search(error.accepted), str(error)
            assert "\n" not in str(error)


@pytest.mark.parametrize("registry", [*COMPONENT_REGISTRIES, PROTOCOLS], ids=lambda registry: registry.name)
def test_an_unknown_kind_is_answered_with_the_kinds_of_that_registry(registry: Registry[Any]) -> None:
    model = create_model("Holder", part=(one_of(registry), Field(description="A part.")))
    for part, found in (({}, "missing"), ({"kind": "zzz"}, "'zzz'"), ({"kind": None}, "null")):
        with pytest.raises(InputError) as caught:
            validated(model, {"part": part}, "FILE")
        assert (caught.value.where, caught.value.found) == ("FILE: part.kind", found)
        assert caught.value.accepted.partition(";")[0] == (", ".join(registry.kinds) or ELSEWHERE)
