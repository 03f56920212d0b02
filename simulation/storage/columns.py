"""The columns of comparison.csv and timing.csv: what the summary declares, and what follows from many runs.

From the declarations come the tables themselves, the checks of one that is read, the columns of pages,
terminal and notebooks, and their documentation.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import Field

from dprec.accounting import PrivacyUnit, Trust
from dprec.data_frames import data_frame
from dprec.errors import InputError
from dprec.metrics import METRICS_OF_LISTS
from dprec.protocols.base import BASELINE_PRESETS, BASELINES, TOLD
from simulation.configuration.strict_yaml import flatten
from simulation.storage.attacked import titled
from simulation.storage.column import IN_FILES, TIMED, Amount, Column, on_pages
from simulation.storage.files import Count, Document, Row, parquet_of, read_lines, unusable, write_atomically
from simulation.storage.summary import Summary

if TYPE_CHECKING:
    import pandas as pd

_PREFIXES = ("accuracy.", "privacy.", "attacks.", "traffic.", "dataset.", "time.")
"""Beginnings of keys that the names of columns do without."""

_FURTHER = "attacks.further."
"""Beginning of the keys of figures that an attack names itself; each is the name of a column."""

_TYPES = {
    "text": ("string", "String"),
    "flag": ("boolean", "Boolean"),
    "integer": ("Int64", "Int64"),
    "number": ("Float64", "Float64"),
}
"""The types of columns in data frames of pandas, which all have a missing value, and of polars."""


def _declared(
    model: type[Document], prefix: str = "", about: str = "", of: str = ""
) -> Iterator[Column[Any]]:
    """Yield the columns of a model's fields, whose meanings begin with what is said of the model."""
    for name, field in model.model_fields.items():
        held_type, key = _without_null(field.annotation), f"{prefix}{name}"
        meaning = f"{about} {field.description or ''}".strip()
        if isinstance(held_type, type) and issubclass(held_type, Document):
            word = next((note for note in field.metadata if isinstance(note, str)), "")
            yield from _declared(held_type, f"{key}.", meaning, word)
        for mark in field.metadata:
            if isinstance(mark, Column):
                cell, keys = Annotated[field.annotation, *field.metadata], None
                if get_origin(held_type) is dict:
                    of_key, cell = get_args(held_type)
                    keys = r"[1-9]\d*" if of_key is int else r"\w+"
                title = mark.title.replace("{of}", of) or _name(key).replace("_", " ")
                yield replace(
                    mark, title=title, name=_name(key), holds=cell, meaning=meaning, key=key, keys=keys
                )


def _without_null(annotation: Any) -> Any:
    """Return an annotation without None beside another type."""
    members = [member for member in get_args(annotation) if member is not type(None)]
    return (
        members[0] if get_origin(annotation) in (Union, types.UnionType) and len(members) == 1 else annotation
    )


def _name(key: str) -> str:
    """Return the name of the column for a key of the summary."""
    if key == "dataset.kind":
        return "dataset"
    prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), "")
    return key.removeprefix(prefix).removesuffix(".value").replace(".", "_")


def _further(name: str, holds: Any, meaning: str, mark: Column[Any] = IN_FILES) -> Column[Any]:
    """Return a column of comparison.csv that is no figure of a run."""
    title = mark.title or name.replace("_", " ")
    return replace(mark, title=title, name=name, holds=holds, meaning=meaning)


CELL = (
    _further("name", str, "The protocol's name in the comparison."),
    _further(
        "epsilon",
        Annotated[float, Field(gt=0)],
        "The budget that the cell asked for; empty where there is none.",
    ),
    _further("fold", str, "Value of `split.fold`; empty for the split's own."),
    _further("seed", str, "The run's seed."),
    _further("quick", bool, "Only where just the first seed and fold and the middle ε were run (`--quick`)."),
    _further("panel", str, "The panel of the protocol, where the comparison has panels."),
    _further(
        "population", str, "Users of another population, or its data set; empty for the comparison's own."
    ),
)
"""Which cell of the grid a line is."""

FIGURES = tuple(_declared(Summary))
"""The figures of a run, in the order of its summary."""

OVER_USERS = ("rmse", "mae", "sign_accuracy", *METRICS_OF_LISTS)
"""The metrics that follow from sums over users, so that users can be drawn again."""

_UNIT = "in the metric's unit"
_BETTER = f"How much better than that baseline, {_UNIT}; below 0 is worse."


def _with_ends(name: str, meaning: str, unit: str = "") -> Iterator[Column[Any]]:
    """Yield the column of a difference, and those of the ends of its interval."""
    yield _further(name, float, meaning)
    for end, words in (("low", "Lower"), ("high", "Upper")):
        yield _further(f"{name}_{end}", float, f"{words} end of its 95 % interval over users{unit}.")


ACROSS = (
    _further("scale_low", float, "Lowest rating of the scale."),
    _further("scale_high", float, "Highest rating of the scale."),
    _further(
        "total_message_bytes",
        Count,
        "Bytes of messages both ways, all users.",
        on_pages("bytes in all", "messages, all users"),
    ),
    _further("per", PrivacyUnit, "What the ε is for: a rating, a cell or a whole user; empty without one."),
    _further("item_set", Literal["hidden", "revealed"], "Whether the item set is hidden."),
    _further(
        "needed_trust",
        Trust,
        "The trust that the line needs, only where less than its `trust`, which is what was granted.",
    ),
    _further(
        "baseline",
        Literal[*BASELINES, *BASELINE_PRESETS["lists"], TOLD],
        "Which baseline the line is; empty otherwise.",
    ),
    _further("public_items", str, "What the line reads that is public about the items; empty for nothing."),
    _further("against", str, "The baseline that the line is held against: the strongest that sends nothing."),
    *(gain for metric in OVER_USERS for gain in _with_ends(f"{metric}_gain", _BETTER, f", {_UNIT}")),
    _further(
        "against_plain",
        str,
        "The baseline that knows nothing of the items either; only for lines that read nothing public beside "
        "others that do.",
    ),
    *_with_ends("plain_gain", f"How much better than that in the main metric, {_UNIT}."),
    _further(
        "best_at_budget", str, "The most accurate protocol at the line's ε, for a user or not as there."
    ),
    *_with_ends(
        "behind_best", "How much worse than that, in the main metric's unit; empty for the best itself."
    ),
)
"""What follows from a summary, and from several cells: differences are paired over the same users."""

PER_DEVICE = _further("device_s_per_user", Amount, "Seconds of the rounds, per user.", TIMED)
"""The column of timing.csv that is no figure of the summary."""

COLUMNS: dict[str, Column[Any]] = {
    declaration.name: declaration for declaration in (*CELL, *FIGURES, *ACROSS, PER_DEVICE)
}
"""All columns, by name; a mapping's by the name before its keys."""


def column(name: str) -> Column[Any]:
    """Return the column of a name, which may be that of a mapping's key.

    A column that is not declared, of another version or a user's own, holds numbers.
    """
    if name in COLUMNS and COLUMNS[name].keys is None:
        return COLUMNS[name]
    for of in COLUMNS.values():
        key = name.removeprefix(f"{of.name}_")
        if of.keys is not None and key != name and re.fullmatch(of.keys, key):
            return of.of_key(key)
    return Column(titled(name) or name.replace("_", " "), where="files", name=name)


@dataclass(frozen=True)
class _Key:
    """Stands for a summary, and for its parts: each is the dotted key that leads to it."""

    parts: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> _Key:
        return _Key((*self.parts, name))


_BY_KEY = {declaration.key: declaration for declaration in FIGURES}


def figure(of: Callable[[Summary], object]) -> Column[Any]:
    """Return the column of a field of the summary, as in ``figure(lambda run: run.privacy.tau)``."""
    return _BY_KEY[".".join(cast(_Key, of(cast(Summary, _Key()))).parts)]


def figures_of(summary: Mapping[str, Any], *, timing: bool = False) -> Row:
    """Return the figures of a run by column, or how long it took; those that were not set are left out.

    ``summary``: the contents of summary.json.
    """
    row, values = Row(), flatten(summary)
    for declaration in FIGURES:
        if (declaration.where == "timing") is timing:
            keys = (
                [key for key in values if key.startswith(f"{declaration.key}.")]
                if declaration.keys
                else [declaration.key]
            )
            row |= {_name(key): values[key] for key in keys if key in values}
    further = {} if timing else {key: value for key, value in values.items() if key.startswith(_FURTHER)}
    return row | {key.removeprefix(_FURTHER): value for key, value in further.items()}


def read_rows(path: Path, needed: Sequence[str] = ()) -> list[Row]:
    """Read a table of a comparison; empty cells are None.

    ``needed``: columns that the table must have.
    Raises InputError naming the first line and column that cannot be.
    """
    lines = read_lines(path, needed, "a table that `dprec compare` wrote")
    _, header = next(lines)
    columns, rows = [(name, column(name)) for name in header], list[Row]()
    for where, cells in lines:
        row = Row()
        for (name, declaration), text in zip(columns, cells, strict=True):
            if name == "name" and not text:
                raise InputError(f"{where}: {name}", "nothing", "the name of a protocol")
            # A mark that turns the direction of writing would turn the figures beside it too.
            if not text.isprintable():
                content = "a name" if name == "name" else "text"
                accepted = f"{content} of characters that can be printed"
                raise InputError(f"{where}: {name}", repr(text), accepted)
            row[name] = declaration.read(text, f"{where}: {name}") if text else None
        rows.append(row)
    if not rows:
        raise InputError(str(path), "no lines", "at least one finished cell")
    return rows


def typed_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows as a data frame with the columns' types, and their meanings and units in ``attrs``.

    Raises ModuleNotFoundError when pandas is not installed.
    """
    frame = data_frame(list(rows), "rows")
    declared = {name: column(name) for name in frame.columns}
    frame = frame.astype({name: _TYPES[declaration.kind][0] for name, declaration in declared.items()})
    frame.attrs["meanings"] = {name: declaration.meaning for name, declaration in declared.items()}
    return frame


def parquet_of_rows(rows: Sequence[Row]) -> bytes:
    """Return rows as a Parquet file with the columns' types.

    Under ``columns``, its metadata holds a JSON object with each column's meaning and unit.
    """
    import polars

    declared = {name: column(name) for name in dict.fromkeys(name for row in rows for name in row)}
    about = {
        name: {"meaning": declaration.meaning, "unit": declaration.unit}
        for name, declaration in declared.items()
    }
    types = {name: getattr(polars, _TYPES[declaration.kind][1]) for name, declaration in declared.items()}
    frame = polars.DataFrame({name: [row.get(name) for row in rows] for name in declared}, schema=types)
    return parquet_of(frame, metadata={"columns": json.dumps(about, ensure_ascii=False)})


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as a Parquet file, as `parquet_of_rows` returns it; raises InputError."""
    try:
        write_atomically(path, parquet_of_rows(rows))
    except OSError as error:
        raise unusable(path, error) from None
