"""Ratings of books and of music by the same people on douban.com."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dprec.components import option
from dprec.crossdomain import joined
from dprec.datasets.base import FileDataset, Layout, locate
from dprec.datasets.delimited import read_rows
from dprec.errors import SettingError
from dprec.ratings import Ratings, RatingScale

Domain = Literal["book", "music"]

_DOMAINS: tuple[Domain, ...] = ("book", "music")
_LAYOUT = Layout(separator="\t", width=3)
_SCALE = RatingScale.evenly(1, 5, 1)


@dataclass(frozen=True, kw_only=True)
class Douban(FileDataset):
    """Douban: ratings of books, of music or of both, 1 to 5, by users who rate in both domains."""

    kind: Literal["douban"] = "douban"
    domain: Domain = option("What is rated, if the path is the folder: 'book' or 'music'.", "book")
    source: Domain | None = option("The source domain, for recommendation across domains.", None)
    target: Domain | None = option("The target domain; with a source domain, both are loaded.", None)

    def known_scale(self) -> RatingScale:
        """Return 1 to 5 stars."""
        return _SCALE

    def load(self) -> Ratings:
        """Return all ratings, of both domains if a source and a target are named.

        Raises
        ------
        InputError
            Naming the file and line of what cannot be read, or the setting that does not fit.
        """
        if self.source is None and self.target is None:
            return self._read(self.domain, "domain")
        if self.source is None or self.target is None:
            missing = "source" if self.source is None else "target"
            raise SettingError(missing, "none", "a source and a target: " + ", ".join(_DOMAINS))
        domains = self._read(self.source, "source"), self._read(self.target, "target")
        return joined(*domains, (self.source, self.target))

    def _read(self, domain: Domain, setting: str) -> Ratings:
        if domain not in _DOMAINS:
            raise SettingError(setting, repr(domain), ", ".join(_DOMAINS))
        rows = read_rows(locate(self.path, f"{domain}.dat"), _LAYOUT)
        return Ratings.from_rows(rows, _SCALE, duplicates=self.duplicates)
