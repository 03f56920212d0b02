"""Files of the items that a user's test items are ranked among, in the layout of NCF's test.negative.

A line is a test item and items that its user has not rated: ``(user,item)``, then the items, each behind a
tab (He et al. [he2017]). Lines of the same user are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dprec.arrays import AnyArray, AnyInts, Bools, Ints, offsets, rows_of, segments
from dprec.datasets.delimited import lines_of
from dprec.errors import InputError, shown
from dprec.predictions import Candidates, cells_of
from dprec.ratings import Ratings

_LINE = r"^\(([^\t]+),\s*([^,\t]+)\)((?:\t[^\t]+)+)\s*$"
_ACCEPTED = "(user,item) and items, a tab before each, as NCF's test.negative has them"


@dataclass(frozen=True, eq=False)
class Given:
    """A user's relevant items, among items that a file gives."""

    indptr: Ints
    """Where each user's items begin and end, shape (users + 1,)."""
    items: Ints
    relevant: Ratings
    """The test ratings that make an item relevant."""

    @classmethod
    def read(cls, path: str | Path, relevant: Ratings, tested: Ratings, held: Ratings) -> Given:
        """Return the items of a file.

        ``tested``, ``held``: the test ratings, and what their users have in training. Raises InputError,
        naming the line, for what is no such line, users and items that the data do not have, what is no test
        item of its user, and items that its user has; and where a user with a relevant item has no line.
        """
        source = Path(path).expanduser()
        users, test_items, negatives, line_of = _parts(source)
        lines, n_items = np.arange(users.size), relevant.n_items
        rows = _places(users, relevant.user_ids, "user", source, lines)
        first = rows * n_items + _places(test_items, relevant.item_ids, "item", source, lines)

        def named(line: int) -> str:
            return f"({users[line]},{test_items[line]})"

        untested = ~np.isin(first, tested.cells)
        _refuse(untested, named, "a user and a test item, of the same split", source, lines)
        listed = rows[line_of] * n_items + _places(negatives, relevant.item_ids, "item", source, line_of)
        # Of each user once, in the order of users and items.
        cells = np.unique(listed)
        rated_cells = cells[np.isin(cells, held.cells, assume_unique=True)]

        def rated(place: int) -> str:
            return f"item {str(negatives[place])!r}, which the user has in training"

        _refuse(np.isin(listed, rated_cells), rated, "items that the user has not rated", source, line_of)
        counts = np.bincount(cells // n_items, minlength=relevant.n_users)
        without_line = np.flatnonzero((relevant.counts > 0) & (counts == 0))
        if without_line.size:
            user = relevant.user_ids[without_line[0]]
            raise InputError(str(source), f"no line of user {user}", "a line for every user who is tested")
        return cls(offsets(counts), cells % n_items, relevant)

    def __call__(self, users: AnyInts) -> Bools:
        """Return which items are candidates of each user, shape (users, items)."""
        chosen = np.zeros((users.size, self.relevant.n_items), dtype=np.bool_)
        counts = np.diff(self.indptr)[users]
        chosen[rows_of(counts), self.items[segments(self.indptr[users], counts)]] = True
        chosen[cells_of(self.relevant, users)] = True
        return chosen

    @property
    def most(self) -> int:
        """Most items that are given for a user."""
        return int(np.diff(self.indptr).max(initial=0))


_AT_ONCE = 1 << 22
"""Cells of users and items that are looked at at once."""


def lines_among(candidates: Candidates, relevant: Ratings) -> Iterator[str]:
    """Yield what relevant items are ranked among, a line for each of them, as `Given.read` reads it.

    Raises InputError for identifiers that such lines do not keep apart.
    """
    items = relevant.item_ids.astype(np.str_)
    for ids, marks in ((items, ",\t"), (relevant.user_ids.astype(np.str_), "\t")):
        separable = np.char.strip(ids) == ids
        for mark in marks:
            separable &= np.char.find(ids, mark) < 0
        if not separable.all():
            found = shown(f"the identifier {str(ids[~separable][0])!r}")
            raise InputError(
                "negatives", found, "identifiers without tabs, blanks around them, or commas in items"
            )
    testing, step = np.flatnonzero(relevant.counts), max(1, _AT_ONCE // relevant.n_items)
    for start in range(0, testing.size, step):
        users = testing[start : start + step]
        chosen = candidates(users)
        chosen[cells_of(relevant, users)] = False
        for user, row in zip(users.tolist(), chosen, strict=True):
            negatives = "\t".join(items[row])
            tested = relevant.items[relevant.indptr[user] : relevant.indptr[user + 1]]
            yield from (f"({relevant.user_ids[user]},{items[item]})\t{negatives}\n" for item in tested)


def _parts(source: Path) -> tuple[AnyArray, AnyArray, AnyArray, Ints]:
    """Return each line's user and test item, the other items of all lines, and the line of each of these."""
    import polars as pl

    if not source.is_file():
        raise InputError(str(source), "no such file", f"lines of {_ACCEPTED}")
    lines = pl.Series(lines_of(source), dtype=pl.String)
    parts = lines.str.extract_groups(_LINE)
    users, test_items, negatives = (parts.struct[place] for place in range(3))
    odd: Bools = users.is_null().to_numpy()
    _refuse(odd, lambda line: repr(lines[line]), _ACCEPTED, source, np.arange(odd.size))
    listed = negatives.str.strip_chars().str.split("\t")
    counts = listed.list.len().to_numpy().astype(np.int64)
    return users.to_numpy(), test_items.to_numpy(), listed.explode().to_numpy(), rows_of(counts)


def _places(texts: AnyArray, ids: AnyArray, role: str, source: Path, lines: Ints) -> Ints:
    """Return the places of identifiers, as they are written, among those of the data."""
    written, wanted = ids.astype(np.str_), texts.astype(np.str_)
    order = np.argsort(written, kind="stable")
    places: Ints = order[np.minimum(np.searchsorted(written[order], wanted), written.size - 1)]
    unknown: Bools = written[places] != wanted
    _refuse(
        unknown, lambda at: f"{role} {str(texts[at])!r}", f"one of the {role}s of the data", source, lines
    )
    return places


def _refuse(odd: Bools, describe: Callable[[int], str], accepted: str, source: Path, lines: Ints) -> None:
    """Raise InputError for the first that is odd, with what is found and its line, counted from 0."""
    if odd.any():
        first = int(np.argmax(odd))
        raise InputError(f"{source}, line {lines[first] + 1}", shown(describe(first)), accepted)
