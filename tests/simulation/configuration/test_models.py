"""Every setting of every component: what is wrong in it is said in one plain line that names its key."""

import dataclasses
import json
import math
import re
from collections.abc import Iterator
from datetime import date
from functools import cache, reduce
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import jsonschema
import numpy as np
import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, create_model

from dprec.components import Options, Registry, kind_of, one_of
from dprec.components.options import ELSEWHERE
from dprec.components.user_defined import reference_of
from dprec.errors import InputError
from dprec.federated import FederatedModel
from simulation import run
from simulation.comparison.templates import ComparisonConfig
from simulation.configuration.models import RunConfig, parse_config, validated
from simulation.configuration.strict_yaml import parse_yaml, replace_value
from simulation.protocols import PROTOCOLS
from simulation.protocols.components import COMPONENT_REGISTRIES
from tests.models import Still
from tests.refusals import refused_at

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


REGISTRIES = [*COMPONENT_REGISTRIES, PROTOCOLS]

WRONG: list[Any] = [None, True, 7, -1, 0, 1.5, -0.5, math.nan, math.inf, 10**400, date(2020, 1, 1), b"x"]
WRONG += ["", "word", "x" * 200, [], [True], ["word"], [[]], {}, {"kind": "word"}, {"kind": []}]
WRONG += [{"unknown": 1}, {"kind": "mf", "unknown": 1}]

PYDANTICS = re.compile(r"\b(Input|should|Value error|valid|Unable|extract|instance of|JSON|or equal)\b")


Group = type[BaseModel | Options]


def field_names(group: Group) -> list[str]:
    """Return the keys of a group, as they are written."""
    if issubclass(group, BaseModel):
        return [field.alias or name for name, field in group.model_fields.items()]
    return [field.name for field in dataclasses.fields(group)]


def parts(hint: Any) -> Iterator[Any]:
    """Yield the classes that a type is made of."""
    for part in get_args(hint):
        yield from parts(part)
    if isinstance(hint, type) and not get_args(hint):
        yield hint


def groups_below(group: Group, known: set[Group]) -> set[Group]:
    """Return every class whose fields are keys of a configuration."""
    if group not in known:
        known.add(group)
        for hint in get_type_hints(group, include_extras=True).values():
            for part in parts(hint):
                if issubclass(part, Options | BaseModel):
                    groups_below(part, known)
    return known


GROUPS = sorted(
    groups_below(RunConfig, set()) | groups_below(ComparisonConfig, set()), key=lambda g: g.__name__
)


def example(hint: Any) -> Any:
    """Return a value, as a file has it, that a type accepts."""
    if get_origin(hint) is Annotated:
        return example(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if get_origin(hint) is list:
        return [example(get_args(hint)[0])]
    if get_args(hint):
        return example(get_args(hint)[0])
    if issubclass(hint, Options | BaseModel):
        return required(hint)
    return {int: 1, float: 0.5, str: "x", bool: True}[hint]


@cache
def required(group: Group) -> dict[str, Any]:
    """Return the fewest settings that a class is satisfied with."""
    if group is FederatedModel:
        return {"kind": reference_of(Still)}
    hints = get_type_hints(group, include_extras=True)
    schema = create_model("Alone", alone=(group, ...)).model_json_schema()
    needed = schema["$defs"][group.__name__].get("required", [])
    kind = {"kind": kind_of(group)} if "kind" in hints else {}  # type: ignore[arg-type]
    return kind | {name: example(hints[name]) for name in needed}


@cache
def holder(hint: Any) -> type[BaseModel]:
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    return create_model("Holder", __config__=config, part=(hint, Field(description="A part.")))


def refusal(model: type[BaseModel], part: dict[str, Any]) -> InputError | None:
    try:
        validated(model, {"part": part}, "FILE")
    except InputError as error:
        return error
    return None


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_whatever_is_wrong_is_said_in_plain_words(group: Group) -> None:
    model, whole = holder(group), required(group)
    assert refusal(model, whole) is None
    for name in field_names(group):
        errors = [error for value in WRONG if (error := refusal(model, {**whole, name: value}))]
        assert errors
        for error in errors:
            assert error.where == "FILE: part" or error.where.startswith(f"FILE: part.{name}")
            assert not PYDANTICS.search(error.accepted), str(error)
            assert "\n" not in str(error)


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.name)
def test_an_unknown_kind_is_answered_with_the_kinds_of_that_registry(registry: Registry[Any]) -> None:
    model = holder(one_of(registry))
    for part, found in (({}, "missing"), ({"kind": "zzz"}, "'zzz'"), ({"kind": None}, "null")):
        with pytest.raises(InputError) as caught:
            validated(model, {"part": part}, "FILE")
        assert (caught.value.where, caught.value.found) == ("FILE: part.kind", found)
        assert caught.value.accepted.partition(";")[0] == (", ".join(registry.kinds) or ELSEWHERE)
