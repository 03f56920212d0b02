"""Conditions on the columns of a table, which Polars parses as SQL and which are never run as code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dprec.errors import SettingError, one_line, shown

if TYPE_CHECKING:
    import polars as pl

_ACCEPTED = "a condition on columns in SQL, such as event = 'play' AND hours >= 2, or \"user-id\" <> 'x'"


def rows_that_meet(table: pl.LazyFrame, condition: str) -> pl.Series:
    """Return which rows of a table meet a condition, as booleans; where it is unknown, a row does not.

    Columns of texts that are all numbers count as numbers, unless only texts can meet it; an empty cell is
    NULL.

    Raises
    ------
    SettingError
        Under "where", when it is no condition on the columns that there are, or no row meets it.
    """
    import polars as pl
    from polars.exceptions import PolarsError

    found, columns = shown(repr(condition)), table.collect_schema().names()
    try:
        parsed = pl.sql_expr(condition)
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
    texts = _with_nulls(table.select(named))
    try:
        met = _numbers_apart(texts).select(parsed.alias("met")).collect()["met"]
    except PolarsError:
        try:
            met = texts.select(parsed.alias("met")).collect()["met"]
        except PolarsError as error:
            reason = one_line(error).partition(" Resolved plan")[0]
            raise SettingError("where", f"{found} ({reason})", _ACCEPTED) from None
    if met.len() != table.select(pl.len()).collect().item():
        raise SettingError("where", f"{found}, which is of all rows together", _ACCEPTED)
    if met.dtype != pl.Boolean:
        raise SettingError("where", f"{found}, which is true of nothing: it is {met.dtype}", _ACCEPTED)
    if not met.any():
        raise SettingError("where", f"{found}, which no row meets", "a condition that some rows meet")
    return met.fill_null(value=False)


def _texts(table: pl.LazyFrame) -> list[str]:
    import polars as pl

    return [name for name, kind in table.collect_schema().items() if kind == pl.String]


def _with_nulls(table: pl.LazyFrame) -> pl.LazyFrame:
    """Return the columns of a table, without blanks around texts, and null where nothing is left."""
    import polars as pl

    stripped = (pl.col(name).str.strip_chars() for name in _texts(table))
    return table.with_columns(pl.when(text != "").then(text) for text in stripped)


def _numbers_apart(table: pl.LazyFrame) -> pl.LazyFrame:
    """Return the columns of a table, as numbers where each text is one."""
    import polars as pl

    texts = _texts(table)
    numbers = {name: pl.col(name).cast(pl.Float64, strict=False) for name in texts}
    strange = table.select((numbers[name].is_null() & pl.col(name).is_not_null()).any() for name in texts)
    odd = strange.collect().row(0, named=True) if texts else {}
    return table.with_columns(numbers[name] for name in texts if not odd[name])
