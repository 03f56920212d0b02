"""Tables that are no rating per line in the usual order: a column per item, or times before ratings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dprec.datasets.headers import is_number
from dprec.errors import InputError


def reshaped(*, header: bool = True) -> str:
    """Return what to do with a matrix in a file, whose first line names the items or holds ratings."""
    first = "" if header else "header=None, "
    return (
        "a line per rating, which pandas makes of a column per item: "
        f"pandas.read_csv(FILE, {first}index_col=0).stack().dropna().to_csv('ratings.csv', header=False)"
    )


_WIDE = 10
"""Columns from which a table may be a matrix."""

_FEW = 30
"""Different values that ratings in the first lines of a matrix may have; identifiers of items are more."""

_UNGIVEN = ("nan", "na", "null", "none", "?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
_EARLIEST, _LATEST = 1e8, 1e14
"""Seconds or milliseconds since 1970, from 1973 on; no scale of ratings is as large."""


def check_layout(rows: Sequence[Sequence[str]], source: str) -> None:
    """Refuse first lines that are those of a matrix, or whose third column holds times.

    Parameters
    ----------
    rows : sequence of sequence of str
        The cells of the first lines, in files of which no column is configured and none named in a header.
    source : str
        The file's name, for the error.

    Raises
    ------
    InputError
        With what to do; a column that is configured is believed.
    """
    if _is_matrix(rows):
        found = f"{len(rows[0])} columns of few different numbers, as of a column per item"
        believed = "or, if a line is a rating, --set dataset.user_column=1"
        raise InputError(source, found, f"{reshaped(header=not _holds_ratings(rows))}; {believed}")
    thirds = [row[2] for row in rows if len(row) > 2]
    if thirds and len(thirds) == len(rows) and all(map(_is_time, thirds)):
        found = f"times in the third column, such as {thirds[0].strip()!r}, where ratings are expected"
        ratings = next((place for place in range(3, len(rows[0])) if _all_numbers(rows, place)), None)
        settings = f"--set dataset.rating_column={(ratings or 3) + 1} --set dataset.timestamp_column=3"
        none = "a column of ratings: in a list of pairs there is none to protect, or to predict"
        raise InputError(source, found, none if ratings is None else settings)


def _is_matrix(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether all cells but the first of each line are a few different numbers, or empty."""
    body = rows[1:]
    if not body or len(rows[0]) < _WIDE or {len(row) for row in rows} != {len(rows[0])}:
        return False
    cells = {cell.strip() for row in body for cell in row[1:]}
    given = {cell for cell in cells if cell and cell.lower() not in _UNGIVEN}
    return 0 < len(given) <= _FEW and all(map(is_number, given))


def _holds_ratings(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line of a matrix is like the others: nothing, or the same few numbers."""
    below = {cell.strip() for row in rows[1:] for cell in row[1:]}
    return {cell.strip() for cell in rows[0][1:]} <= below | {""}


def _is_time(cell: str) -> bool:
    text = cell.strip()
    return bool(_DATE.fullmatch(text)) or (is_number(text) and _EARLIEST <= float(text) < _LATEST)


def _all_numbers(rows: Sequence[Sequence[str]], place: int) -> bool:
    return all(len(row) > place and is_number(row[place]) and not _is_time(row[place]) for row in rows)
