"""Small files in the layouts of data sets, for the tests of their readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Sample:
    """A small file of one rating per line, in the layout of a data set.

    Parameters
    ----------
    file : str
        The name that the distributor gives the file.
    row : callable
        Lays out a user, an item and a rating.
    low, high : float
        Ends of the scale.
    levels : int
        Levels of the scale.
    continuous : bool
        Whether ratings may lie between the levels.
    header : str, optional
        The first line, if it names the columns.
    renamed_header : str, optional
        The same without one of the columns that are read.
    users : tuple
        Three identifiers, as in the file.
    settings : dict
        Settings of the data set, in addition to its path.
    found_in_folder : bool
        Whether the path may be the folder that holds the file.
    """

    file: str
    row: Callable[[Any, Any, Any], str]
    low: float
    high: float
    levels: int
    continuous: bool = False
    header: str | None = None
    renamed_header: str | None = None
    users: tuple[Any, ...] = (3, 10, 7)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    found_in_folder: bool = True

    @property
    def triples(self) -> list[tuple[Any, int, float]]:
        """The ratings in the file."""
        a, b, c = self.users
        return [
            (a, 50, self.high),
            (a, 8, self.low),
            (b, 50, self.low),
            (c, 900, self.high),
            (b, 8, self.high),
        ]

    @property
    def first_line(self) -> int:
        """Number of the first line with a rating."""
        return 1 if self.header is None else 2

    def lines(self) -> list[str]:
        """Return the lines of the file."""
        rows = [self.row(user, item, f"{value:g}") for user, item, value in self.triples]
        return rows if self.header is None else [self.header, *rows]
