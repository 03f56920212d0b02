"""The reference of configurations: every key of a run and of a comparison, from the models that read them."""

from __future__ import annotations

from collections.abc import Iterator

from docs.extensions.generated import Schema, description, key_table, referred
from simulation import RunConfig
from simulation.comparison import ComparisonConfig

_LABEL = "configuration-"


def configuration_reference() -> str:
    """Return the keys of runs and comparisons as Markdown, a section for each model."""
    schemas = RunConfig.model_json_schema(), ComparisonConfig.model_json_schema()
    return _Reference({**schemas[0]["$defs"], **schemas[1]["$defs"]}).text(*schemas)


class _Reference:
    """The sections of a schema's definitions.

    Parameters
    ----------
    definitions : mapping
        Schemas by the names of their classes.
    """

    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions
        self._groups: dict[str, Schema] = {}

    def text(self, run: Schema, comparison: Schema) -> str:
        """Return the sections of both configurations and of all that they consist of."""
        for schema in (run, comparison, *self._definitions.values()):
            for key, value in schema["properties"].items():
                self._note_groups(key, value)
        grouped = {name for group in self._groups.values() for name in group.values()}
        parts = {
            name: schema
            for name, schema in self._definitions.items()
            if name not in grouped and "properties" in schema
        }
        return "\n\n".join(
            [
                "## A run",
                self._keys(run),
                "## A comparison",
                self._keys(comparison),
                *(section for key in self._groups for section in self._group(key)),
                "## Parts",
                *(
                    block
                    for name, schema in sorted(parts.items())
                    for block in self._definition(name, f"`{name}`", schema)
                ),
            ]
        )

    def _note_groups(self, key: str, schema: Schema) -> None:
        """Remember the kinds among which a key chooses."""
        for part in (schema, *schema.get("anyOf", ()), schema.get("items", {})):
            if "discriminator" in part:
                mapping = part["discriminator"]["mapping"]
                kinds = {kind: reference.rpartition("/")[2] for kind, reference in mapping.items()}
                if kinds not in self._groups.values():
                    self._groups[key] = kinds

    def _group(self, key: str) -> Iterator[str]:
        yield f"({_LABEL}kinds-{key})=\n## Kinds of `{key}`"
        for kind, name in self._groups[key].items():
            yield from self._definition(name, f"`kind: {kind}`", self._definitions[name])

    def _definition(self, name: str, title: str, schema: Schema) -> Iterator[str]:
        yield f"({_LABEL}{name.lower()})=\n### {title}"
        yield description(schema)
        yield self._keys(schema)

    def _keys(self, schema: Schema) -> str:
        return key_table(schema, self._definitions, self._link)

    def _link(self, schema: Schema) -> str | None:
        """Return the link to the section of what a schema refers to."""
        if "discriminator" in schema:
            names = {
                reference.rpartition("/")[2] for reference in schema["discriminator"]["mapping"].values()
            }
            key = next(key for key, kinds in self._groups.items() if set(kinds.values()) == names)
            return f"[a kind of {key}](#{_LABEL}kinds-{key})"
        name = referred(schema)
        return f"[`{name}`](#{_LABEL}{name.lower()})" if name else None
