"""Conditions on the columns of a table, which Polars parses as SQL and which are never run as code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dprec.errors import SettingError, one_line, shown

if TYPE_CHECKING:
    import polars as pl

_ACCEPTED = "a condition on columns in SQL, such as event = 'play' AND hours >= 2"
_INTEGER = r"^(?:0|-?[1-9][0-9]{0,17})$"
_DECIMAL = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$"
_FUNCTIONS = frozenset(
    {"and", "or", "not", "in", "like", "between", "cast", "lower", "upper", "abs", "length"}
)
"""What may stand before a bracket: nothing that draws, repeats or asks elsewhere."""


def rows_that_meet(table: pl.LazyFrame, condition: str) -> pl.Series:
    """Return which rows of a table meet a condition, as booleans; where it is unknown, a row does not.

    Texts count as numbers in a column of nothing else, each in its usual form. An empty cell is NULL.

    Raises
    ------
    SettingError
        Under "where", when it is no condition on the columns that there are, or no row meets it.
    """
    import polars as pl
    from polars.exceptions import PolarsError

    found, columns = shown(repr(condition)), table.collect_schema().names()
    try:
        parsed = pl.sql_expr(_with_quoted_names(condition, columns))
    except PolarsError as error:
        raise SettingError("where", f"{found} ({one_line(error)})", _ACCEPTED) from None
    named = list(dict.fromkeys(parsed.meta.root_names()))
    for name in named:
        if name not in columns:
            listed = ", ".join(columns)
            text = f"; a text stands in single quotes: '{name}'" if f'"{name}"' in condition else ""
            raise SettingError("where", f"{found}, of which {name!r} is no column", f"one of {listed}{text}")
    if not named:
        raise SettingError("where", f"{found}, which is of no column", _ACCEPTED)
    typed = _typed(table.select(named))
    try:
        met = typed.select(parsed.alias("met")).collect()["met"]
    except PolarsError as error:
        numbers = [name for name, kind in typed.collect_schema().items() if kind.is_numeric()]
        hint = f"; numbers without quotes, as {numbers[0]} >= 3" if numbers else ""
        reason = re.split(r" Resolved plan| \(set 'strict|\n", one_line(error))[0]
        raise SettingError("where", f"{found} ({reason})", f"{_ACCEPTED}{hint}") from None
    if met.dtype != pl.Boolean:
        raise SettingError("where", f"{found}, which is true of nothing: it is {met.dtype}", _ACCEPTED)
    if not met.any():
        raise SettingError("where", f"{found}, which no row meets", "a condition that some rows meet")
    return met.fill_null(value=False)


def _with_quoted_names(condition: str, columns: list[str]) -> str:
    """Return a condition in which columns stand in double quotes, as words of SQL and odd names have to."""
    parts = re.split(r"('(?:[^']|'')*'|\"[^\"]*\")", condition)
    for called in re.findall(r"(\w+)\s*\(", " ".join(parts[::2])):
        if called.lower() not in _FUNCTIONS:
            accepted = f"{_ACCEPTED}; of functions {', '.join(sorted(_FUNCTIONS))}"
            raise SettingError("where", f"{shown(repr(condition))}, with {called}(...)", accepted)
    names = "|".join(re.escape(name) for name in sorted(columns, key=len, reverse=True) if name)
    bare = rf"(?<![\w.\"])(?:{names})(?![\w\"]|\s*\()"
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(bare, lambda name: f'"{name[0]}"', parts[place]) if names else parts[place]
    return "".join(parts)


def _typed(table: pl.LazyFrame) -> pl.LazyFrame:
    """Return the columns of a table, as numbers where every text is one; what is empty or NaN is null."""
    import polars as pl

    schema = table.collect_schema()
    texts = [name for name, kind in schema.items() if kind == pl.String]
    cells = {name: pl.col(name).str.strip_chars().replace(["", "nan", "NaN"], None) for name in texts}
    table = table.with_columns(
        *(cells[name].alias(name) for name in texts),
        *(pl.col(name).fill_nan(None) for name, kind in schema.items() if kind.is_float()),
    )
    forms = table.select(
        pl.col(name).str.contains(form).all().alias(f"{place} {name}")
        for name in texts
        for place, form in enumerate((_INTEGER, _DECIMAL))
    )
    of_form = forms.collect().row(0, named=True) if texts else {}
    kinds = {
        name: pl.Int64 if of_form[f"0 {name}"] else pl.Float64 if of_form[f"1 {name}"] else pl.String
        for name in texts
    }
    return table.with_columns(pl.col(name).cast(kind) for name, kind in kinds.items())
