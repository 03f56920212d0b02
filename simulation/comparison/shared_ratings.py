"""The ratings that cells have in common: loaded once, and held once on every machine."""

from __future__ import annotations

from dataclasses import dataclass

from dprec.binarization import Binarization
from dprec.components import packed, reference_of, unpacked
from dprec.datasets import Dataset
from dprec.ratings import Ratings
from dprec.splits import Predefined, Split
from simulation.configuration.models import RunConfig
from simulation.execution import SideData, prepared_ratings

RatingsKey = tuple[Dataset, Split, Binarization | None, int]
"""Data set, split, binarization and seed."""


def ratings_key(config: RunConfig) -> RatingsKey:
    """Return what the ratings of a run are made from; runs with the same key have the same ratings."""
    seed = 0 if isinstance(config.split, Predefined) else config.seed
    return config.with_absolute_paths().dataset, config.split, config.binarization, seed


@dataclass(frozen=True, eq=False)
class SharedRatings:
    """What cells with the same `ratings_key` are given."""

    dataset: bytes
    """The data set, packed; it may be of somebody's own class."""
    train: Ratings
    test: Ratings
    side: SideData

    @classmethod
    def load(
        cls, dataset: Dataset, split: Split, binarization: Binarization | None, seed: int
    ) -> SharedRatings:
        """Load ratings, given their `ratings_key`.

        Raises
        ------
        InputError
            When they cannot be read.
        """
        train, test = prepared_ratings(dataset, split, binarization, seed)
        return cls(packed(dataset, "dataset"), train, test, SideData.of(dataset, train))

    def joined(self, config: RunConfig) -> RunConfig:
        """Return a configuration with the data set that `without_dataset` took from it."""
        return config.model_copy(update={"dataset": unpacked(self.dataset, "dataset")})


def without_dataset(config: RunConfig) -> RunConfig:
    """Return a configuration without its data set, which may hold ratings; see `SharedRatings.joined`."""
    return config.model_copy(update={"dataset": None})


def packed_config(config: RunConfig) -> bytes:
    """Return a configuration without its data set as bytes.

    Raises
    ------
    InputError
        When a component of somebody's own cannot travel.
    """
    own = [reference_of(component) for component in config.user_defined_classes()]
    return packed(without_dataset(config), " and ".join(own) or config.name)
