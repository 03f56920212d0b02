"""YAML read strictly: one mapping per file, no repeated keys, no aliases, and 1e-3 is a number."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from dprec.errors import MAPPING, InputError


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
        raise InputError(str(path), found, MAPPING)
    return values


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
                    None, None, f"the key {key!r} twice", key_node.start_mark
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
