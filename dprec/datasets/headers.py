"""How a text file is laid out, by its first lines, and which of its columns hold what, by their names."""

import csv
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from dprec.datasets.base import WHITESPACE
from dprec.errors import InputError, SettingError

_SEPARATORS = ("::", "\t", ";", "|", ",", WHITESPACE)
"""The likelier first, where several divide every line alike."""


def found_separator(lines: Sequence[str]) -> str:
    """Return what separates the columns of a file.

    It divides all lines into the same number of cells, most of them filled; if nothing does, it is what the
    first line has most of, and else a comma.
    """
    filled = [line for line in lines if line.strip()]
    best, most = "", 1
    for separator in _SEPARATORS:
        rows = [split_line(line, separator) for line in filled]
        widths = {len(row) for row in rows}
        # Two tabs between columns are blanks, not an empty column.
        if len(widths) == 1 and all(
            any(cell.strip() for cell in column) for column in zip(*rows, strict=True)
        ):
            width = min(widths.pop(), 3)
            if width > most:
                best, most = separator, width
    if best or not filled:
        return best or ","
    return max((",", ";", "\t", "::", "|", WHITESPACE), key=lambda mark: len(split_line(filled[0], mark)))


def split_line(line: str, separator: str) -> list[str]:
    """Return the cells of a line."""
    if separator == WHITESPACE:
        return line.split()
    if len(separator) > 1:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return [line]


def is_number(cell: str) -> bool:
    """Return whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _reshaped(*, header: bool = True) -> str:
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

    Only where no column is configured and none named in a header; a column that is configured is believed.
    """
    if _is_matrix(rows):
        found = f"{len(rows[0])} columns of few different numbers, as of a column per item"
        believed = "or, if a line is a rating, --set dataset.user_column=1"
        raise InputError(source, found, f"{_reshaped(header=not _holds_ratings(rows))}; {believed}")
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


Role = Literal["user", "item", "rating", "timestamp"]

ROLES: tuple[Role, ...] = ("user", "item", "rating")
"""The columns that ratings need, in their usual order."""

_NAMES: dict[Role, tuple[str, ...]] = {
    "user": (
        *("user", "userid", "uid", "u", "useridx", "userindex", "reviewer", "reviewerid", "customer"),
        *(
            "customerid",
            "custid",
            "member",
            "memberid",
            "visitorid",
            "person",
            "personid",
            "rater",
            "username",
        ),
    ),
    "item": (
        *("item", "itemid", "iid", "i", "itemidx", "itemindex", "movie", "movieid", "film", "filmid", "isbn"),
        *("asin", "parentasin", "product", "productid", "book", "bookid", "artist", "artistid", "track"),
        *("trackid", "song", "songid", "anime", "animeid", "joke", "jokeid", "place", "placeid"),
        *("business", "businessid", "restaurant", "restaurantid", "game", "gameid", "recipe", "recipeid"),
        *("article", "articleid", "beer", "beerid"),
    ),
    "rating": (
        *("rating", "ratings", "score", "stars", "star", "overall", "bookrating", "userrating", "rate"),
        *("grade", "vote", "value", "r"),
    ),
    "timestamp": (
        *("timestamp", "time", "unixtime", "unixreviewtime", "unixtimestamp", "timestampms", "date"),
        *("datetime", "ts", "t"),
    ),
}
"""In lower case, without marks; of several that occur, the first counts."""


def find_column(role: Role, header: Sequence[str]) -> int | None:
    """Return the position of a role's column, whatever its case and marks; None unless just one."""
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in header]
    known = next((name for name in _NAMES[role] if name in plain), None)
    return plain.index(known) if known is not None and plain.count(known) == 1 else None


def required_columns(asked: Mapping[Role, str | int | None], header: Sequence[str], source: str) -> list[int]:
    """Return the positions of columns in a header, from 0; raises SettingError under the setting of one.

    Each is asked for by name, by its position from 1, or, if None, by the usual names of its role.
    """
    places = {role: _place(role, column, header, source) for role, column in asked.items()}
    unclear: list[Role] = [role for role, place in places.items() if place is None]
    if unclear == ["rating"] and len(header) == 2:
        raise no_ratings(source)
    if unclear:
        # A header of items alone is that of a matrix.
        wide = "item" in unclear and "rating" in unclear and len(header) > len(ROLES)
        matrix = f"; of a column per item, {_reshaped()}" if wide else ""
        holds = " and ".join(f"the {role}s ({role}_column)" for role in unclear)
        found = f"{source}: which of the columns {_listed(map(repr, header))} holds {holds} is not clear"
        accepted = f"the name of a column, or its position from 1{matrix}"
        raise SettingError(f"{unclear[0]}_column", found, accepted)
    chosen: dict[int, Role] = {}
    for role, place in places.items():
        if place is not None and chosen.setdefault(place, role) != role:
            found = f"{source}: column {header[place]!r} for the {role}s too, beside the {chosen[place]}s"
            raise SettingError(f"{role}_column", found, "a column of its own")
    return list(chosen)


def no_ratings(source: str) -> SettingError:
    """Return the error for a list of users and items, without ratings."""
    accepted = "a column of ratings: in a list of pairs there is none to protect, or to predict"
    return SettingError("rating_column", f"{source}: users and items without ratings", accepted)


def _place(role: Role, column: str | int | None, header: Sequence[str], source: str) -> int | None:
    if column is None:
        return find_column(role, header)
    try:
        return column_place(column, header, source)
    except InputError as error:
        raise SettingError(f"{role}_column", f"{error.where}: {error.found}", error.accepted) from None


def column_place(column: str | int, header: Sequence[str], source: str) -> int:
    """Return the position, from 0, of a column by name or position from 1, or raise InputError."""
    if isinstance(column, int):
        if not 1 <= column <= len(header):
            raise InputError(source, f"no column {column} among {len(header)}", f"1 to {len(header)}")
        return column - 1
    names = [name.strip() for name in header]
    if (count := names.count(column)) != 1:
        found = f"{count} columns {column!r}" if count else f"no column {column!r}"
        raise InputError(source, found, f"one of {_listed(sorted(set(names)))}")
    return names.index(column)


def _listed(names: Iterable[str]) -> str:
    return textwrap.shorten(", ".join(names), 190, placeholder=" ...")
