"""A device that learns nothing, and shows what an evaluation gives away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import AnyInts, Floats
from dprec.catalogue import Catalogue
from dprec.components import option
from dprec.predictions import cells_from_rows
from dprec.protocols.base import TOLD, Facts, Predicted
from dprec.protocols.silent import Alone, SilentProtocol
from dprec.randomness import generator_of, public_words
from dprec.ratings import Ratings


@dataclass(frozen=True, kw_only=True)
class CountedNegativesProtocol(SilentProtocol):
    """A device draws negatives as federated models do, and ranks items by how seldom it drew them.

    It sends and receives nothing, so no ranking can be worse informed, unless what it draws from leaves out
    what its user is tested on: then each round makes the tested item stand out more.
    """

    kind: Literal["counted-negatives"] = "counted-negatives"
    predicted: ClassVar[Predicted] = "lists"
    predicts_by: ClassVar[str] = "every device counts what it drew"
    rounds: int = option("How often a device draws.", 100, ge=1, le=1_000_000)
    negatives: int = option(
        "Items drawn for each of a user's, in each round, with replacement.", 4, ge=1, le=1000
    )
    spares_tested: bool = option(
        "Whether devices know the items that their users are tested on, and never draw these.", False
    )

    @property
    def facts(self) -> Facts:
        """Devices that know their own items, and maybe what they are tested on."""
        baseline = TOLD if self.spares_tested else None
        return self.facts_of(private=False, protects="none", learns="random-list", baseline=baseline)

    def alone(self, ratings: Ratings, catalogue: Catalogue | None, public_seed: int) -> Alone:
        """Return minus the numbers of draws, with equal ones in a random order.

        ``ratings``: at level 0, items that devices never draw though their users do not have them.
        """
        seed = public_seed % (1 << 64)

        def predict_rows(users: AnyInts, n_items: int) -> Floats:
            return np.stack([self._scores(ratings, int(user), seed) for user in users])

        return Alone(cells_from_rows(predict_rows, ratings.n_items), predict_rows)

    def _scores(self, ratings: Ratings, user: int, seed: int) -> Floats:
        """Return the scores of all items for a user, shape (items,)."""
        cells = slice(ratings.indptr[user], ratings.indptr[user + 1])
        drawable = np.ones(ratings.n_items, dtype=np.bool_)
        drawable[ratings.items[cells]] = False
        places = np.flatnonzero(drawable)
        random = generator_of(public_words(seed, np.full(2, user), np.arange(2)))
        scores: Floats = random.uniform(size=ratings.n_items)
        if places.size:
            draws = self.rounds * self.negatives * np.count_nonzero(ratings.levels[cells])
            scores[places] -= random.multinomial(draws, np.full(places.size, 1 / places.size))
        return scores
