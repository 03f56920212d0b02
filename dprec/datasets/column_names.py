"""Which columns of a table hold the users, items, ratings and times, by the names that are in use."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Literal

from dprec.errors import SettingError

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


def required_column(role: Role, header: Sequence[str], source: str) -> int:
    """Return the place of a role's column in a header, from 0.

    Raises
    ------
    SettingError
        Under the setting that names the column, when it cannot be told.
    """
    place = find_column(role, header)
    if place is None:
        names = textwrap.shorten(", ".join(map(repr, header)), 200, placeholder=" ...")
        found = f"{source}: which of the columns {names} holds the {role}s is not clear"
        raise SettingError(f"{role}_column", found, "the name of one of them, or its position from 1")
    return place
