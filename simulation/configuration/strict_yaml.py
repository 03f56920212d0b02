"""Plain values: YAML read strictly, nested values under dotted keys, and the presets, found by name."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from dprec.components import Options
from dprec.errors import MAPPING, UNKNOWN_KEY, InputError


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping; raises InputError for anything else."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(str(path), str(reason), "a readable YAML file") from None
    values = parse_yaml(text, str(path))
    if not isinstance(values, dict):
        found = {list: "a list", str: "text", type(None): "nothing"}.get(type(values), "a value")
        raise InputError(str(path), found, MAPPING)
    return values


def parse_yaml(text: str, source: str) -> Any:
    """Parse YAML strictly: no repeated keys, no aliases, and 1e-3 is a number."""
    if _can_be_read_fast(text):
        # What is wrong with it is said by the other loader.
        with suppress(yaml.YAMLError, ValueError, RecursionError):
            return yaml.load(text, Loader=_FastStrictLoader)
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{source}{line}", str(error.problem or error.context), "valid YAML") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(source, str(error), "valid YAML") from None


_LONGEST_LINE, _MOST_OPENED = 200, 100


def _can_be_read_fast(text: str) -> bool:
    """Return whether a text has no aliases, and is too flat for libyaml to overflow its stack.

    A level needs a column of its own, or is opened by a bracket.
    """
    if "*" in text or not yaml.__with_libyaml__:
        return False
    opened = sum(text.count(opening) - text.count(empty) for opening, empty in (("[", "[]"), ("{", "{}")))
    return opened < _MOST_OPENED and max(map(len, text.splitlines()), default=0) < _LONGEST_LINE


class _Strict(yaml.constructor.SafeConstructor):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for position, ((key_node, _), key) in enumerate(zip(node.value, keys, strict=True)):
            if key in keys[:position]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} twice", key_node.start_mark
                )
        return super().construct_mapping(node, deep)


class _StrictLoader(_Strict, yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.constructor.ConstructorError(None, None, "an alias, which is not supported", mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


class _FastStrictLoader(_Strict, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    pass


class _StrictDumper(yaml.SafeDumper):
    pass


# Both ends must agree that 1e5 is a number, or the text "1e5" would come back as one.
for _end in (_StrictLoader, _FastStrictLoader, _StrictDumper):
    _end.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
        list("-+0123456789"),
    )


def dump_yaml(values: Any) -> str:
    """Return plain values as YAML that `parse_yaml` reads back unchanged."""
    return str(yaml.dump(values, Dumper=_StrictDumper, sort_keys=False, allow_unicode=True))


def check_named(config: object) -> None:
    """Refuse what is neither a mapping nor can name a file or a preset."""
    if not isinstance(config, Mapping | str | Path):
        accepted = "a file of a comparison or of ratings, the name of a preset, or a mapping"
        raise InputError("config", f"a value of type {type(config).__name__}", accepted)


def check_overrides(overrides: Sequence[str]) -> None:
    """Refuse overrides that are no sequence of texts: a text is a sequence too, of its characters."""
    several = isinstance(overrides, Sequence) and not isinstance(overrides, str)
    if not several or not all(isinstance(override, str) for override in overrides):
        raise InputError("overrides", repr(overrides), 'a list of texts, such as ["seed=1"]')


def apply_override(values: dict[str, Any], override: str) -> None:
    """Replace one value, in place; see `dprec.load`."""
    key, equals, text = override.partition("=")
    if not equals or not all(key.split(".")):
        raise InputError("overrides", repr(override), "dotted.key=value")
    replace_value(values, key, _value_of(key, text), "overrides")


def _value_of(key: str, text: str) -> Any:
    """Return the value of an override; refuse a text that YAML cannot read, or takes for another."""
    where, quoted = f"overrides {key}", f"the value in quotes: {as_argument(key, text)}"
    begins, several_lines = text.strip()[:1], "\n" in text.strip()
    try:
        value = parse_yaml(text, where)
    except InputError as error:
        if begins not in ("{", "[") and not several_lines:
            raise InputError(where, f"{text!r}, which is no YAML ({error.found})", quoted) from None
        accepted = f"{error.accepted}, with texts such as '>= 5' in quotes"
        raise InputError(error.where, error.found, accepted) from None
    for name, inner in flatten(value).items():
        if inner is None and ":" in name:  # YAML takes {kind:csv} for a key without a value
            first, _, rest = name.rpartition(".")[2].partition(":")
            accepted = f"a space after a colon: {first}: {rest}" if begins == "{" else quoted
            raise InputError(where, repr(text), accepted)
    if isinstance(value, str) and value != text.strip() and begins not in ("'", '"') and not several_lines:
        raise InputError(where, f"{text!r}, of which YAML reads {value!r}", quoted)
    return value


@contextmanager
def overrides_named(overrides: Sequence[str]) -> Iterator[None]:
    """Name an override in an error of the block that is its own, in place of the file that it changes.

    Where a text is asked for, name the quotes that make one of the override's value.
    """
    try:
        yield
    except InputError as error:
        key, typed = (
            error.where.rpartition(": ")[2],
            dict(override.partition("=")[::2] for override in overrides),
        )
        # A key that is not known may be a part of the one that was typed.
        part = (f"{key}.",) if error.found == UNKNOWN_KEY else ()
        if not any(
            key == own or key.startswith((f"{own}.", f"{own}[")) or own.startswith(part) for own in typed
        ):
            raise
        quoted = (
            f": {as_argument(key, typed[key])}"
            if error.accepted.startswith("text") and typed.get(key)
            else ""
        )
        raise InputError(f"overrides {key}", error.found, error.accepted + quoted) from None


def as_argument(key: str, text: str) -> str:
    """Return how a text is typed as the value of a setting, for a shell."""
    try:
        same = parse_yaml(text, key) == text
    except InputError:
        same = False
    value = text if same else json.dumps(text, ensure_ascii=False)
    return f"--set {shlex.quote(f'{key}={value}')}"


def flatten(values: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as a single one with dotted keys."""
    if not isinstance(values, dict):
        return {prefix: values}
    return {
        key: value
        for name, inner in values.items()
        for key, value in flatten(inner, f"{prefix}.{name}" if prefix else str(name)).items()
    }


def at(values: Any, *keys: str) -> Any:
    """Return the value under a path of keys in nested mappings; None if there is none."""
    for key in keys:
        if not isinstance(values, Mapping):
            return None
        values = values.get(key)
    return values


def replace_value(values: dict[str, Any], key: str, value: Any, source: str) -> None:
    """Replace the value under a dotted key, in place, through mappings that are made on the way."""
    *parents, last = key.split(".")
    target: Any = values
    for position, part in enumerate(parents):
        if isinstance(target.setdefault(part, {}), Options):
            target[part] = target[part].entries()
        target = target[part]
        if not isinstance(target, dict):
            where = ".".join(parents[: position + 1])
            raise InputError(f"{source} {key}", f"{where} is {target!r}", "a key below a mapping")
    target[last] = value


_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_folder(name: str, in_checkout: str) -> Path:
    """Return a folder that an installed package holds by a name, or where a checkout has it."""
    shipped = _PACKAGE / name
    return shipped if shipped.is_dir() else _PACKAGE.parent / in_checkout


def preset_folder() -> Path:
    """Return the folder of the presets."""
    return shipped_folder("presets", "configs")


def presets() -> dict[str, Path]:
    """Return the file of every preset by its name, experiments included."""
    return {path.stem: path for path in sorted(preset_folder().rglob("*.yaml"))}


CONFIG, COMPARISON = "config.yaml", "comparison.yaml"
"""What was run, in the directory of a run and of a comparison."""

OF_EITHER = "a file or directory of a run or of a comparison"
"""What stands for a configuration where both will do."""


def find_configuration(
    config: str | Path, accepted: str = "a file or directory of a run (as in cells/)"
) -> Path:
    """Return the file that a path or the name of a preset stands for; of a directory, what was run in it.

    A file takes precedence. ``accepted``: which there may be, for errors. Raises InputError when there is
    neither, with the presets that have the most similar names, or what sets the promise that a comparison
    calls so.
    """
    if not str(config).strip():
        raise InputError("config", "an empty name", f"{accepted}, or a preset: see dprec list")
    path, files = Path(config), presets()
    if str(config) in files and not path.is_file():
        return files[str(config)]
    if path.is_dir():
        file = next((path / name for name in (CONFIG, COMPARISON) if (path / name).is_file()), None)
        if file is None:
            found = "a folder of neither a run nor a comparison"
            raise InputError(str(config), found, f"one of dprec ls {config}")
        return file
    if path.exists():
        return path
    nearest = _promised(path.stem) or ", ".join(get_close_matches(path.stem, files, n=3)) or "see dprec list"
    raise InputError(str(config), "neither a file nor a preset", f"{accepted}, or a preset: {nearest}")


def _promised(name: str) -> str:
    """Return the preset, with options, of a promise that comparisons call by a name; empty if none do."""
    # Whoever finds a file does without the protocols.
    from dprec.protocols.best import promises

    settings = flatten(promises("ratings", "rating").get(name, {}))
    kind = settings.pop("kind", "")
    return " ".join([kind, *(f"--set protocol.{key}={value}" for key, value in settings.items())])


def preset_summary(path: Path) -> str:
    """Return the first line of the comment at the top of a preset's file; empty if there is none."""
    return _comment(path, 0)


def preset_promise(path: Path) -> str:
    """Return what the second line of a preset's comment says of its promise; empty if nothing."""
    words = _comment(path, 1)
    return words.removeprefix("Promise ").rstrip(".") if words.startswith("Promise ") else ""


def _comment(path: Path, place: int) -> str:
    """Return one of the lines at the top of a file, without the mark of a comment; empty if it is none."""
    with path.open(encoding="utf-8") as file:
        line = [file.readline() for _ in range(place + 1)][place]
    return line.removeprefix("#").strip() if line.startswith("#") else ""
