"""The restaurant and consumer data of UCI (Vargas-Govea et al. [vargas2011])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dprec.datasets.base import Layout, Source
from dprec.datasets.delimited import DelimitedDataset
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class RestaurantConsumer(DelimitedDataset):
    """Restaurant & consumer: 1,161 ratings of 130 restaurants by 138 guests, 0 to 2."""

    kind: Literal["rc"] = "rc"
    distribution: ClassVar[Source | None] = Source(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/00232/RCdata.zip", "rating_final.csv"
    )
    file: ClassVar[str] = "rating_final.csv"
    layout: ClassVar[Layout] = Layout(header=True, user="userID", item="placeID", rating="rating")
    scale: ClassVar[RatingScale] = RatingScale.evenly(0, 2, 1)
