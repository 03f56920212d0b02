"""Tables of keys from a JSON Schema: type, default, range and meaning of each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from docs.tables import table

Schema = Mapping[str, Any]
Link = Callable[[Schema], str | None]

_BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "pattern": "matches `{}`",
}
_WORDS = {"boolean": "true or false", "string": "text", "object": "mapping", "null": "null"}
_SECTION_OF_A_DOCSTRING = re.compile(r"\n\n\w[\w ]*\n-{3,}\n")


def description(schema: Schema) -> str:
    """Return the text of a docstring, without the sections of NumPy style, on one line."""
    text = _SECTION_OF_A_DOCSTRING.split(str(schema.get("description", "")))[0]
    return " ".join(text.replace("``", "`").split())


def referred(schema: Schema) -> str:
    """Return the name of the definition that a schema refers to; empty if it refers to none."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def type_in_words(schema: Schema, link: Link) -> str:
    """Return what a value may be.

    Parameters
    ----------
    schema : mapping
        The schema of a value.
    link : callable
        Returns the link to what a schema refers to; None if that has no section of its own.
    """
    if (linked := link(schema)) is not None:
        return linked
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"`{value}`" for value in values)
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(type_in_words(each, link) for each in alternatives))
    kind = str(schema.get("type", "any value"))
    if "kind" in schema.get("properties", {}):
        return "[a class of one's own](methods.md)"
    if kind == "array":
        return f"list of {type_in_words(schema['items'], link)}" if "items" in schema else "list"
    return _WORDS.get(kind, kind)


def range_in_words(schema: Schema) -> str:
    """Return the bounds of a value, or of the alternatives that have any."""
    bounds = [words.format(schema[key]) for key, words in _BOUNDS.items() if key in schema]
    for alternative in schema.get("anyOf", ()):
        if bounded := range_in_words(alternative):
            bounds.append(bounded)
    if bounded := range_in_words(schema["items"]) if isinstance(schema.get("items"), dict) else "":
        bounds.append(f"each {bounded}")
    return ", ".join(dict.fromkeys(bounds))


def default_in_words(schema: Schema, required: bool) -> str:
    """Return the default of a key as a file would hold it."""
    if required:
        return "required"
    if "default" not in schema:
        return ""
    default = schema["default"]
    if isinstance(default, dict):
        return "its own defaults"
    return f"`{default if isinstance(default, str) and default else json.dumps(default)}`"


def key_table(schema: Schema, definitions: Schema, link: Link) -> str:
    """Return the Markdown table of the keys of an object.

    Parameters
    ----------
    schema, definitions : mapping
        The schema of the object, and those that it refers to, by name. A key without a description has that
        of what it refers to.
    link : callable
        As for `type_in_words`.
    """
    required = schema.get("required", ())
    rows = [
        (
            f"`{key}`",
            type_in_words(value, link),
            default_in_words(value, key in required),
            range_in_words(value),
            description(value) or description(definitions.get(referred(value), {})),
        )
        for key, value in schema["properties"].items()
        if key != "kind"
    ]
    return table(("key", "type", "default", "range", "meaning"), rows) if rows else ""
