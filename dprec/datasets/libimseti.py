"""Ratings of the dating site libimseti.cz (Brozovsky and Petricek [brozovsky2007])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dprec.datasets.base import Layout, Source
from dprec.datasets.delimited import DelimitedDataset
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class Libimseti(DelimitedDataset):
    """Libimseti: 17,359,346 ratings of 168,791 profiles by 135,359 users, 1 to 10."""

    kind: Literal["libimseti"] = "libimseti"
    distribution: ClassVar[Source | None] = Source(
        "http://www.occamslab.com/petricek/data/libimseti-complete.zip", "ratings.dat"
    )
    file: ClassVar[str] = "ratings.dat"
    layout: ClassVar[Layout] = Layout(width=3)
    scale: ClassVar[RatingScale] = RatingScale.evenly(1, 10, 1)
