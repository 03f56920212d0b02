"""Item-based recommendation in the target domain, with private neighbours if a budget is set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.components import Options, option
from dprec.crossdomain.recommender import SimilarityNoise, item_based, nearest_neighbors, select_neighbors
from dprec.crossdomain.similarity import (
    LOWEST,
    RatedItems,
    SimilarityKind,
    dense_similarities,
    largest_sensitivities,
)
from dprec.crossdomain.similarity import global_sensitivity as width_of
from dprec.privacy.calibration import LARGEST_CELL_EPSILON
from dprec.randomness import uniforms, words


@dataclass(frozen=True, kw_only=True)
class RecommendationOptions(Options):
    """How ratings are predicted from similar items."""

    neighbors: int = option("Neighbours of a prediction, among the items of the user's profile.", 10, ge=1)
    epsilon: float | None = option(
        "Privacy loss of one prediction: half for PNSA, half for PNCF; omit it if none is promised.",
        None,
        gt=0,
        le=LARGEST_CELL_EPSILON,
    )
    failure: float = option("Probability rho with which PNSA may stray from its bounds.", 0.1, gt=0, lt=1)
    sensitivity: Literal["local", "global"] = option(
        "How far one user can move a similarity: in these ratings (Theorem 2), or in any.",
        "local",
        published="local",
        source="guerraoui2017, Theorem 2",
    )
    shrinkage: float = option(
        "Added to the sum of similarities: pulls towards the mean.",
        0.0,
        published=0.0,
        source="guerraoui2017, section 4.4",
        ge=0,
    )
    noise_shrinkage: float = option(
        "Multiple of PNCF's noise scale that is added for every neighbour: 0.5 is what the noise alone "
        "is expected to add to the positive similarities.",
        0.0,
        published=0.0,
        source="guerraoui2017, section 4.4",
        ge=0,
    )
    prior_ratings: float = option(
        "Number of ratings at the overall mean added to each item's own, for means of noisy ratings.",
        0.0,
        published=0.0,
        source="guerraoui2017, section 4.4",
        ge=0,
    )
    positive_only: bool = option(
        "Whether neighbours of negative similarity are left out.",
        False,
        published=False,
        source="guerraoui2017, section 4.4",
    )


@dataclass(frozen=True, eq=False)
class ItemBasedRecommender:
    """Predictions from profiles of the target domain."""

    options: RecommendationOptions
    kind: SimilarityKind
    items: RatedItems
    """The target domain, without AlterEgos."""
    profiles: sp.csr_array
    """Each user's ratings minus the items' means; stored zeros are ratings too; shape (users, target items).
    """
    seed: int
    """Seed of the draws, each of which belongs to a user, an item and a neighbour."""

    @property
    def _most(self) -> int:
        """Most neighbours that any prediction can have."""
        return min(self.options.neighbors, self.items.n_items)

    @cached_property
    def sensitivities(self) -> NDArray[np.float64]:
        """SS of every item, shape (target items,)."""
        if self.options.sensitivity == "global":
            return np.full(self.items.n_items, width_of(self.kind))
        return largest_sensitivities(self.items)

    def predict(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Predict ratings of target items, shape (cells,); the item's mean for a user without a profile."""
        predictions: NDArray[np.float64] = self.items.means[items].copy()
        order = np.argsort(users, kind="stable")
        asked, starts = np.unique(users[order], return_index=True)
        for user, cells in zip(asked.tolist(), np.split(order, starts[1:]), strict=True):
            profile = slice(self.profiles.indptr[user], self.profiles.indptr[user + 1])
            rated, deviations = self.profiles.indices[profile], self.profiles.data[profile]
            if rated.size:
                predictions[cells] = self._for_user(user, items[cells], rated, deviations)
        return predictions

    def _for_user(
        self,
        user: int,
        wanted: NDArray[np.integer],
        rated: NDArray[np.integer],
        deviations: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        options, k = self.options, min(self.options.neighbors, rated.size)
        similarities = dense_similarities(self.items, wanted, rated)
        shrinkage = np.full(wanted.size, options.shrinkage)
        if options.epsilon is None:
            chosen = nearest_neighbors(similarities, k)
            weights = np.take_along_axis(similarities, chosen, axis=1)
        else:
            moved = self.sensitivities[wanted]
            chosen, weights = self.private_neighbors(user, wanted, similarities, moved)
            shrinkage += options.noise_shrinkage * k * moved / (options.epsilon / 2)
        if options.positive_only:
            weights = np.maximum(weights, 0.0)
        return item_based(self.items.means[wanted], weights, deviations[chosen], shrinkage)

    def private_neighbors(
        self,
        user: int,
        wanted: NDArray[np.integer],
        similarities: NDArray[np.float64],
        sensitivities: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all that a private prediction learns of similarities: neighbours, and how alike they are.

        Parameters
        ----------
        wanted : ndarray of int, shape (cells,)
            The target items that are predicted.
        similarities : ndarray of float64, shape (cells, candidates)
        sensitivities : ndarray of float64, shape (cells,)
            SS of each wanted item.

        Returns
        -------
        chosen : ndarray of int64, shape (cells, neighbours)
            Places among the candidates (PNSA).
        weights : ndarray of float64, shape (cells, neighbours)
            Their similarities with noise (PNCF).
        """
        options, k = self.options, min(self.options.neighbors, similarities.shape[1])
        assert options.epsilon is not None, "neighbours without a budget"
        draws, lowest = self._selection_draws(user, wanted), LOWEST[self.kind]
        chosen = select_neighbors(
            similarities, k, sensitivities, options.epsilon, options.failure, lowest, draws
        )
        near = np.take_along_axis(similarities, chosen, axis=1)
        noise, indices = SimilarityNoise.of(options.epsilon), self._indices(user, wanted)[:, :k]
        steps = noise.unit.noise(self.seed, "similarities", indices.ravel()).reshape(indices.shape)
        return chosen, noise.added(near, sensitivities, steps)

    def _indices(self, user: int, wanted: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the global indices of the draws of a user's predictions, shape (cells, neighbours)."""
        cells = user * self.items.n_items + wanted.astype(np.int64)
        return cells[:, None] * self._most + np.arange(self._most)

    def _selection_draws(self, user: int, wanted: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the draws of a user's neighbours, uniform on [0, 1), shape (cells, neighbours)."""
        indices = self._indices(user, wanted)
        start = int(indices.min())
        return uniforms(words(self.seed, "neighbours", start, int(indices.max()) - start + 1))[
            indices - start
        ]
