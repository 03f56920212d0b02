"""The reference of summary.json and of the columns that follow from it, from the model of the summary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from docs.extensions.generated import Schema, description, range_in_words, referred, type_in_words
from docs.tables import table
from simulation.comparison.tabulation import LEFT_OUT, column_of
from simulation.storage import Summary

_HEAD = "type", "range", "meaning"


@dataclass(frozen=True)
class _Key:
    """A key of summary.json that holds no further ones.

    Parameters
    ----------
    path : str
        With a dot before what is below another key.
    type, range, meaning : str
    """

    path: str
    type: str
    range: str
    meaning: str


def summary_reference() -> str:
    """Return the keys of summary.json as a Markdown table."""
    rows = [(f"`{key.path}`", key.type, key.range, key.meaning) for key in _keys()]
    return table(("key", *_HEAD), rows)


def comparison_reference() -> str:
    """Return the columns of comparison.csv that hold figures of the summary, as a Markdown table.

    A mapping has a column for each of its keys, N.
    """
    rows = [
        (f"`{column_of(key.path)}{'_N' * (key.type == 'mapping')}`", key.type, key.range, key.meaning)
        for key in _keys()
        if not key.path.startswith(LEFT_OUT) and not key.type.startswith("list")
    ]
    return table(("column", *_HEAD), rows)


def _keys() -> list[_Key]:
    schema = Summary.model_json_schema()
    return list(_below(schema, schema["$defs"]))


def _below(schema: Schema, definitions: Schema, prefix: str = "", about: str = "") -> Iterator[_Key]:
    """Yield the keys of an object, in order; their meaning begins with what is said of the object."""
    for key, value in schema["properties"].items():
        held = _object(value, definitions)
        if held is not None:
            yield from _below(held, definitions, f"{prefix}{key}.", f"{about}{description(value)} ".lstrip())
            continue
        words = type_in_words(value, lambda _: None)
        yield _Key(f"{prefix}{key}", words, range_in_words(value), f"{about}{description(value)}")


def _object(schema: Schema, definitions: Schema) -> Schema | None:
    """Return the object that a key holds; None for a plain value or a mapping with free keys."""
    for part in (schema, *schema.get("anyOf", ())):
        name = referred(part)
        if name and "properties" in definitions[name]:
            found: Schema = definitions[name]
            return found
    return None
