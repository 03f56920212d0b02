"""Ratings of books and of music by the same people on douban.com."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dprec.datasets.base import FileDataset, locate
from dprec.datasets.delimited import Layout, read_triples
from dprec.errors import InputError
from dprec.options import option
from dprec.ratings import Ratings, RatingScale

_DOMAINS = ("book", "music")
_LAYOUT = Layout(separator="\t", width=3)
_SCALE = RatingScale.evenly(1, 5, 1)


@dataclass(frozen=True, kw_only=True)
class Douban(FileDataset):
    """Douban: ratings of books, or of music, 1 to 5, by users that both domains share."""

    kind: Literal["douban"] = "douban"
    domain: Literal["book", "music"] = option(
        "What is rated, where the path is the folder: 'book' or 'music'.", "book"
    )

    def load(self) -> Ratings:
        """Return all ratings of the domain; InputError names the file and line of what cannot be read."""
        if self.domain not in _DOMAINS:
            raise InputError("domain", repr(self.domain), ", ".join(_DOMAINS))
        return read_triples(locate(self.path, f"{self.domain}.dat"), _LAYOUT).ratings(_SCALE, self.duplicates)
