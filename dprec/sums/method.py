"""What is learned from sums, in rounds: what a device contributes, and what the server makes of a release.

In every round devices are sent what is known so far, and contribute; the server learns from the noisy sum.
All that others see of a user are those sums. What a device predicts from its own profile, it alone sees.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Uint64s
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import Options
from dprec.ratings import RatingScale
from dprec.sums.contributions import Contributions, Layout

LEAST_SHARE = 1e-3
"""Of what all rounds spend that one of them, or a part of it, can spend."""


class DeviceHalf(ABC):
    """What devices do with what the server sends: contribute to the next release, and predict."""

    @abstractmethod
    def layout(self, round_index: int) -> Layout:
        """Return what is summed in a round."""

    @abstractmethod
    def contributions(
        self, profiles: Profiles, layout: Any, round_index: int, random_words: Uint64s
    ) -> Contributions[Any]:
        """Return what the users of a partition contribute to a round, whatever they hold: at most 1 long.

        Who holds nothing contributes zeros, which is what epsilon compares a profile with.

        Parameters
        ----------
        layout : Layout
            Of the round.
        random_words : ndarray of uint64, shape (cells,)
            One for each cell of the profiles.
        """

    def about(self, items: AnyInts, layout: Any) -> Bools:
        """Return which rows of a sum say something about some items, shape (rows,); all by default."""
        return np.ones(layout.n_rows, dtype=np.bool_)

    @abstractmethod
    def predictions(self, profiles: Profiles) -> Floats:
        """Return what devices predict, or by what they rank, of every item, shape (users, items)."""


class Learner(ABC):
    """What the server knows, from releases alone."""

    @abstractmethod
    def layout(self, round_index: int) -> Layout:
        """Return what is summed in a round."""

    @abstractmethod
    def learn(self, round_index: int, released: Floats, layout: Any, deviation: float, users: int) -> None:
        """Learn from the sums with noise of a round.

        Parameters
        ----------
        released : ndarray of float64, shape (rows, width)
            With noise of the deviation ``deviation * layout.scales``.
        layout : Layout
            Of the round.
        deviation : float
            As `Aggregation.noise_in` returns it.
        users : int
            Whose contributions are in the sums, at least 1.
        """

    @abstractmethod
    def model_bytes(self) -> bytes:
        """Return what devices are sent before the next round."""

    @abstractmethod
    def learned_bytes(self) -> bytes:
        """Return what devices are sent at the end, to predict with."""


@dataclass(frozen=True)
class Releases:
    """What is public of all releases of a run."""

    n_users: int
    n_items: int
    scale: RatingScale


@dataclass(frozen=True, kw_only=True)
class SummedMethod(Options):
    """What is learned from sums; its settings are public, and installed on the devices."""

    kind: str = ""

    @property
    @abstractmethod
    def shares(self) -> tuple[float, ...]:
        """Share of the squared distance of means that each round spends; their sum is 1."""

    @property
    def farthest(self) -> float:
        """How far apart the contributions of two profiles can be; of one profile and none, 1."""
        return 2.0

    @property
    def rounds(self) -> int:
        """Number of rounds, each of them one release."""
        return len(self.shares)

    def most_ratings(self, ratings: int) -> int:
        """Return how many of so many ratings a user contributes in a round, at most."""
        return ratings

    def check_bounded(self) -> None:
        """Raise SettingError for settings with which a contribution can be longer than 1."""

    @abstractmethod
    def device(self, received: bytes, n_items: int, scale: RatingScale) -> DeviceHalf:
        """Return what devices do with what they received; raises ValueError for what no server sends."""

    @abstractmethod
    def largest_layouts(self, releases: Releases) -> tuple[Layout, ...]:
        """Return the largest layout of each round, whatever the releases are."""

    @abstractmethod
    def learner(self, releases: Releases, catalogue: Catalogue | None, seed: int) -> Learner:
        """Return the server's half before the first round.

        Parameters
        ----------
        catalogue : Catalogue or None
            Public data about the items.
        seed : int
            Of what the server draws.
        """

    @abstractmethod
    def probes(self, seed: int) -> Iterator[tuple[Layout, Contributions[Any]]]:
        """Yield layouts and contributions, as long as they get, of whom an audit sees how long they are."""
