"""Parts of pages that are generated: a line "<!-- site: NAME ... -->" is replaced by what NAME makes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import click
from sphinx.application import Sphinx
from typer.main import get_command

from docs.tables import table
from dprec import RunConfig
from simulation.analysis.groups import IDENTITY
from simulation.comparison import ComparisonConfig
from simulation.console.command_line import app
from simulation.demonstration import sent_drawing
from simulation.storage import Summary
from simulation.storage.column import Column
from simulation.storage.columns import ACROSS, CELL, FIGURES, PER_DEVICE
from simulation.storage.directories import AuditRecord
from simulation.storage.files import Document
from simulation.storage.run_files import RoundLine, UserMessages
from simulation.storage.summary import GroupSummary

Schema = Mapping[str, Any]
Link = Callable[[Schema], str | None]

_BOUNDS = {
    **{"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}"},
    **{"minLength": "at least {} characters", "maxLength": "at most {} characters"},
    **{"minItems": "at least {} entries", "pattern": "matches `{}`"},
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
    """Return what a value may be, or the link to the section of what its schema refers to."""
    if (linked := link(schema)) is not None:
        return linked
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"`{value}`" for value in values)
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(type_in_words(each, link) for each in alternatives))
    kind = str(schema.get("type", "object" if referred(schema) else "any value"))
    if "kind" in schema.get("properties", {}):
        return "[a user-defined class](/methods.md)"
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
    """Return the table of an object's keys, described as they are or as what they refer to is."""
    required = schema.get("required", ())
    rows = []
    for key, value in schema["properties"].items():
        default = default_in_words(value, key in required)
        words = description(value) or description(definitions.get(referred(value), {}))
        if key != "kind":
            rows.append((f"`{key}`", type_in_words(value, link), default, range_in_words(value), words))
    return table(("key", "type", "default", "range", "meaning"), rows) if rows else ""


def command_reference() -> str:
    """Return what all commands take as Markdown, a section for each."""
    return "\n\n".join(_sections(get_command(app), "dprec", None))


def _sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, parent, info_name=name)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"## `{context.command_path}`\n\n```text\n{usage}\n```"
    yield "\n\n".join(" ".join(each.split()) for each in (command.help or "").split("\n\n"))
    options = (each for each in command.get_params(context) if each.param_type_name == "option")
    records = filter(None, (each.get_help_record(context) for each in options))
    if rows := [(f"`{names}`", text.replace("\\[", "[")) for names, text in records if names != "--help"]:
        yield table(("option", "meaning"), rows)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None and not found.hidden:
                yield from _sections(found, below, context)


_LABEL = "configuration-"


def configuration_reference(*sections: str) -> str:
    """Return all sections, or some: "run", "comparison", "parts", or a key whose kinds are described."""
    schemas = RunConfig.model_json_schema(), ComparisonConfig.model_json_schema()
    return _Reference(*schemas).text(sections)


class _Reference:
    """The sections of two schemas and of their definitions."""

    def __init__(self, run: Schema, comparison: Schema) -> None:
        self._models = {"run": run, "comparison": comparison}
        self._definitions: Schema = {**run["$defs"], **comparison["$defs"]}
        self._groups: dict[str, Schema] = {}
        # Kinds among which a key chooses.
        for schema in (run, comparison, *self._definitions.values()):
            for key, value in schema["properties"].items():
                parts = (value, *value.get("anyOf", ()))
                items = [each["items"] for each in parts if "items" in each]
                for part in (*parts, *items, *(own for each in items for own in each.get("anyOf", ()))):
                    kinds = _kinds(part)
                    if kinds and kinds not in self._groups.values():
                        self._groups[key] = kinds

    def text(self, sections: Sequence[str]) -> str:
        """Return some sections, or all."""
        shown = sections or (*self._models, *self._groups, "parts")
        return "\n\n".join(block for each in shown for block in self._section(each))

    def _section(self, name: str) -> Iterator[str]:
        if name in self._models:
            yield from (f"## A {name}", self._keys(self._models[name]))
        elif name == "parts":
            grouped = {each for group in self._groups.values() for each in group.values()}
            for part, schema in sorted(self._definitions.items()):
                if part not in grouped and "properties" in schema:
                    yield from self._definition(part, f"## `{part}`")
        else:
            yield f"({_LABEL}kinds-{name})=\n## Kinds of `{name}`"
            for kind, part in self._groups[name].items():
                yield from self._definition(part, f"### `kind: {kind}`")

    def _definition(self, name: str, title: str) -> Iterator[str]:
        yield f"({_LABEL}{name.lower()})=\n{title}"
        yield description(self._definitions[name])
        yield self._keys(self._definitions[name])

    def _keys(self, schema: Schema) -> str:
        return key_table(schema, self._definitions, self._link)

    def _link(self, schema: Schema) -> str | None:
        """Return the link to the section of what a schema refers to."""
        if kinds := _kinds(schema):
            named = set(kinds.values())
            key = next(key for key, own in self._groups.items() if set(own.values()) == named)
            return f"[a kind of {key}](#{_LABEL}kinds-{key})"
        name = referred(schema)
        return f"[`{name}`](#{_LABEL}{name.lower()})" if name else None


def _kinds(schema: Schema) -> dict[str, str]:
    """Return the definition of every kind among which a value chooses; empty for other values."""
    mapping = schema.get("discriminator", {}).get("mapping", {})
    return {kind: reference.rpartition("/")[2] for kind, reference in mapping.items()}


_HEAD = "type", "range", "meaning"


def document_reference(document: type[Document]) -> str:
    """Return the keys of a file as a Markdown table."""
    schema = document.model_json_schema()
    return table(("key", *_HEAD), list(_below(schema, schema["$defs"])))


def comparison_reference() -> str:
    """Return the columns of comparison.csv as a Markdown table.

    A mapping has a column for each of its keys, N.
    """
    figures = (each for each in FIGURES if each.where != "timing")
    return _columns_table((*CELL, *figures, *ACROSS))


def timing_reference() -> str:
    """Return the columns of timing.csv as a Markdown table."""
    timed = (each for each in FIGURES if each.where == "timing")
    return _columns_table((*CELL, *timed, PER_DEVICE))


def groups_reference() -> str:
    """Return the columns of groups.csv as a Markdown table."""
    fields = GroupSummary.model_json_schema()["properties"]
    of_cells = [_row(each.name, each.schema, each.meaning) for each in CELL if each.name in IDENTITY]
    divided = _row("by", {"type": "string"}, "What divides the users: `all`, or one of `groups`.")
    return table(
        ("column", *_HEAD),
        [*of_cells, divided, *(_row(name, field, description(field)) for name, field in fields.items())],
    )


def _columns_table(columns: Iterable[Column[Any]]) -> str:
    rows = (_row(f"{each.name}{'_N' if each.keys else ''}", each.schema, each.meaning) for each in columns)
    return table(("column", *_HEAD), rows)


def _row(name: str, schema: Schema, meaning: str) -> tuple[str, ...]:
    return f"`{name}`", type_in_words(schema, lambda _: None), range_in_words(schema), meaning


def _below(
    schema: Schema, definitions: Schema, prefix: str = "", about: str = ""
) -> Iterator[tuple[str, ...]]:
    """Yield a line for each plain key of an object; its meaning begins with what is said of the object."""
    for key, value in schema["properties"].items():
        meaning = f"{about}{description(value)}"
        if held := _object(value, definitions):
            yield from _below(held, definitions, f"{prefix}{key}.", f"{meaning} ".lstrip())
        else:
            yield _row(f"{prefix}{key}", value, meaning)
            if entry := _object(value.get("items", {}), definitions):
                yield from _below(entry, definitions, f"{prefix}{key}.")


def _object(schema: Schema, definitions: Schema) -> Schema | None:
    """Return the object that a key holds; None for a plain value or a mapping with free keys."""
    for part in (schema, *schema.get("anyOf", ())):
        name = referred(part)
        if name and "properties" in definitions[name]:
            return dict(definitions[name])
    return None


def drawing_of(preset: str) -> str:
    """Return what leaves a device under a preset, as a drawing that the page holds."""
    return f"```{{raw}} html\n{sent_drawing(preset)}\n```"


GENERATED: Mapping[str, Callable[..., str]] = {
    "audit": partial(document_reference, AuditRecord),
    "comparison": comparison_reference,
    "commands": command_reference,
    "configuration": configuration_reference,
    "drawing": drawing_of,
    "groups": groups_reference,
    "messages": partial(document_reference, UserMessages),
    "rounds": partial(document_reference, RoundLine),
    "summary": partial(document_reference, Summary),
    "timing": timing_reference,
}
_LINE = re.compile(r"^<!-- site: (\w+)((?: [\w-]+)*) -->$", flags=re.MULTILINE)


def expand(source: str) -> str:
    """Return the text of a page with its generated parts."""
    return _LINE.sub(lambda found: GENERATED[found[1]](*found[2].split()), source)


def expand_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Expand the source of a page that Sphinx has read."""
    source[0] = expand(source[0])
