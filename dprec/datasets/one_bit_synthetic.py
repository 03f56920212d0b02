"""Signs drawn from a known hidden matrix, so that its recovery can be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dprec.binarization import binary_scale
from dprec.completion import LinkKind, link_of
from dprec.components import option
from dprec.datasets.base import Dataset
from dprec.errors import SettingError
from dprec.randomness import generator
from dprec.ratings import Ratings, RatingScale

_MOST_CELLS = 50_000_000


@dataclass(frozen=True, kw_only=True)
class OneBitSynthetic(Dataset):
    """Signs of a noisy low-rank matrix, with a rating in every cell (Li et al. [li2021], section 5.1)."""

    kind: Literal["one-bit-synthetic"] = "one-bit-synthetic"
    users: int = option("Number of users.", 100, ge=1)
    items: int = option("Number of items.", 100, ge=1)
    rank: int = option("Rank of the hidden matrix.", 1, ge=1)
    alpha: float = option("Its largest entry, in absolute value.", 1.0, gt=0)
    link: LinkKind = option("How an entry makes a +1 likely: logistic, or gaussian.", "logistic")
    sigma: float = option("Standard deviation of the Gaussian link's noise.", 1.0, gt=0)
    seed: int = option("Seed of the data; a run's own seed does not change them.", 0, ge=0)

    def known_scale(self) -> RatingScale:
        """Return the two signs."""
        return binary_scale()

    def load(self) -> Ratings:
        """Return the sign of every cell; a split decides which of them are observed.

        Raises
        ------
        SettingError
            When there are too many cells.
        """
        matrix = self.hidden()
        chances = link_of(self.link, self.sigma).probability(matrix)
        plus = generator(self.seed, "one-bit signs").random(matrix.shape) < chances
        cells = np.arange(self.users + 1, dtype=np.int64) * self.items
        return Ratings(
            indptr=cells,
            items=np.tile(np.arange(self.items, dtype=np.int32), self.users),
            levels=plus.ravel().astype(np.uint8) + np.uint8(1),
            scale=binary_scale(),
            user_ids=np.arange(1, self.users + 1),
            item_ids=np.arange(1, self.items + 1),
        )

    def hidden(self) -> NDArray[np.float64]:
        """Return the hidden matrix M, shape (users, items).

        M = M1 M2^T, M1 and M2 with entries uniform on [-1/2, 1/2], scaled to a largest entry of alpha in
        absolute value.
        """
        if self.users * self.items > _MOST_CELLS:
            raise SettingError("users", f"{self.users} x {self.items} items", f"at most {_MOST_CELLS} cells")
        random = generator(self.seed, "one-bit matrix")
        left = random.random((self.users, self.rank)) - 0.5
        right = random.random((self.items, self.rank)) - 0.5
        matrix = left @ right.T
        scaled: NDArray[np.float64] = self.alpha * matrix / np.abs(matrix).max()
        return scaled
