"""Every setting of every component: what is wrong in it is said in one plain line that names its key."""

import math
import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model

from dprec.components import Options, Registry, kind_of, one_of
from dprec.components.settings import Group, field_names
from dprec.errors import InputError
from simulation.comparison.definition import ComparisonConfig
from simulation.configuration.models import RunConfig, validated
from simulation.protocols import PROTOCOLS
from simulation.protocols.components import COMPONENT_REGISTRIES

REGISTRIES = [*COMPONENT_REGISTRIES, PROTOCOLS]
COMPONENTS = [(registry, component) for registry in REGISTRIES for component in registry]

WRONG: list[Any] = [None, True, 7, -1, 0, 1.5, -0.5, math.nan, math.inf, 10**400, date(2020, 1, 1), b"x"]
WRONG += ["", "word", "x" * 200, [], [True], ["word"], [[]], {}, {"kind": "word"}, {"kind": []}]
WRONG += [{"unknown": 1}, {"kind": "mf", "unknown": 1}]

PYDANTICS = re.compile(r"\b(Input|should|Value error|valid|Unable|extract|instance of|JSON|or equal)\b")


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
    with pytest.raises(InputError) as caught:
        validated(holder(one_of(registry)), {"part": {**required(component), "zzz": 1}}, "FILE")
    assert caught.value.where == "FILE: part.zzz"
    assert caught.value.found == "an unknown key"
    assert caught.value.accepted == ", ".join(field_names(component))


@pytest.mark.parametrize("kind", ["trusted-server", "gradient-perturbation", "one-shot"])
def test_the_one_bit_completions_keys_are_not_those_of_the_one_bit_gradient(
    tiny: dict[str, Any], kind: str
) -> None:
    tiny["protocol"] = {
        "kind": kind,
        "privacy": {"epsilon": 1.0},
        "completion": {"kind": "one-bit", "zzz": 1},
    }
    if kind == "trusted-server":
        tiny["protocol"]["perturbation"] = {"kind": "output"}
    if kind == "one-shot":
        tiny["protocol"]["mechanism"] = {"kind": "bounded-laplace"}
    with pytest.raises(InputError) as caught:
        validated(RunConfig, tiny, "FILE")
    assert caught.value.where == "FILE: protocol.completion.zzz"
    assert caught.value.accepted.startswith("kind, link, sigma, alpha, rank")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.name)
def test_an_unknown_kind_is_answered_with_the_kinds_of_that_registry(registry: Registry[Any]) -> None:
    model = holder(one_of(registry))
    for part, found in (({}, "missing"), ({"kind": "zzz"}, "'zzz'"), ({"kind": None}, "null")):
        with pytest.raises(InputError) as caught:
            validated(model, {"part": part}, "FILE")
        assert (caught.value.where, caught.value.found) == ("FILE: part.kind", found)
        assert caught.value.accepted.partition(";")[0] == ", ".join(registry.kinds)


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
    with pytest.raises(InputError) as caught:
        validated(RunConfig, {**tiny, **change}, "FILE")
    assert caught.value.where == f"FILE: {where}"
    assert caught.value.accepted.endswith(f"; did you mean {meant}?")


def test_values_without_end_are_refused(tiny: dict[str, Any]) -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(InputError, match="FILE: values nested too deeply; accepted: at most 50 levels"):
        validated(RunConfig, {**tiny, "name": deep}, "FILE")


def test_text_that_no_file_can_hold_is_refused(tiny: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="FILE: an unpaired Unicode surrogate"):
        validated(RunConfig, {**tiny, "name": "a\ud800"}, "FILE")
