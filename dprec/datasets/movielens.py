"""The MovieLens data sets of GroupLens (Harper and Konstan, "The MovieLens datasets", 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dprec.datasets.base import Source, locate
from dprec.datasets.delimited import DelimitedDataset, Layout, read_fold, read_triples
from dprec.errors import InputError
from dprec.ratings import Ratings, RatingScale

_WHOLE_STARS = RatingScale.evenly(1, 5, 1)
_HALF_STARS = RatingScale.evenly(0.5, 5, 0.5)
_COLONS = Layout(separator="::", width=4)
_CSV = Layout(header=True, user="userId", item="movieId", rating="rating")
_URL = "https://files.grouplens.org/datasets/movielens/"


@dataclass(frozen=True, kw_only=True)
class MovieLens100K(DelimitedDataset):
    """MovieLens 100K: 943 users, 1,682 films, 1 to 5 stars, with folds u1 to u5, ua and ub."""

    kind: Literal["movielens-100k"] = "movielens-100k"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-100k.zip", "u.data", md5="0e33842e24a9c977be4e0107933c0723"
    )
    file: ClassVar[str] = "u.data"
    layout: ClassVar[Layout] = Layout(separator="\t", width=4)
    scale: ClassVar[RatingScale] = _WHOLE_STARS
    folds: ClassVar[tuple[str, ...]] = ("u1", "u2", "u3", "u4", "u5", "ua", "ub")

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return the ratings of ``fold.base`` and ``fold.test``; see `Dataset.load_fold`."""
        if fold not in self.folds:
            raise InputError("fold", repr(fold), ", ".join(self.folds))
        folder = locate(self.path, self.file).parent
        train, test = (
            read_triples(locate(str(folder), f"{fold}.{part}"), self.layout) for part in ("base", "test")
        )
        return read_fold(train, test, self.scale, self.duplicates)


@dataclass(frozen=True, kw_only=True)
class MovieLens1M(DelimitedDataset):
    """MovieLens 1M: 1,000,209 ratings of 3,706 films by 6,040 users, 1 to 5 stars."""

    kind: Literal["movielens-1m"] = "movielens-1m"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-1m.zip", "ratings.dat", md5="c4d9eecfca2ab87c1945afe126590906"
    )
    file: ClassVar[str] = "ratings.dat"
    layout: ClassVar[Layout] = _COLONS
    scale: ClassVar[RatingScale] = _WHOLE_STARS


@dataclass(frozen=True, kw_only=True)
class MovieLens10M(DelimitedDataset):
    """MovieLens 10M: 10,000,054 ratings of 10,677 films by 69,878 users, half stars."""

    kind: Literal["movielens-10m"] = "movielens-10m"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-10m.zip", "ratings.dat", md5="ce571fd55effeba0271552578f2648bd"
    )
    file: ClassVar[str] = "ratings.dat"
    layout: ClassVar[Layout] = _COLONS
    scale: ClassVar[RatingScale] = _HALF_STARS


@dataclass(frozen=True, kw_only=True)
class MovieLens20M(DelimitedDataset):
    """MovieLens 20M: 20,000,263 ratings of 26,744 films by 138,493 users, half stars."""

    kind: Literal["movielens-20m"] = "movielens-20m"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-20m.zip", "ratings.csv", md5="cd245b17a1ae2cc31bb14903e1204af3"
    )
    file: ClassVar[str] = "ratings.csv"
    layout: ClassVar[Layout] = _CSV
    scale: ClassVar[RatingScale] = _HALF_STARS


@dataclass(frozen=True, kw_only=True)
class MovieLens25M(DelimitedDataset):
    """MovieLens 25M: 25,000,095 ratings of 59,047 films by 162,541 users, half stars."""

    kind: Literal["movielens-25m"] = "movielens-25m"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-25m.zip", "ratings.csv", md5="6b51fb2759a8657d3bfcbfc42b592ada"
    )
    file: ClassVar[str] = "ratings.csv"
    layout: ClassVar[Layout] = _CSV
    scale: ClassVar[RatingScale] = _HALF_STARS
