"""Data sets: ways to load a matrix of ratings."""

from dprec.components import Registry
from dprec.datasets.base import GIVEN, VALIDATION, Dataset, Source, without_times
from dprec.datasets.columns import RatingColumns
from dprec.datasets.held import HeldRatings, InMemory, holds_profiles, ratings_from
from dprec.datasets.published import *
from dprec.datasets.selection import copied, selected
from dprec.datasets.synthetic import OneBitSynthetic, Synthetic, SyntheticDomains
from dprec.datasets.table import DelimitedDomains, DelimitedTable, holds_pairs

DATASETS: Registry[Dataset] = Registry(
    "dataset",
    Dataset,
    [
        MovieLens100K,
        MovieLens1M,
        MovieLens10M,
        MovieLens20M,
        MovieLens25M,
        Jester,
        Libimseti,
        RestaurantConsumer,
        Douban,
        MsWeb,
        LightGCN,
        DelimitedTable,
        Synthetic,
        OneBitSynthetic,
        MovieLensGenres,
        DelimitedDomains,
        SyntheticDomains,
        InMemory,
    ],
)

__all__ = [
    "DATASETS",
    "GIVEN",
    "VALIDATION",
    "Dataset",
    "DelimitedDomains",
    "DelimitedTable",
    "Douban",
    "HeldRatings",
    "InMemory",
    "Jester",
    "Libimseti",
    "LightGCN",
    "MovieLens1M",
    "MovieLens10M",
    "MovieLens20M",
    "MovieLens25M",
    "MovieLens100K",
    "MovieLensGenres",
    "MsWeb",
    "OneBitSynthetic",
    "RatingColumns",
    "RestaurantConsumer",
    "Source",
    "Synthetic",
    "SyntheticDomains",
    "copied",
    "holds_pairs",
    "holds_profiles",
    "ratings_from",
    "selected",
    "without_times",
]
