"""Which columns of a table hold the users, items, ratings and times, by the names that are in use."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from dprec.datasets.headers import reshaped
from dprec.errors import InputError, SettingError

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
    """Return the place of a role's column in a header, from 0; None if no name, or one twice, is the role's.

    Case, blanks and marks do not count: "User-ID" is "userid".
    """
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in header]
    known = next((name for name in _NAMES[role] if name in plain), None)
    return plain.index(known) if known is not None and plain.count(known) == 1 else None


def required_columns(asked: Mapping[Role, str | int | None], header: Sequence[str], source: str) -> list[int]:
    """Return the places of columns in a header, from 0.

    Parameters
    ----------
    asked : mapping
        The name of each role's column, or its position from 1; None if it is to be found by its name.
    source : str
        The table's name in errors.

    Raises
    ------
    SettingError
        Under the setting that names a column, such as "user_column", which is not there or has another role.
    """
    places = {role: _place(role, column, header, source) for role, column in asked.items()}
    unclear: list[Role] = [role for role, place in places.items() if place is None]
    if unclear == ["rating"] and len(header) == 2:
        raise no_ratings(source)
    if unclear:
        # A header of items alone is that of a matrix.
        wide = "item" in unclear and "rating" in unclear and len(header) > len(ROLES)
        matrix = f"; of a column per item, {reshaped()}" if wide else ""
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
    """Return the place of a column in a header, from 0.

    Parameters
    ----------
    column : str or int
        Its name, or its position from 1.
    source : str
        Where the header is, for the error.

    Raises
    ------
    InputError
        When there is no such column, or several have its name.
    """
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
