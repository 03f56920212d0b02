"""Where ratings stand in a table: by settings, header and first lines; and on which scale they are."""

import math
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator

from dprec.arrays import Floats, Ints
from dprec.components import Options, as_tuple, option, plain
from dprec.datasets.base import OR_WITHOUT_TIMES, as_typed
from dprec.datasets.foreign import RESHAPED, of_one_item
from dprec.errors import InputError, SettingError, plural
from dprec.rating_rows import RatingRows, Reading
from dprec.ratings import MAX_LEVELS, POSITIVE, RatingScale

Role = Literal["user", "item", "rating", "timestamp"]

ROLES: tuple[Role, ...] = ("user", "item", "rating")
"""The columns that ratings need, in their usual order."""

_KINDS: dict[Role, tuple[str, ...]] = {
    "user": (
        *("user", "reviewer", "customer", "member", "visitor", "person", "rater", "profile", "reader"),
        *("listener", "consumer", "client", "account", "student", "guest", "cust", "session"),
    ),
    "item": (
        *("item", "movie", "film", "product", "book", "artist", "track", "song", "album", "anime", "joke"),
        *("place", "business", "restaurant", "game", "recipe", "article", "news", "beer", "video", "photo"),
        *("app", "show", "podcast", "course", "venue", "poi", "hotel", "doc", "document", "repo", "offer"),
    ),
}
"""What users and items are, of which a name, an id or an index can be a column."""

_IDS: dict[Role, tuple[str, ...]] = {
    "user": ("uid", "u"),
    "item": ("iid", "i", "isbn", "isbn13", "isbn10", "asin", "parentasin", "sku", "gtin", "beerbeerid"),
}
"""Further names of identifiers."""

_CALLED: dict[Role, tuple[str, ...]] = {
    "user": ("profilename", "reviewprofilename", "screenname", "nickname"),
    "item": (),
}
_TITLES = ("name", "title")
"""Further names of what users and items are called."""

_NAMES: dict[Role, tuple[str, ...]] = {
    "rating": (
        *("rating", "ratings", "score", "stars", "star", "overall", "reviewoverall", "bookrating"),
        *("userrating", "ratingscore", "reviewrating", "reviewscore", "rate", "grade", "vote", "value", "r"),
        *("plays", "playcount", "playcounts", "listens", "listencount", "clicks", "views", "purchases"),
        *("quantity", "count", "counts", "weight", "watchratio", "hours", "hoursplayed", "playtime", "label"),
    ),
    "timestamp": (
        *("timestamp", "time", "unixtime", "unixreviewtime", "unixtimestamp", "timestampms", "reviewtime"),
        *("eventtime", "date", "datetime", "reviewdate", "ratingdate", "createdat", "playedat", "ts", "t"),
    ),
}
"""In lower case, without marks; of several that occur, the first counts."""


def _plain(name: str) -> str:
    """Return a column's name in lower case, without marks and the type that RecBole writes behind it."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r":(token|float|token_seq|float_seq)$", "", name.strip().lower()))


def _ranks(role: Role) -> tuple[frozenset[str], ...]:
    """Return the names of a role's columns, those that say more clearly what they hold first."""
    if role not in _KINDS:
        return tuple(frozenset([name]) for name in _NAMES[role])
    endings = ("id", "ids", "idx", "index", "no", "number", "key", "code")
    first_kind, *other_kinds = _KINDS[role]
    return (
        frozenset(f"{first_kind}{ending}" for ending in endings),
        frozenset([*(f"{kind}{ending}" for kind in other_kinds for ending in endings), *_IDS[role]]),
        frozenset([first_kind]),
        frozenset(
            [*other_kinds, *_CALLED[role], *(f"{kind}{name}" for kind in _KINDS[role] for name in _TITLES)]
        ),
    )


def candidates(role: Role, header: Sequence[str]) -> list[int]:
    """Return the positions of the columns that seem to hold a role, whatever their case and marks.

    An identifier comes before a name or a title, so that none of these is listed where there is one.
    """
    plain = [_plain(name) for name in header]
    for names in _ranks(role):
        if places := [place for place, name in enumerate(plain) if name in names]:
            return places
    return []


def find_column(role: Role, header: Sequence[str]) -> int | None:
    """Return the position of a role's column; None unless just one seems to hold it."""
    places = candidates(role, header)
    return places[0] if len(places) == 1 else None


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
    """Return the greatest distance of which all distances of some values are multiples, or None."""
    reach = levels[-1] - levels[0]
    # Rounding keeps two spellings of one rating from counting as different levels.
    gaps = np.diff(np.unique(np.round(levels, 9)))
    if not gaps.size:
        return None
    millionths = np.rint(gaps * 1e6)
    decimal = reach < 1e9 and np.all(np.abs(gaps * 1e6 - millionths) < 1e-3)
    step = float(np.gcd.reduce(millionths.astype(np.int64))) / 1e6 if decimal else float(gaps.min())
    multiples = gaps / step
    if not (np.all(abs(multiples - np.round(multiples)) < 1e-6) and round(reach / step) < MAX_LEVELS):
        return None
    return float(reach / round(reach / step))


def _without_few(values: Floats, counts: Ints, low: float | None, high: float | None) -> slice:
    """Return the narrowest stretch that holds all but a few of the ratings, if it is narrow enough."""
    budget = math.ceil(0.001 * counts.sum()) - 1
    below = np.concatenate([[0], np.cumsum(counts)])
    above = np.concatenate([[0], np.cumsum(counts[::-1])])
    starts = np.arange(1 if low is not None else np.searchsorted(below, budget, "right"))
    budget_above = budget - below[starts]
    ends = values.size - (
        np.searchsorted(above, budget_above, "right") - 1 if high is None else np.zeros_like(starts)
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
        # A true 0 is hardly so much rarer than what is above it.
        stars = enough and values[0] == 0 and values[1] in (0.5, 1)
        if stars and 5 * counts[0] < counts[1:].mean():
            return slice(1, values.size)
    if high is None and enough and 2 * (values[-2] - values[0]) < reach:
        return slice(0, values.size - 1)
    return slice(0, values.size)


_LARGEST = 1e15
"""Greatest absolute rating: beyond it, floating point is too coarse to distinguish levels."""

ABSENT = "none"
"""In place of the column of ratings or times: there is none, whatever else rows hold."""

_WIDE = 10
"""Columns from which on a table may be a matrix with a column for each item."""

_CUT = re.compile(r"-?\d([.,]\d+)?[Ee]\+\d{2,}")
"""A long number as a spreadsheet shows it, in place of its digits."""

_COLUMN = "column: its name in the header, or its position from 1; by default it is found by its name."


@dataclass(frozen=True, kw_only=True)
class RatingColumns(Options):
    """Where users, items and ratings stand in a table, and the scale of the ratings.

    The scale runs from `low` to `high` by `step`. What is not given is taken from the ratings: the
    least, the greatest, and the greatest distance of which all distances between ratings are multiples; with
    `low` and `high` given, ratings that no such distance fits are those of a slider. Give `low` and `high` if
    the ends of the scale may not occur in the data.
    """

    user_column: str | int | None = option(f"Users' {_COLUMN}", None)
    item_column: str | int | None = option(f"Items' {_COLUMN}", None)
    rating_column: str | int | None = option(
        f"Ratings' {_COLUMN} 'none' says that rows are pairs without ratings.", None
    )
    timestamp_column: str | int | None = option(
        "Column of the time of a rating, read where a split needs it, by default found by its name; 'none' "
        "where there is none.",
        None,
    )
    low: float | None = option("Least rating of the scale; by default the least that occurs.", None)
    high: float | None = option("Greatest rating of the scale; by default the greatest that occurs.", None)
    step: float | None = option(
        "Distance between two levels of the scale; by default the greatest that all ratings are apart by, "
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
        if self.rating_column is not None:
            return self.rating_column != ABSENT
        if len(header) > len(ROLES):
            return True
        return len(header) != 2 + self.has_times(header) or find_column("rating", header) is not None

    def has_times(self, header: Sequence[str]) -> bool:
        """Return whether there is a column of times."""
        if self.timestamp_column is not None:
            return self.timestamp_column != ABSENT
        return find_column("timestamp", header) is not None

    def places(
        self,
        header: Sequence[str],
        source: str,
        *,
        timed: bool = False,
        numeric: Collection[int] | None = None,
    ) -> list[int]:
        """Return the positions of users, items, ratings and times in a header, from 0.

        Without those of ratings where there are none; see `has_ratings`. ``numeric``: the columns that seem
        to hold numbers; by default all. Raises SettingError under the setting of a column that is not found,
        or is another's too.
        """
        times: tuple[Role, ...] = ("timestamp",) if timed else ()
        if timed and not self.has_times(header):
            taken = {place for role in ROLES for place in candidates(role, header)}
            free = [repr(name) for n, name in enumerate(header) if name.strip() and n not in taken]
            named = f"{self.written({'timestamp_column': 'NAME'})}, one of {_listed(free)}"
            accepted = f"{named if free else 'data with times'}{OR_WITHOUT_TIMES}"
            raise SettingError("timestamp_column", f"{source}: no column of times", accepted)
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
            raise self._unclear(unclear, chosen, header, source, numeric)
        return list(chosen)

    def _unclear(
        self,
        unclear: Sequence[Role],
        chosen: Collection[int],
        header: Sequence[str],
        source: str,
        numeric: Collection[int] | None,
    ) -> SettingError:
        """Return the error for roles that no column seems to hold, or several do."""
        unused = [n for n in range(len(header)) if n not in {*chosen, *candidates("timestamp", header)}]
        contending = candidates(unclear[0], header)
        listed = _listed(repr(header[place]) for place in contending or range(len(header)))
        holds = " and ".join(f"the {role}s" for role in (unclear[:1] if contending else unclear))
        found = f"{source}: which of the columns {listed} holds {holds} is not clear"
        if len(unused) < len(unclear):
            return SettingError(
                f"{unclear[0]}_column", f"{found}: none is left", of_one_item(source.removesuffix(", line 1"))
            )
        accepted, settings = [], dict[str, Any]()
        for role in unclear:
            likely = [n for n in contending or unused if n not in settings.values()]
            likely = [n for n in likely if role != "rating" or numeric is None or n in numeric]
            settings |= {f"{role}_column": likely[0]} if likely else {}
        for column, place in settings.items():
            name = header[place].strip()
            settings[column] = name if name and header.count(name) == 1 else place + 1
        if "rating" in unclear and len(header) < _WIDE:
            accepted.append(f"{self.written({'rating_column': ABSENT})} if rows are pairs without ratings")
        accepted.append(f"{self.written(settings)}, or others by name or position".removeprefix(", or "))
        # A header of items alone is that of a matrix.
        if len(header) >= _WIDE and not chosen:
            accepted.insert(0, RESHAPED)
        return SettingError(f"{unclear[0]}_column", found, "; or ".join(accepted))

    def cleaned(self, rows: RatingRows) -> RatingRows:
        """Return rows without those that mean that there is no rating.

        Raises InputError where a spreadsheet has cut identifiers, so that different ones are the same now.
        """
        rows = rows if np.isnan(rows.values).all() else rows.without(self.missing)
        for column in (rows.users, rows.items):
            if column.distinct.dtype.kind != "U":
                continue
            # Few identifiers hold what all of these do.
            likely = np.flatnonzero(np.char.find(column.distinct, "+") > 0)
            cut = [place for place in likely.tolist() if _CUT.fullmatch(column.distinct[place])]
            if cut:
                of_rows = np.flatnonzero(np.isin(column.places, cut))
                row, leaving_out = int(of_rows[0]), self.leaving_out_cut(rows.reading, column is rows.users)
                found = (
                    f"{of_rows.size:,} identifiers that a spreadsheet has cut, such as {str(column[row])!r}"
                )
                accepted = f"identifiers in full, of columns that are saved as text{leaving_out}"
                raise rows.error(row, found, accepted)
        return rows

    def leaving_out_cut(self, reading: Reading | None, users: bool) -> str:
        """Return what to type to read a table without identifiers that were cut; empty if nothing does it."""
        return ""

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
        ends_given = self.low is not None and self.high is not None
        if least == most and not ends_given:
            ends = {"low": min(1.0, least), "high": max(5.0, least), "step": 1.0}
            ends = {name: end for name, end in ends.items() if getattr(self, name) is None}
            lists = f"; or {self.written({'positive': '> 0'})} if they say who has what" if least > 0 else ""
            accepted = f"the ends of the scale that they are on, such as {self.written(ends)}{lists}"
            raise SettingError(
                "low", f"{source}: {plural(values.size, 'rating')} of {least:g}, and no other", accepted
            )
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
                if ends_given:
                    raise
                raise SettingError("step", error.found, self._with_ends(low, high, self.step)) from None
        step = None if self.continuous else _even_step(np.unique([low, high, *distinct]))
        if step is None and not self.continuous and (self.continuous is False or not ends_given):
            gap = float(np.diff(distinct).min(initial=high - low))
            found = f"ratings from {low:g} to {high:g} that are as little as {gap:g} apart"
            raise SettingError(
                "low", f"{source}: {found}", self._if_counts(distinct, counts) + self._with_ends(low, high)
            )
        even = (high - low) / 40 if step is None else step
        return RatingScale.evenly(low, high, even, continuous=step is None)

    def _check_bulk(self, values: Floats, counts: Ints, source: str) -> None:
        """Refuse ratings of which very few, or one value that may mean "not rated", widen the scale.

        Less than 0.1 % of the ratings may not make the scale more than twice as wide, nor a single value
        beside four or more. No gap may lie above the only negative value, and no 0 be less than a fifth as
        frequent as the levels above it, from 0.5 or 1 on, are on average.
        """
        for find_bulk in (_without_few, _without_sentinel):
            bulk = find_bulk(values, counts, self.low, self.high)
            inside, outliers = values[bulk], np.delete(values, bulk)
            if not outliers.size:
                continue
            listed = ", ".join(f"{value:g}" for value in outliers[:_LISTED]) + (
                " ..." if outliers.size > _LISTED else ""
            )
            reaches = f"{inside[0]:g} to {inside[-1]:g} to {values[0]:g} to {values[-1]:g}"
            number = f"{np.delete(counts, bulk).sum():,} of {counts.sum():,} ratings ({listed})"
            ends = {"low": float(values[0])} if inside[0] > values[0] else {}
            ends |= {"high": float(values[-1])} if inside[-1] < values[-1] else {}
            accepted = (
                f"{self.written(ends)} if {'it is a rating' if outliers.size == 1 else 'they are ratings'}"
            )
            if outliers.size == 1 or values[0] < 0:
                unrated = self.written({"missing": outliers[:_LISTED].tolist()})
                accepted = f"{unrated} if that means not rated, or {accepted}"
            accepted = self._if_counts(values, counts) + accepted
            raise SettingError("missing", f"{source}: {number} widen the scale from {reaches}", accepted)

    def _if_counts(self, values: Floats, counts: Ints) -> str:
        """Return what to type where ratings may be counts: integers from 0 on, or of a long tail."""
        middle = values[np.searchsorted(np.cumsum(counts), counts.sum() / 2)]
        if values[0] < 0 or not (np.array_equal(values, np.rint(values)) or values[-1] > 20 * middle):
            return ""
        rule = "> 0" if values[0] < 1 else ">= 1"
        return f"{self.written({'positive': rule})} if they count plays or the like; or "

    def _with_ends(self, low: float, high: float, step: float | None = None) -> str:
        """Return the ends of a scale that would be accepted, in words: round numbers around the ratings."""
        unit = 1.0 if step is None or not math.isfinite(max(-low, high) / step) else step
        least, most = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
        ends = {"low": least if self.low is None else low, "high": most if self.high is None else high}
        between = "" if step is not None else "; ratings between even levels are then those of a slider"
        slider = {"continuous": True} if self.continuous is False else {}
        return f"the ends of the scale, such as {self.written(slider | ends)}{between}"
