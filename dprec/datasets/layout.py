"""How the lines of a file of ratings are laid out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dprec.errors import InputError

WHITESPACE = "whitespace"
"""The separator that means any run of blanks and tabs."""

_TAB = ("tab", "\\t")
"""Other names of the tab, which some shells and editors do not let through."""


@dataclass(frozen=True)
class Layout:
    """How the lines of a file are laid out."""

    separator: str = ","
    """One character, several ("::"), "tab" or `WHITESPACE`. Quoted cells are supported only for one
    character.
    """
    header: bool = False
    """Whether the first line names the columns."""
    width: int | None = None
    """Number of columns; by default that of the first line."""
    user: str | int = 1
    item: str | int = 2
    rating: str | int = 3
    """The columns of the three: a name in the header, or a position counted from 1."""
    timestamp: str | int | None = None
    """The column of the time at which a rating was made."""

    def __post_init__(self) -> None:
        if self.separator in _TAB:
            object.__setattr__(self, "separator", "\t")
        if self.separator != WHITESPACE and not re.fullmatch(r'[^"\n\r\w.+-]+', self.separator):
            raise InputError(
                "separator", repr(self.separator), f"such as ',', ';', 'tab', '::' or {WHITESPACE!r}"
            )

    @property
    def described_separator(self) -> str:
        """The separator in words, for error messages."""
        return {"\t": "a tab", WHITESPACE: "blanks"}.get(self.separator, repr(self.separator))
