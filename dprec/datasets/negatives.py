"""Files of the items that a user's test items are ranked among, in the layout of NCF's test.negative.

A line is a test item and items that its user has not rated: ``(user,item)``, then the items, each behind a
tab (He et al. [he2017]). Lines of the same user are joined.
"""

from __future__ import annotations

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
    def read(cls, path: str | Path, relevant: Ratings) -> Given:
        """Return the items of a file.

        Raises InputError, naming the line, for what is no such line, for users and items that the data do not
        have, and where a user with a relevant item has no line.
        """
        import polars as pl

        source = Path(path).expanduser()
        if not source.is_file():
            raise InputError(str(source), "no such file", f"lines of {_ACCEPTED}")
        lines = pl.Series(lines_of(source), dtype=pl.String)
        parts = lines.str.extract_groups(_LINE)
        users, _, others = (parts.struct[place] for place in range(3))
        if (odd := users.is_null().arg_true()).len():
            raise InputError(f"{source}, line {odd[0] + 1}", shown(repr(lines[odd[0]])), _ACCEPTED)
        listed = others.str.strip_chars().str.split("\t")
        counts = listed.list.len().to_numpy().astype(np.int64)
        texts, line_of = listed.explode().to_numpy(), rows_of(counts)
        rows = _places(users.to_numpy(), relevant.user_ids, "user", source, np.arange(counts.size))
        items = _places(texts, relevant.item_ids, "item", source, line_of)
        # Of each user once, in the order of users and items.
        cells = np.unique(rows[line_of] * relevant.n_items + items)
        found = np.bincount(cells // relevant.n_items, minlength=relevant.n_users)
        without = np.flatnonzero((relevant.counts > 0) & (found == 0))
        if without.size:
            user = relevant.user_ids[without[0]]
            raise InputError(str(source), f"no line of user {user}", "a line for every user who is tested")
        return cls(offsets(found), cells % relevant.n_items, relevant)

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


def save_negatives(path: Path, candidates: Candidates, relevant: Ratings) -> None:
    """Write what relevant items are ranked among, a line for each of them, so that `Given.read` reads it.

    A file that says the same stays as it is; InputError where it says something else.
    """
    testing, step = np.flatnonzero(relevant.counts), max(1, _AT_ONCE // relevant.n_items)
    blocks = [testing[start : start + step] for start in range(0, testing.size, step)]
    if path.exists():
        given = Given.read(path, relevant)
        if not all(np.array_equal(given(users), candidates(users)) for users in blocks):
            raise InputError(str(path), "other items than were drawn", "a folder of its own for every split")
        return
    items = relevant.item_ids.astype(np.str_)
    with path.open("x", encoding="utf-8") as file:
        for users in blocks:
            chosen = candidates(users)
            chosen[cells_of(relevant, users)] = False
            for user, row in zip(users.tolist(), chosen, strict=True):
                others = "\t".join(items[row])
                tested = relevant.items[relevant.indptr[user] : relevant.indptr[user + 1]]
                lines = (f"({relevant.user_ids[user]},{items[item]})\t{others}\n" for item in tested)
                file.writelines(lines)


def _places(texts: AnyArray, ids: AnyArray, what: str, source: Path, lines: Ints) -> Ints:
    """Return the places of identifiers, as they are written, among those of the data."""
    written = ids.astype(np.str_)
    order = np.argsort(written, kind="stable")
    found = np.minimum(np.searchsorted(written[order], texts.astype(np.str_)), written.size - 1)
    places: Ints = order[found]
    if (odd := np.flatnonzero(written[places] != texts.astype(np.str_))).size:
        where = f"{source}, line {lines[odd[0]] + 1}"
        raise InputError(where, f"{what} {shown(repr(str(texts[odd[0]])))}", f"a {what} of the data")
    return places
