"""The configuration of a run: one frozen model, read strictly, with errors of one line.

Components describe themselves (see `dprec.options`); here they are put together, read from YAML and
checked as a whole. Unknown keys are errors, and a number written as a string is not a number.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clients.faults import FaultOptions
from dprec.errors import InputError
from dprec.options import Options, option
from dprec.registry import Registry, kind_of
from simulation.protocols import PROTOCOLS
from simulation.protocols.base import Protocol
from simulation.protocols.components import (
    COMPONENT_REGISTRIES,
    AnyBinarization,
    AnyDataset,
    AnySplit,
    one_of,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    AnyProtocol = Protocol
else:
    AnyProtocol = one_of(PROTOCOLS)

_MAPPING = "a mapping of keys to values"

_USERS_AT_ONCE = 20_000
"""Most users of an automatic cohort: bounds the memory of a worker."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulationOptions(Options):
    """How the population is simulated; of all this, only the faults change a result."""

    backend: Literal["ray", "local"] = option("Flower on Ray, or everything in one process.", "ray")
    workers: int = option("Ray actors that work for the devices.", 2, ge=1, le=1024)
    users_per_node: Annotated[int, Field(ge=1)] | Literal["auto", "all"] = option(
        "Users that one Flower node hosts.", "auto"
    )

    faults: FaultOptions = option("What goes wrong between devices and server.", FaultOptions())

    def cohort_size(self, n_users: int) -> int:
        """Return the number of users per node for a population."""
        if self.users_per_node == "all":
            return max(1, n_users)
        if self.users_per_node == "auto":
            return max(1, min(_USERS_AT_ONCE, math.ceil(n_users / (4 * self.workers))))
        return self.users_per_node


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationOptions(Options):
    """How accuracy is measured."""

    top_k: int = option("Length of the recommended list.", 10, ge=1, le=1_000_000_000)
    relevant_from: float | None = option(
        "A test rating from here on is relevant; by default from the user's train mean on.", None
    )


class RunConfig(BaseModel):
    """Everything that a run depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)] = Field(
        description="Name of the run and of its directory."
    )
    seed: int = Field(default=0, ge=0, description="Seed of everything that is drawn.")
    dataset: AnyDataset = Field(description="The ratings.")
    split: AnySplit = Field(description="What is learned from and what is tested on.")
    binarization: AnyBinarization | None = Field(
        default=None, description="Where ratings are cut into +1 and -1, for methods that need signs."
    )
    protocol: AnyProtocol = Field(description="How devices and server reach predictions together.")
    simulation: SimulationOptions = Field(default=SimulationOptions(), description="How it is simulated.")
    evaluation: EvaluationOptions = Field(default=EvaluationOptions(), description="How it is judged.")

    def to_yaml(self) -> str:
        """Return the configuration as YAML that runs again from anywhere."""
        values = self.model_dump(mode="json")
        for key in ("path", "target_path"):
            if isinstance(values["dataset"].get(key), str):
                values["dataset"][key] = str(Path(values["dataset"][key]).expanduser().absolute())
        return dump_yaml(_without_nulls(values))


@contextmanager
def full_keys(config: RunConfig) -> Iterator[None]:
    """Give errors in which a component names a setting of its own that setting's full key."""
    try:
        yield
    except InputError as error:
        raise InputError(_full_key(error.where, config), error.found, error.accepted) from None


def _full_key(where: str, config: RunConfig) -> str:
    for key, owner in (("split", config.split), ("dataset", config.dataset)):
        if where in _field_names(type(owner)):
            return f"{key}.{where}"
    component, dot, setting = where.partition(".")
    part = getattr(config.protocol, component, None) if dot else None
    # The name of a file may begin like a component; only a setting that exists is a key.
    if isinstance(part, Options) and setting in _field_names(type(part)):
        return f"protocol.{where}"
    return where


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a configuration file.

    Parameters
    ----------
    path : str or Path
    overrides : sequence of str
        ``dotted.key=value``, the value in YAML; it replaces what stands there.

    Raises
    ------
    InputError
        Naming the file, the key, what was found and what is accepted.
    """
    values = read_yaml(Path(path))
    if "protocols" in values and "protocol" not in values:
        raise InputError(str(path), "the configuration of a comparison", f"a run's, or: dprec compare {path}")
    for override in overrides:
        apply_override(values, override)
    return parse_config(values, str(path))


def parse_config(values: Mapping[str, Any], source: str = "configuration") -> RunConfig:
    """Check a configuration given as plain values; see `load_config`."""
    config: RunConfig = validated(RunConfig, values, source)
    return config


def validated(model: type[Any], values: Mapping[str, Any], source: str) -> Any:
    """Validate plain values against a model, with one line for the first error."""
    try:
        return model.model_validate_json(json.dumps(_text_keys(values), default=str))
    except ValidationError as error:
        raise _one_line(error, values, source, model) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises
    ------
    InputError
        When it cannot be read, is not YAML, or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(str(path), str(reason), "a readable YAML file") from None
    values = parse_yaml(text, str(path))
    if not isinstance(values, dict):
        found = {list: "a list", str: "text", type(None): "nothing"}.get(type(values), "a value")
        raise InputError(str(path), found, _MAPPING)
    return values


def apply_override(values: dict[str, Any], override: str) -> None:
    """Replace one value, in place; see `load_config`."""
    key, equals, text = override.partition("=")
    if not equals or not all(key.split(".")):
        raise InputError("--set", repr(override), "dotted.key=value")
    replace_value(values, key, parse_yaml(text, f"--set {key}"), "--set")


def flatten(values: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted keys."""
    if not isinstance(values, dict):
        return {prefix: values}
    return {
        key: value
        for name, inner in values.items()
        for key, value in flatten(inner, f"{prefix}.{name}" if prefix else str(name)).items()
    }


def replace_value(values: dict[str, Any], key: str, value: Any, source: str) -> None:
    """Replace what stands under a dotted key, in place; mappings on the way are made where missing."""
    *parents, last = key.split(".")
    target: Any = values
    for position, part in enumerate(parents):
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            where = ".".join(parents[: position + 1])
            raise InputError(f"{source} {key}", f"{where} is {target!r}", "a key below a mapping")
    target[last] = value


def parse_yaml(text: str, source: str) -> Any:
    """Parse YAML strictly: no repeated keys, no aliases, and 1e-3 is a number."""
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{source}{line}", str(error.problem or error.context), "valid YAML") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(source, str(error), "valid YAML") from None


class _StrictLoader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.constructor.ConstructorError(None, None, "an alias, which is not supported", mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for position, ((key_node, _), key) in enumerate(zip(node.value, keys, strict=True)):
            if key in keys[:position]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} a second time", key_node.start_mark
                )
        return super().construct_mapping(node, deep)


class _StrictDumper(yaml.SafeDumper):
    pass


# Both ends must agree that 1e5 is a number, or the text "1e5" would come back as one.
for _end in (_StrictLoader, _StrictDumper):
    _end.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
        list("-+0123456789"),
    )


def dump_yaml(values: Any) -> str:
    """Return plain values as YAML that `parse_yaml` reads back unchanged."""
    return str(yaml.dump(values, Dumper=_StrictDumper, sort_keys=False, allow_unicode=True))


def _one_line(error: ValidationError, values: Mapping[str, Any], source: str, model: type[Any]) -> InputError:
    """Turn the first error into one line that names the key as it is written."""
    first = error.errors()[0]
    keys, owner = _walk(first["loc"], values, model)
    where = f"{source}: {'.'.join(keys)}" if keys else source
    kind, context = first["type"], first.get("ctx", {})
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return InputError(where, "an unknown key", ", ".join(_field_names(owner)))
    if kind in ("missing", "missing_argument"):
        return InputError(where, "missing", _described(owner, keys[-1]))
    if isinstance(nested := context.get("error"), InputError):
        # A component names its own settings; one that checks several may name itself in full.
        inner = nested.where.removeprefix(".".join(keys)).lstrip(".")
        return InputError(f"{where}.{inner}".rstrip("."), nested.found, nested.accepted)
    if kind == "union_tag_invalid":
        found = first["input"].get("kind") if isinstance(first["input"], dict) else first["input"]
        return InputError(f"{where}.kind", _shown(found), str(context["expected_tags"]).replace("'", ""))
    if kind == "union_tag_not_found":
        kinds = [kind for registry in _registries() if registry.name == keys[-1] for kind in registry.kinds]
        return InputError(f"{where}.kind", "missing", ", ".join(kinds))
    # A key of several types has an error for each; its value may be what any of them accepts.
    accepted = [_accepted(other) for other in error.errors() if _walk(other["loc"], values, model)[0] == keys]
    return InputError(where, _shown(first["input"]), ", or ".join(dict.fromkeys(accepted)))


_PLAIN_WORDS = (
    (r"^(Value error, |Input should be )", ""),
    (r"^(a valid integer|Unable to parse input string as an integer).*", "a whole number"),
    (r"^a valid number$", "a number"),
    (r"^a valid string$", "text"),
    (r"^a valid boolean$", "true or false"),
    (r"^a valid (array|list)$", "a list"),
    (r"^(an object|a valid dictionary).*", _MAPPING),
    (r"^(greater|less) than or equal to", lambda found: {"greater": "at least", "less": "at most"}[found[1]]),
    (r"^(?:List|String|Value) should have (at (?:least|most) \d+ \w+).*", r"\1"),
    (r"^String should match pattern", "text that matches"),
)
"""What pydantic says, and how it is said where it is a setting that is wrong."""

_LONGEST_SHOWN = 80


def _accepted(error: ErrorDetails) -> str:
    """Return what one error says would be accepted, in the words of a configuration."""
    words = error["msg"]
    for pattern, plain in _PLAIN_WORDS:
        words = re.sub(pattern, plain, words)
    return words


def _shown(value: Any) -> str:
    """Return a value as it is written, in full where that is short."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _walk(
    location: Sequence[str | int], values: Mapping[str, Any], model: type[Any]
) -> tuple[list[str], type[Any]]:
    """Follow an error's location: the keys as written, and the class that owns the last of them.

    Between the keys, a location names the kinds that were chosen and the alternatives of a type.
    """
    components = {kind_of(part): part for registry in _registries() for part in registry}
    owner: type[Any] = model
    keys: list[str] = []
    here: Any = values
    chosen: Any = None
    for position, part in enumerate(location):
        if isinstance(part, int) and isinstance(here, list):
            keys[-1] += f"[{part}]"
            here = here[part]
            continue
        if part == chosen:
            chosen = None
            continue
        known = part in _field_names(owner)
        written = isinstance(here, Mapping) and part in here
        if not (known or written or position == 0):
            owner = components.get(str(part), owner)
            continue
        keys.append(str(part))
        here = here.get(part) if isinstance(here, Mapping) else None
        chosen = here.get("kind") if isinstance(here, Mapping) else None
        inner = _plain_types(owner).get(str(part))
        if position < len(location) - 1:
            owner = components.get(str(chosen), inner or owner)
    return keys, owner


def _registries() -> list[Registry[Any]]:
    return [*COMPONENT_REGISTRIES, PROTOCOLS]


def _plain_types(owner: type[Any]) -> dict[str, type[Any]]:
    """Return the classes of the fields that hold options of one fixed kind, or a list of them."""
    if dataclasses.is_dataclass(owner):
        hints = get_type_hints(owner)
    else:
        hints = {name: field.annotation for name, field in owner.model_fields.items()}
    found = {
        name: [part for part in _parts(hint) if issubclass(part, Options | BaseModel)]
        for name, hint in hints.items()
    }
    return {name: classes[0] for name, classes in found.items() if len(classes) == 1}


def _parts(hint: Any) -> Iterator[type[Any]]:
    """Yield the classes that a type is made of."""
    for part in get_args(hint):
        yield from _parts(part)
    if isinstance(hint, type) and not get_args(hint):
        yield hint


def _field_names(owner: type[Any]) -> list[str]:
    return list(_descriptions(owner))


def _described(owner: type[Any], key: str) -> str:
    return _descriptions(owner).get(key) or "a value"


def _descriptions(owner: type[Any]) -> dict[str, str | None]:
    """Return what is said of each field, by the name that it is written under."""
    if dataclasses.is_dataclass(owner):
        return {field.name: field.metadata.get("description") for field in dataclasses.fields(owner)}
    return {field.alias or name: field.description for name, field in owner.model_fields.items()}


def _text_keys(values: Any) -> Any:
    """Return plain values with every key as text: YAML also has numbers, dates and nothing as keys."""
    if isinstance(values, Mapping):
        return {str(key): _text_keys(value) for key, value in values.items()}
    return [_text_keys(value) for value in values] if isinstance(values, list) else values


def _without_nulls(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_nulls(value) for key, value in values.items() if value is not None}
    return values
