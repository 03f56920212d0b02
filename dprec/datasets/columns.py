"""Where ratings stand in a table: by settings, header and first lines; and on which scale they are."""

import csv
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator

from dprec.arrays import Floats, Ints
from dprec.components import Options, as_tuple, option, plain
from dprec.datasets.base import as_typed
from dprec.errors import InputError, SettingError
from dprec.ratings import MAX_LEVELS, POSITIVE, RatingScale

WHITESPACE = "whitespace"
"""The separator that means any run of blanks and tabs."""


def found_separator(lines: Sequence[str]) -> str:
    """Return what separates the columns of a file.

    It divides all lines into the same number of cells, most of them filled; if nothing does, it is what the
    first line has most of, and else a comma.
    """
    filled = [line for line in lines if line.strip()]
    best, most = "", 1
    # The likelier first, where several divide every line alike.
    for separator in ("::", "\t", ";", "|", ",", WHITESPACE):
        rows = [split_line(line, separator) for line in filled]
        widths = {len(row) for row in rows}
        # Two tabs between columns are blanks, not an empty column.
        if len(widths) == 1 and all("".join(column).strip() for column in zip(*rows, strict=True)):
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


_RESHAPED = (
    "a line per rating, which pandas makes of a column per item (with header=None, if its first line holds "
    "ratings): pandas.read_csv(FILE, index_col=0).stack().dropna().to_csv('ratings.csv', header=False)"
)
"""What to do with a matrix in a file."""


def check_layout(rows: Sequence[Sequence[str]], separator: str, source: str) -> None:
    """Refuse first lines that are lists or those of a matrix, or whose third column holds times.

    Only where no column is configured and none named in a header; a column that is configured is believed.
    """
    widths = {len(row) for row in rows}
    integers = all(cell.isascii() and cell.isdigit() for row in rows for cell in row)
    if separator == WHITESPACE and len(widths) > 1 and integers:
        kind = f"--set 'dataset={{kind: lightgcn, path: {source}}}', if each is a user and its items"
        raise InputError(source, "lines of integers, of different lengths", f"{kind}; or columns")
    cells = {cell.strip() for row in rows[1:] for cell in row[1:]}
    given = {cell for cell in cells if cell.lower() not in {"", "nan", "na", "null", "none", "?"}}
    # Ratings in the first lines of a matrix have few different values; identifiers of items have more.
    if min(widths) >= 10 and 0 < len(given) <= 30 and all(map(is_number, given)):
        found = f"{len(rows[0])} columns of few different numbers, as of a column per item"
        believed = "or, if a line is a rating, --set dataset.user_column=1"
        raise InputError(source, found, f"{_RESHAPED}; {believed}")
    if min(widths) > 2 and all(_is_time(row[2]) for row in rows):
        found = f"times in the third column, such as {rows[0][2].strip()!r}, where ratings are expected"
        others = enumerate(list(zip(*rows, strict=False))[3:], start=4)
        numbers = (place for place, column in others if all(map(is_number, column)))
        rated = next((n for n in numbers if not any(_is_time(row[n - 1]) for row in rows)), None)
        settings = "" if rated is None else f"--set dataset.rating_column={rated} "
        none = ", if there are no ratings" if rated is None else ""
        raise InputError(source, found, f"{settings}--set dataset.timestamp_column=3{none}")


def _is_time(cell: str) -> bool:
    text = cell.strip()
    dated = re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", text) is not None
    # Seconds or milliseconds since 1970, from 1973 on; no scale of ratings is as large.
    return dated or (is_number(text) and 1e8 <= float(text) < 1e14)


Role = Literal["user", "item", "rating", "timestamp"]

ROLES: tuple[Role, ...] = ("user", "item", "rating")
"""The columns that ratings need, in their usual order."""

_NAMES: dict[Role, tuple[str, ...]] = {
    "user": (
        *("user", "userid", "uid", "u", "useridx", "userindex", "reviewer", "reviewerid", "customer"),
        *("customerid", "custid", "member", "memberid", "visitorid", "person", "personid", "rater"),
        "username",
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
        *("grade", "vote", "value", "r", "plays", "playcount", "listens", "listencount", "clicks", "views"),
        *("purchases", "quantity", "count", "counts", "weight"),
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


_LISTED = 5


def _even_step(levels: Floats) -> float | None:
    """Return the distance between the levels of a scale that has all of some values, or None."""
    reach = levels[-1] - levels[0]
    # Rounding keeps two spellings of one rating from counting as different levels.
    apart = np.diff(np.unique(np.round(levels, 9)))
    if not apart.size:
        return None
    steps = reach / apart.min()
    if not (abs(steps - round(steps)) < 1e-6 and steps < MAX_LEVELS):
        return None
    return float(reach / round(steps))


def _without_few(values: Floats, counts: Ints, low: float | None, high: float | None) -> slice:
    """Return the narrowest stretch that holds all but a few of the ratings, if it is narrow enough."""
    budget = math.ceil(0.001 * counts.sum()) - 1
    below = np.concatenate([[0], np.cumsum(counts)])
    above = np.concatenate([[0], np.cumsum(counts[::-1])])
    starts = np.arange(1 if low is not None else np.searchsorted(below, budget, "right"))
    left = budget - below[starts]
    ends = values.size - (
        np.searchsorted(above, left, "right") - 1 if high is None else np.zeros_like(starts)
    )
    reaches = values[np.maximum(ends - 1, 0)] - values[np.minimum(starts, values.size - 1)]
    best = int(np.argmin(reaches)) if starts.size else 0
    narrow = starts.size and 0 < 2 * reaches[best] < values[-1] - values[0]
    return slice(int(starts[best]), int(ends[best])) if narrow else slice(0, values.size)


def _without_sentinel(values: Floats, counts: Ints, low: float | None, high: float | None) -> slice:
    """Return all values but one at an end that stands alone."""
    # With fewer different ratings, any of them may be far from the others.
    reach, enough = values[-1] - values[0], values.size > 4
    if low is None and values.size > 2:
        negative = values[0] < 0 <= values[1] and values[1] - values[0] > np.diff(values[1:]).min() + 1e-9
        if negative or (enough and 2 * (values[-1] - values[1]) < reach):
            return slice(1, values.size)
    if high is None and enough and 2 * (values[-2] - values[0]) < reach:
        return slice(0, values.size - 1)
    return slice(0, values.size)


_LARGEST = 1e15
"""Greatest absolute rating: beyond it, floating point is too coarse to distinguish levels."""

_COLUMN = "column: its name in the header, or its position from 1; by default it is found by its name."


@dataclass(frozen=True, kw_only=True)
class RatingColumns(Options):
    """Where users, items and ratings stand in a table, and the scale of the ratings.

    The scale runs from `low` to `high` by `step`. What is not given is taken from the ratings: the
    least, the greatest, and the smallest distance between two different ones, which must then fit all; with
    `low` and `high` given, ratings that no such distance fits are those of a slider. Give `low` and `high` if
    the ends of the scale may not occur in the data.
    """

    user_column: str | int | None = option(f"Users' {_COLUMN}", None)
    item_column: str | int | None = option(f"Items' {_COLUMN}", None)
    rating_column: str | int | None = option(f"Ratings' {_COLUMN}", None)
    timestamp_column: str | int | None = option(
        "Column of the time of a rating, read where a split needs it; by default found by its name.", None
    )
    low: float | None = option("Least rating of the scale; by default the least that occurs.", None)
    high: float | None = option("Greatest rating of the scale; by default the greatest that occurs.", None)
    step: float | None = option(
        "Distance between two levels of the scale; by default the smallest distance between two ratings, "
        "or a fortieth of the range if the scale is continuous.",
        None,
        gt=0,
    )
    continuous: bool | None = option(
        "Whether ratings lie between the levels too, as on a slider; by default where low and high are "
        "given, step is not, and no even levels fit.",
        None,
    )
    missing: Annotated[
        tuple[float, ...],
        BeforeValidator(lambda value: (value,) if isinstance(plain(value), int | float) else as_tuple(value)),
    ] = option("Values that mean that there is no rating, such as [-1, 99].", ())

    def has_ratings(self, header: Sequence[str]) -> bool:
        """Return whether there are ratings: not where a header names users, items and at most times."""
        if self.rating_column is not None or len(header) > len(ROLES):
            return True
        timed = self.timestamp_column is not None or find_column("timestamp", header) is not None
        return len(header) != 2 + timed or find_column("rating", header) is not None

    def places(self, header: Sequence[str], source: str, *, timed: bool = False) -> list[int]:
        """Return the positions of users, items, ratings and times in a header, from 0.

        Without those of ratings where there are none; see `has_ratings`. Raises SettingError under the
        setting of a column that is not found, or is another's too.
        """
        times: tuple[Role, ...] = ("timestamp",) if timed else ()
        chosen: dict[int, Role] = {}
        unclear: list[Role] = []
        for role in (*(ROLES if self.has_ratings(header) else ROLES[:2]), *times):
            column: str | int | None = getattr(self, f"{role}_column")
            try:
                place = find_column(role, header) if column is None else column_place(column, header, source)
            except InputError as error:
                found = f"{error.where}: {error.found}"
                raise SettingError(f"{role}_column", found, error.accepted) from None
            if place is None:
                unclear.append(role)
            elif chosen.setdefault(place, role) != role:
                found = f"{source}: column {header[place]!r} for the {role}s too, beside the {chosen[place]}s"
                raise SettingError(f"{role}_column", found, "a column of its own")
        if unclear:
            holds = " and ".join(f"the {role}s ({role}_column)" for role in unclear)
            found = f"{source}: which of the columns {_listed(map(repr, header))} holds {holds} is not clear"
            # A header of items alone is that of a matrix.
            wide = {"item", "rating"} <= {*unclear} and len(header) > len(ROLES)
            matrix = f"; or {_RESHAPED}" if wide else ""
            pairs = "; without ratings, a table of the other two alone" if unclear == ["rating"] else ""
            accepted = f"the name of a column, or its position from 1{matrix}{pairs}"
            raise SettingError(f"{unclear[0]}_column", found, accepted)
        return list(chosen)

    def known_scale(self) -> RatingScale | None:
        """Return the scale if it is configured in full."""
        if self.low is None or self.high is None or self.step is None:
            return None
        return RatingScale.evenly(self.low, self.high, self.step, continuous=self.continuous is True)

    def read_off(self) -> tuple[str, ...]:
        """Return the settings of the scale that are not given; see `Dataset.read_off`."""
        unneeded = ("step",) if self.continuous else ()
        scale = {"low": self.low, "high": self.high, "step": self.step}
        return tuple(name for name, value in scale.items() if value is None and name not in unneeded)

    def written(self, settings: Mapping[str, Any]) -> str:
        """Return settings as they are typed, here as arguments in Python."""
        return ", ".join(f"{name}={as_typed(value, str)}" for name, value in settings.items())

    def scale(self, values: Floats, source: str, *, counted: bool = False) -> RatingScale:
        """Return the scale of some ratings; raises InputError unless enough of them agree on one.

        Pairs without ratings, which have NaN, are implicit. Of numbers that are ``counted``, such as those of
        plays, only a threshold is asked: any scale that holds them will do.
        """
        if np.isnan(values).all():
            return POSITIVE
        if counted:
            low, high = float(values.min()), float(values.max())
            return RatingScale(np.array([low, max(high, low + 1)]), continuous=True)
        distinct, counts = np.unique(values, return_counts=True)
        least, most = float(distinct[0]), float(distinct[-1])
        given = self.low is not None and self.high is not None
        if least == most and not given:
            ends = {"low": min(1.0, least), "high": max(5.0, least)}
            ends = {name: end for name, end in ends.items() if getattr(self, name) is None}
            lists = "; or positive: '> 0', if they say who has what" if least > 0 else ""
            accepted = f"the ends of the scale that they are on, such as {self.written(ends)}{lists}"
            raise SettingError("low", f"{source}: {values.size:,} ratings that are all {least:g}", accepted)
        low = least if self.low is None else float(self.low)
        high = most if self.high is None else float(self.high)
        if max(-least, most) > _LARGEST:
            low, high = min(low, least), max(high, most)
        if not low < high or max(-low, high) > _LARGEST:
            accepted = "low and high, with low < high, within 1e15"
            raise InputError(source, f"a scale from {low:g} to {high:g}", accepted)
        self._check_bulk(distinct, counts, source)
        if self.step is not None:
            try:
                return RatingScale.evenly(low, high, self.step, continuous=self.continuous is True)
            except InputError as error:
                if given:
                    raise
                raise SettingError("step", error.found, self._with_ends(low, high, self.step)) from None
        step = None if self.continuous else _even_step(np.unique([low, high, *distinct]))
        if step is None and not self.continuous and (self.continuous is False or not given):
            apart = float(np.diff(distinct).min(initial=high - low))
            found = f"ratings from {low:g} to {high:g} that are as little as {apart:g} apart"
            plays = "; or positive: '>= 1', if they are counts" if low >= 0 and apart == 1 else ""
            raise SettingError("low", f"{source}: {found}", f"{self._with_ends(low, high)}{plays}")
        even = (high - low) / 40 if step is None else step
        return RatingScale.evenly(low, high, even, continuous=step is None)

    def _check_bulk(self, values: Floats, counts: Ints, source: str) -> None:
        """Refuse ratings of which very few, or one value that may mean "not rated", widen the scale.

        Less than 0.1 % of the ratings may not make the scale more than twice as wide, nor a single value
        beside four or more; and no gap may lie above the only negative value.
        """
        for find_bulk in (_without_few, _without_sentinel):
            kept = find_bulk(values, counts, self.low, self.high)
            inside, odd = values[kept], np.delete(values, kept)
            if not odd.size:
                continue
            several = odd.size > _LISTED
            listed = ", ".join(f"{value:g}" for value in odd[:_LISTED]) + (" ..." if several else "")
            reaches = f"{inside[0]:g} to {inside[-1]:g} to {values[0]:g} to {values[-1]:g}"
            number = f"{np.delete(counts, kept).sum():,} of {counts.sum():,} ratings ({listed})"
            ends = {"low": float(values[0])} if inside[0] > values[0] else {}
            ends |= {"high": float(values[-1])} if inside[-1] < values[-1] else {}
            unrated = self.written({"missing": odd[:_LISTED].tolist()}) + (", and so on," if several else "")
            accepted = f"{unrated} if that means not rated, or {self.written(ends)} if it is a rating"
            raise SettingError("missing", f"{source}: {number} widen the scale from {reaches}", accepted)

    def _with_ends(self, low: float, high: float, step: float | None = None) -> str:
        """Return the ends of a scale that would be accepted, in words: round numbers around the ratings."""
        unit = 1.0 if step is None or not math.isfinite(max(-low, high) / step) else step
        least, most = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
        ends = {"low": least if self.low is None else low, "high": most if self.high is None else high}
        between = "" if step is not None else "; ratings between even levels are then those of a slider"
        slider = {"continuous": True} if self.continuous is False else {}
        return f"the ends of the scale, such as {self.written(slider | ends)}{between}"
