"""Item-based recommendation in the target domain, with private neighbors if a budget is set (PNSA, PNCF)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from dprec.accounting import LARGEST_CELL_EPSILON
from dprec.arrays import AnyInts, Floats, Ints
from dprec.components import Options, option
from dprec.crossdomain import similarity
from dprec.crossdomain.similarity import global_sensitivity as width_of
from dprec.randomness import NoiseGrid, uniforms, words

if TYPE_CHECKING:
    import scipy.sparse as sp


def selection_width(k: int, candidates: int, sensitivity: float, epsilon: float, failure: float) -> float:
    """Return the width w of Theorems 3 and 4, before it is limited to the range of similarities.

    w = (4 k SS / eps') ln(k (|v| - k) / rho). With probability at least 1 - rho, every selected neighbour has
    a similarity above Sim_k - w (Theorem 3), and every item with a similarity above Sim_k + w is selected
    (Theorem 4), where Sim_k is that of the k-th nearest (Guerraoui et al. [guerraoui2017]).
    """
    if candidates <= k:
        return 0.0
    return float(4 * k * sensitivity / epsilon * np.log(k * (candidates - k) / failure))


_TINY = 1e-300


def truncated_similarities(
    similarities: Floats, k: int, sensitivity: Floats, epsilon: float, failure: float, lowest: float
) -> Floats:
    """Return Sim^ = max(Sim, Sim_k - w), shape (rows, candidates), for w = min(Sim_k - lowest, width).

    So truncation never leaves the range of the similarity. The publication prints min(Sim_k, ...), which is
    the case of 0, for cosine; adjusted cosine goes down to -1. If this limit is the one that binds, Theorem 3
    holds trivially and Theorem 4 is not implied.
    """
    candidates = similarities.shape[1]
    nearest = -np.partition(-similarities, k - 1, axis=1)[:, k - 1]
    widths = np.array(
        [selection_width(k, candidates, value, epsilon, failure) for value in sensitivity.tolist()]
    )
    return np.maximum(similarities, (nearest - np.minimum(nearest - lowest, widths))[:, None])


def select_neighbors(
    similarities: Floats,
    k: int,
    sensitivity: Floats,
    epsilon: float,
    failure: float,
    lowest: float,
    draws: Floats,
) -> Ints:
    """Draw k neighbours per row without replacement (PNSA), shape (rows, min(k, candidates)).

    Each draw takes a remaining candidate with probability proportional to exp(eps' Sim^ / (4 k SS)): eps' /
    (2 k) for a draw, eps' / 2 for all k (Guerraoui et al. [guerraoui2017], section 4.4 and Theorem 3). If
    there are no more candidates than k, all are taken and nothing is drawn; a sensitivity of 0 selects the
    nearest outright.
    """
    rows, candidates = similarities.shape
    if candidates <= k:
        return np.tile(np.arange(candidates), (rows, 1))
    usable = truncated_similarities(similarities, k, sensitivity, epsilon, failure, lowest)
    # A row that no user can move is not truncated: a width of 0 would tie all others with the k-th.
    usable = np.where(sensitivity[:, None] > 0, usable, similarities)
    coefficients = epsilon / (4 * k * np.maximum(sensitivity, _TINY))
    exponents = usable * coefficients[:, None]
    chosen = np.empty((rows, k), dtype=np.int64)
    everyone = np.arange(rows)
    for place in range(k):
        # Relative to the largest one left, so that no weight that matters underflows.
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        sums = np.cumsum(weights, axis=1)
        passed = (sums <= (draws[:, place] * sums[:, -1])[:, None]).sum(axis=1)
        taken = np.minimum(passed, candidates - 1)
        # Rounding at the very end may point at a candidate already taken; the likeliest left replaces it.
        gone = np.isneginf(exponents[everyone, taken])
        taken[gone] = weights[gone].argmax(axis=1)
        chosen[:, place] = taken
        exponents[everyone, taken] = -np.inf
    return chosen


@dataclass(frozen=True)
class SimilarityNoise:
    """Noise of scale SS / (eps' / 2) on every similarity of a prediction (PNCF), in integers.

    Guerraoui et al. [guerraoui2017], section 4.4. The scale protects one similarity: for a user who moves all
    k similarities of a prediction, the loss can be k times as large.
    """

    unit: NoiseGrid
    """The grid of an item with a sensitivity of 1; the steps of others are proportional to theirs."""

    @classmethod
    def of(cls, epsilon: float) -> Self:
        """Return the noise at eps', for selection and prediction together."""
        return cls(NoiseGrid.of(1.0, epsilon / 2, 1))

    def added(self, similarities: Floats, sensitivity: Floats, noise: Ints) -> Floats:
        """Round similarities to their items' grids, but those no user can move, and add noise."""
        # Rounded upwards, so that SS is never more steps than the noise covers; the least sensitivity keeps a
        # similarity a number of steps below 2**52.
        steps = np.nextafter(np.maximum(sensitivity, 2.0**-16) * self.unit.step, np.inf)[:, None]
        rounded = np.rint(similarities / steps).astype(np.int64) + noise
        return np.where(sensitivity[:, None] > 0, rounded * steps, similarities)


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
    kind: similarity.SimilarityKind
    items: similarity.RatedItems
    """The target domain, without AlterEgos."""
    profiles: sp.csr_array
    """Each user's ratings minus the items' means; stored zeros are ratings too; shape (users, target items).
    """
    seed: int
    """Seed of the draws, each of which belongs to a user, an item and a neighbour."""

    @cached_property
    def sensitivities(self) -> Floats:
        """SS of every item, shape (target items,)."""
        if self.options.sensitivity == "global":
            return np.full(self.items.n_items, width_of(self.kind))
        return similarity.largest_sensitivities(self.items)

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict ratings of target items, shape (cells,); the item's mean for a user without a profile."""
        predictions: Floats = self.items.means[items].copy()
        order = np.argsort(users, kind="stable")
        distinct_users, starts = np.unique(users[order], return_index=True)
        for user, cells in zip(distinct_users.tolist(), np.split(order, starts[1:]), strict=True):
            profile = slice(self.profiles.indptr[user], self.profiles.indptr[user + 1])
            rated, deviations = self.profiles.indices[profile], self.profiles.data[profile]
            if rated.size:
                predictions[cells] = self._for_user(user, items[cells], rated, deviations)
        return predictions

    def _for_user(self, user: int, wanted: AnyInts, rated: AnyInts, deviations: Floats) -> Floats:
        """Predict ratings by r_bar_i + sum_j s_j (r_j - r_bar_j) / (sum_j |s_j| + shrinkage).

        Just r_bar_i if the denominator is 0 (Guerraoui et al. [guerraoui2017], section 4.4, without
        shrinkage).
        """
        options, k = self.options, min(self.options.neighbors, rated.size)
        similarities = similarity.dense_similarities(self.items, wanted, rated)
        shrinkage = np.full(wanted.size, options.shrinkage)
        if options.epsilon is None:
            chosen = np.argsort(-similarities, axis=1, kind="stable")[:, :k]  # ties to the earlier
            weights = np.take_along_axis(similarities, chosen, axis=1)
        else:
            moved = self.sensitivities[wanted]
            chosen, weights = self.private_neighbors(user, wanted, similarities, moved)
            shrinkage += options.noise_shrinkage * k * moved / (options.epsilon / 2)
        if options.positive_only:
            weights = np.maximum(weights, 0.0)
        totals = np.abs(weights).sum(axis=1) + shrinkage
        moves = (weights * deviations[chosen]).sum(axis=1)
        moves = np.divide(moves, totals, out=np.zeros_like(moves), where=totals > 0)
        return self.items.means[wanted] + moves

    def private_neighbors(
        self, user: int, wanted: AnyInts, similarities: Floats, sensitivities: Floats
    ) -> tuple[Ints, Floats]:
        """Return all that a private prediction learns of similarities: neighbours, and how alike they are.

        Both of shape (cells, neighbours): places among the candidates (PNSA), and noisy similarities (PNCF).
        """
        options, k = self.options, min(self.options.neighbors, similarities.shape[1])
        assert options.epsilon is not None, "neighbours without a budget"
        # Of the draws of all neighbours that any prediction can have, shape (cells, neighbours).
        max_neighbors, lowest = min(options.neighbors, self.items.n_items), similarity.LOWEST[self.kind]
        cells = user * self.items.n_items + wanted.astype(np.int64)
        indices = cells[:, None] * max_neighbors + np.arange(max_neighbors)
        start = int(indices.min())
        random_words = words(self.seed, "neighbours", start, int(indices.max()) - start + 1)
        draws = uniforms(random_words)[indices - start]
        chosen = select_neighbors(
            similarities, k, sensitivities, options.epsilon, options.failure, lowest, draws
        )
        chosen_similarities = np.take_along_axis(similarities, chosen, axis=1)
        noise, indices = SimilarityNoise.of(options.epsilon), indices[:, :k]
        steps = noise.unit.noise(self.seed, "similarities", indices.ravel()).reshape(indices.shape)
        return chosen, noise.added(chosen_similarities, sensitivities, steps)
