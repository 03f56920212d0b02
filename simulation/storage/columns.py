"""The columns of comparison.csv and timing.csv: what the summary declares, and what follows from many runs.

From the declarations come the tables themselves, the checks of one that is read, the columns of pages,
terminal and notebooks, and their documentation.
"""

from __future__ import annotations

import io
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dprec.data_frames import data_frame
from dprec.errors import InputError, accepted_by, listed
from dprec.metrics import METRICS_OF_LISTS
from simulation.configuration.strict_yaml import flatten
from simulation.protocols.base import BASELINE_PRESETS, BASELINES
from simulation.storage.attacked import titled
from simulation.storage.files import Count, Document, Row, read_lines, unusable, write_atomically
from simulation.storage.shown import IN_FILES, TIMED, Amount, Shown
from simulation.storage.summary import Summary

if TYPE_CHECKING:
    import pandas as pd

_PREFIXES = ("accuracy.", "privacy.", "attacks.", "traffic.", "dataset.", "time.")
"""Beginnings of keys that the names of columns do without."""

_FURTHER = "attacks.further."
"""Beginning of the keys of figures that an attack names itself; each is the name of a column."""

_KINDS = {"string": "text", "boolean": "flag", "integer": "integer", "number": "number"}
"""What a cell holds, by its type in a JSON Schema."""

_LARGEST = 1e100
"""Above it, sums of numbers might have no value."""

_PANDAS = {"text": "string", "flag": "boolean", "integer": "Int64", "number": "Float64"}
"""The types of columns in data frames, which all have a missing value."""


@dataclass(frozen=True)
class Column:
    """A column of a table of results, or one for every key of a mapping."""

    name: str
    """Of a mapping, the name before the key."""
    holds: Any
    """The type of a cell, as pydantic takes it."""
    meaning: str
    shown: Shown = IN_FILES
    key: str | None = None
    """Of the summary, dotted; None for what is no figure of a run."""
    keys: str | None = None
    """Of the columns of a mapping, a pattern of what follows the name."""
    of: str | None = None
    """Of one key of a mapping, the name before it."""

    @property
    def family(self) -> str:
        """Its name, without the key of a mapping."""
        return self.of or self.name

    @property
    def title(self) -> str:
        """Its heading."""
        return self.shown.title or self.name.replace("_", " ")

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a cell that is not empty."""
        schema = self._adapter.json_schema()
        return next((each for each in schema.get("anyOf", ()) if each["type"] != "null"), schema)

    @property
    def kind(self) -> str:
        """What a cell holds: text, a flag, an integer or a number."""
        return _KINDS[self.schema["type"]]

    def read(self, text: str, where: str) -> Any:
        """Return the value of a cell that is not empty; raises InputError."""
        try:
            value = self._adapter.validate_strings(text)
        except ValidationError as error:
            first = error.errors()[0]
        else:
            if isinstance(value, float) and abs(value) > _LARGEST:
                raise InputError(where, repr(text), f"a number of at most {_LARGEST:g}, or nothing")
            return value
        choices = self.schema.get("enum", [])
        accepted = listed(choices, text) if choices else accepted_by(first)
        raise InputError(where, repr(text), f"{accepted}, or nothing")

    def of_key(self, key: str) -> Column:
        """Return the column of one key of a mapping."""
        shown = replace(self.shown, title=self.shown.title.replace("{key}", key))
        return Column(
            f"{self.name}_{key}", self.holds, self.meaning, shown, f"{self.key}.{key}", of=self.name
        )

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.holds, config=ConfigDict(allow_inf_nan=False))


def _declared(model: type[Document], prefix: str = "", about: str = "", of: str = "") -> Iterator[Column]:
    """Yield the columns of a model's fields, whose meanings begin with what is said of the model."""
    for name, field in model.model_fields.items():
        held, key = _without_null(field.annotation), f"{prefix}{name}"
        meaning = f"{about} {field.description or ''}".strip()
        if isinstance(held, type) and issubclass(held, Document):
            word = next((each for each in field.metadata if isinstance(each, str)), "")
            yield from _declared(held, f"{key}.", meaning, word)
        for shown in field.metadata:
            if isinstance(shown, Shown):
                cell, keys = Annotated[field.annotation, *field.metadata], None
                if get_origin(held) is dict:
                    of_key, cell = get_args(held)
                    keys = r"[1-9]\d*" if of_key is int else r"\w+"
                titled = replace(shown, title=shown.title.replace("{of}", of))
                yield Column(_named(key), cell, meaning, titled, key, keys)


def _without_null(annotation: Any) -> Any:
    """Return an annotation without None beside another type."""
    held = [each for each in get_args(annotation) if each is not type(None)]
    return held[0] if get_origin(annotation) in (Union, types.UnionType) and len(held) == 1 else annotation


def _named(key: str) -> str:
    """Return the name of the column for a key of the summary."""
    if key == "dataset.kind":
        return "dataset"
    prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), "")
    return key.removeprefix(prefix).removesuffix(".value").replace(".", "_")


CELL = (
    Column("name", str, "The protocol's name in the comparison."),
    Column(
        "epsilon",
        Annotated[float, Field(gt=0)],
        "The budget that the cell asked for; empty where there is none.",
    ),
    Column("fold", str, "Value of `split.fold`; empty for the split's own."),
    Column("seed", str, "The run's seed."),
    Column("quick", bool, "Only where just the first seed and fold and the middle ε were run (`--quick`)."),
    Column("panel", str, "The panel of the protocol, where the comparison has panels."),
    Column(
        "population", str, "Users of another population, or its data set; empty for the comparison's own."
    ),
)
"""Which cell of the grid a line is."""

FIGURES = tuple(_declared(Summary))
"""The figures of a run, in the order of its summary."""

OVER_USERS = ("rmse", "mae", "sign_accuracy", *METRICS_OF_LISTS)
"""The metrics that follow from sums over users, so that users can be drawn again."""

_UNIT = "in the metric's unit"
_GAINS = tuple(
    Column(name, float, meaning)
    for metric in OVER_USERS
    for name, meaning in (
        (f"{metric}_gain", f"How much better than that baseline, {_UNIT}; below 0 is worse."),
        (f"{metric}_gain_low", f"Lower end of its 95 % interval over users, {_UNIT}."),
        (f"{metric}_gain_high", f"Upper end of its 95 % interval over users, {_UNIT}."),
    )
)

ACROSS = (
    Column("scale_low", float, "Lowest rating of the scale."),
    Column("scale_high", float, "Highest rating of the scale."),
    Column(
        "total_message_bytes",
        Count,
        "Bytes of messages both ways, all users.",
        Shown("bytes in all", "messages, all users", where="page"),
    ),
    Column(
        "baseline",
        Literal[*BASELINES, *BASELINE_PRESETS["lists"]],
        "Which baseline the line is; empty otherwise.",
    ),
    Column("public_items", str, "What the line reads that is public about the items; empty for nothing."),
    Column("against", str, "The baseline that the line is held against: the strongest that sends nothing."),
    *_GAINS,
    Column(
        "against_plain",
        str,
        "The baseline that knows nothing of the items either; only for lines that read nothing public beside "
        "others that do.",
    ),
    Column("plain_gain", float, f"How much better than that in the main metric, {_UNIT}."),
    Column("plain_gain_low", float, "Lower end of its 95 % interval over users."),
    Column("plain_gain_high", float, "Upper end of its 95 % interval over users."),
    Column("best_at_budget", str, "The most accurate protocol at the line's ε."),
    Column(
        "behind_best",
        float,
        "How much worse than that, in the main metric's unit; empty for the best itself.",
    ),
    Column("behind_best_low", float, "Lower end of its 95 % interval over users."),
    Column("behind_best_high", float, "Upper end of its 95 % interval over users."),
)
"""What follows from a summary, and from several cells: differences are paired over the same users."""

PER_DEVICE = Column("device_s_per_user", Amount, "Seconds of the rounds, per user.", TIMED)
"""The column of timing.csv that is no figure of the summary."""

COLUMNS: dict[str, Column] = {column.name: column for column in (*CELL, *FIGURES, *ACROSS, PER_DEVICE)}
"""All columns, by name; a mapping's by the name before its keys."""


def column(name: str) -> Column:
    """Return the column of a name, which may be that of a mapping's key.

    A column that is not declared, of another version or a user's own, holds numbers.
    """
    if name in COLUMNS and COLUMNS[name].keys is None:
        return COLUMNS[name]
    for of in COLUMNS.values():
        key = name.removeprefix(f"{of.name}_")
        if of.keys is not None and key != name and re.fullmatch(of.keys, key):
            return of.of_key(key)
    return Column(name, float, "", Shown(titled(name), where="files"))


def figures_of(summary: Mapping[str, Any], *, timing: bool = False) -> Row:
    """Return the figures of a run by column, or how long it took; those that were not set are left out.

    ``summary``: the contents of summary.json.
    """
    row, values = Row(), flatten(summary)
    for each in FIGURES:
        if (each.shown.where == "timing") is timing:
            keys = [key for key in values if key.startswith(f"{each.key}.")] if each.keys else [each.key]
            row |= {_named(key): values[key] for key in keys if key in values}
    further = {} if timing else {key: value for key, value in values.items() if key.startswith(_FURTHER)}
    return row | {key.removeprefix(_FURTHER): value for key, value in further.items()}


def read_rows(path: Path, needed: Sequence[str] = ()) -> list[Row]:
    """Read a table of a comparison; empty cells are None.

    ``needed``: columns that the table must have.
    Raises InputError naming the first line and column that cannot be.
    """
    lines = read_lines(path, needed, "a table that `dprec compare` wrote")
    _, header = next(lines)
    columns = [(name, column(name)) for name in header]
    rows = [
        {name: _cell(name, each, text, where) for (name, each), text in zip(columns, cells, strict=True)}
        for where, cells in lines
    ]
    if not rows:
        raise InputError(str(path), "no lines", "at least one finished cell")
    return rows


def _cell(name: str, column: Column, text: str, where: str) -> Any:
    if name == "name" and not text:
        raise InputError(f"{where}: {name}", "nothing", "the name of a protocol")
    # A mark that turns the direction of writing would turn the figures beside it too.
    if not text.isprintable():
        held = "a name" if name == "name" else "text"
        raise InputError(f"{where}: {name}", repr(text), f"{held} of characters that can be printed")
    return column.read(text, f"{where}: {name}") if text else None


def typed_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows as a data frame with the columns' types, and their meanings and units in ``attrs``.

    Raises ModuleNotFoundError when pandas is not installed.
    """
    frame = data_frame(list(rows), "rows")
    known = {name: column(name) for name in frame.columns}
    frame = frame.astype({name: _PANDAS[each.kind] for name, each in known.items()})
    frame.attrs["meanings"] = {name: each.meaning for name, each in known.items()}
    return frame


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as a Parquet file with the columns' types; a column's metadata has its meaning and unit.

    Raises InputError when pyarrow is not installed, or the file cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(str(path), "pyarrow is not installed", "pip install dprec[parquet]") from None
    types = {"text": "string", "flag": "bool", "integer": "int64", "number": "double"}
    fields, arrays = [], []
    for name in dict.fromkeys(name for row in rows for name in row):
        declared = column(name)
        held = pyarrow.type_for_alias(types[declared.kind])
        about = {"meaning": declared.meaning, "unit": declared.shown.unit}
        fields.append(pyarrow.field(name, held, metadata={key: text for key, text in about.items() if text}))
        arrays.append(pyarrow.array([row.get(name) for row in rows], held))
    table = pyarrow.table(arrays, schema=pyarrow.schema(fields))
    content = io.BytesIO()
    parquet.write_table(table, content)
    try:
        write_atomically(path, content.getvalue())
    except OSError as error:
        raise unusable(path, error) from None
