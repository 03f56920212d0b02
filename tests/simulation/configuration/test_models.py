"""Every setting of every component: what is wrong in it is said in one plain line that names its key."""

import dataclasses
import json
import math
import re
from collections.abc import Iterator
from datetime import date
from functools import cache
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
from simulation.configuration.strict_yaml import apply_override, parse_yaml
from simulation.protocols import PROTOCOLS
from simulation.protocols.components import COMPONENT_REGISTRIES
from tests.models import Still
from tests.refusals import refused_at


def refused(values: dict[str, Any], override: str | None = None) -> InputError:
    if override:
        apply_override(values, override)
    with pytest.raises(InputError) as caught:
        parse_config(values, "FILE")
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("override", "accepted"),
    [
        (
            "unknown=1",
            "name, seed, dataset, split, binarization, protocol, schedule, attacks, simulation, evaluation",
        ),
        ("simulation.faults.unknown=1", "dropout, straggle, corrupt"),
        ("evaluation.simulation=1", "top_k, relevant_from"),
        (
            "dataset.mechanism={kind: none}",
            "kind, positive, min_items, copies, simulated_up_to, users",
        ),
        ("protocol.privacy.privacy={}", "epsilon, per"),
    ],
)
def test_unknown_keys_are_refused_at_every_level(tiny: dict[str, Any], override: str, accepted: str) -> None:
    error = refused(tiny, override)
    assert error.where == f"FILE: {override.partition('=')[0]}"
    assert error.found == "an unknown key"
    assert error.accepted.startswith(accepted)


@pytest.mark.parametrize(
    ("override", "found", "accepted"),
    [
        ('seed="1"', "'1'", "an integer"),
        ("seed=", "null", "an integer"),
        ("name=../x", "'../x'", "text that matches '^[A-Za-z0-9][A-Za-z0-9._-]*$'"),
        ("dataset=synthetic", "'synthetic'", "a mapping of keys to values"),
        ("dataset.users={kind: mf}", "{'kind': 'mf'}", "an integer"),
        ("protocol.privacy.epsilon=1e400", "inf", "a finite number"),
        ("protocol.privacy.epsilon=true", "true", "a number"),
        ("protocol.privacy.per=item", "'item'", "'rating', 'cell' or 'user'"),
        ("simulation.users_per_node=0", "0", "at least 1, or 'auto' or 'all'"),
        ("evaluation.top_k=[10]", "[10]", "an integer"),
        ("protocol.mechanism.kind=", "null", None),
        ("protocol.mechanism.symbols=" + "9" * 400, "9" * 80 + "...", "at most 65536"),
        ("dataset={kind: csv, path: x, user_column: 1.5}", "1.5", "text, or an integer"),
    ],
)
def test_wrong_values_name_their_key(
    tiny: dict[str, Any], override: str, found: str, accepted: str | None
) -> None:
    error = refused(tiny, override)
    assert error.where.startswith(f"FILE: {override.partition('=')[0]}")
    assert (error.found, error.accepted) == (found, accepted or error.accepted)
    assert "Input" not in error.accepted


@pytest.mark.parametrize(
    ("override", "key"),
    [
        *((None, key) for key in ("name", "dataset", "split", "protocol")),
        ("dataset={kind: movielens-100k}", "dataset.path"),
        ("split={kind: predefined}", "split.fold"),
        ("protocol.privacy={per: user}", "protocol.privacy.epsilon"),
        ("protocol={kind: one-shot, completion: {kind: mf}}", "protocol.mechanism"),
        ("dataset={users: 3}", "dataset.kind"),
        ("binarization={kind: threshold, threshold: 3}", "binarization.above"),
        ("protocol.mechanism={}", "protocol.mechanism.kind"),
    ],
)
def test_a_missing_key_is_named(tiny: dict[str, Any], override: str | None, key: str) -> None:
    if override is None:
        del tiny[key]
    error = refused(tiny, override)
    assert (error.where, error.found) == (f"FILE: {key}", "missing")


def test_what_a_component_checks_itself_names_the_key_too(tiny: dict[str, Any]) -> None:
    error = refused(tiny, "split={kind: k-fold, folds: 5, fold: 5}")
    assert (error.where, error.found) == ("FILE: split.fold", "5")
    assert "0 to 4" in error.accepted
    tiny["split"]["fold"] = 0
    error = refused(tiny, "simulation.faults={dropout: 0.9, corrupt: 0.9}")
    assert error.where == "FILE: simulation.faults"
    assert "1.8" in error.found


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
    with refused_at("configuration: seed"):
        parse_config({**tiny, "seed": np.int64(-1)})


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
COMPONENTS = [(registry, component) for registry in REGISTRIES for component in registry]

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


@pytest.mark.parametrize(
    ("registry", "component"), COMPONENTS, ids=[f"{r.name}-{kind_of(c)}" for r, c in COMPONENTS]
)
def test_a_typing_error_is_answered_with_the_keys_of_that_component(
    registry: Registry[Any], component: type[Options]
) -> None:
    with refused_at("FILE: part.zzz") as caught:
        validated(holder(one_of(registry)), {"part": {**required(component), "zzz": 1}}, "FILE")
    assert caught.value.found == "an unknown key"
    assert caught.value.accepted == ", ".join(field_names(component))


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.name)
def test_an_unknown_kind_is_answered_with_the_kinds_of_that_registry(registry: Registry[Any]) -> None:
    model = holder(one_of(registry))
    for part, found in (({}, "missing"), ({"kind": "zzz"}, "'zzz'"), ({"kind": None}, "null")):
        with pytest.raises(InputError) as caught:
            validated(model, {"part": part}, "FILE")
        assert (caught.value.where, caught.value.found) == ("FILE: part.kind", found)
        assert caught.value.accepted.partition(";")[0] == (", ".join(registry.kinds) or ELSEWHERE)


@pytest.mark.parametrize(
    ("change", "where", "meant"),
    [
        ({"seeed": 1}, "seeed", "seed"),
        ({"evaluation": {"topk": 3}}, "evaluation.topk", "top_k"),
        ({"split": {"kind": "hold-out", "test_fraction": 0.2}}, "split.kind", "holdout"),
    ],
)
def test_the_nearest_name_is_offered(
    tiny: dict[str, Any], change: dict[str, Any], where: str, meant: str
) -> None:
    with refused_at(f"FILE: {where}") as caught:
        validated(RunConfig, {**tiny, **change}, "FILE")
    assert caught.value.accepted.endswith(f"; did you mean {meant}?")


def test_values_without_end_are_refused(tiny: dict[str, Any]) -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    with refused_at("FILE"):
        validated(RunConfig, {**tiny, "name": deep}, "FILE")


def test_text_that_no_file_can_hold_is_refused(tiny: dict[str, Any]) -> None:
    with refused_at("FILE"):
        validated(RunConfig, {**tiny, "name": "a\ud800"}, "FILE")
