"""Singular value decomposition of the imputed rating matrix.

The textbook decoder (Sarwar et al. [sarwar2000]), with which Neera et al. [neera2023] compare in
Figs. 3 and 4: unrated cells are filled with the mean of their item, users' means are subtracted, and the
resulting matrix is cut to its leading singular values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.completion.base import Completion
from dprec.completion.factors import BiasedFactors
from dprec.completion.spectral import SparsePlusLowRank
from dprec.completion.variational import check_rank, naming_iteration
from dprec.components import option
from dprec.observations import Observations
from dprec.progress import Progress, silent


@dataclass(frozen=True, kw_only=True)
class TruncatedSvd(Completion):
    """Truncated singular value decomposition of the imputed matrix (Sarwar et al. [sarwar2000])."""

    kind: Literal["svd"] = "svd"
    papers: ClassVar[tuple[str, ...]] = ("neera2023", "sarwar2000")
    rank: int = option("Number of singular values kept.", 5, ge=1)

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a rank that is too large for the catalogue."""
        check_rank(self.rank, shape)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> BiasedFactors:
        """Complete the matrix; see `Completion.fit`.

        The mean of a user or an item without ratings is the overall mean. The imputed matrix is never
        formed: it is the sparse matrix of the ratings' deviations from their items' means, plus a matrix
        of rank 2.
        """
        users, items = observations.shape
        user_means = _means(observations.users, observations, users)
        item_means = _means(observations.items, observations, items)
        by_user = observations.by_user
        deviations = (observations.values - item_means[observations.items])[by_user.data]
        # Deviations from the overall mean on both sides keep the decomposed matrix small.
        imputed = SparsePlusLowRank(
            sp.csr_array((deviations, by_user.indices, by_user.indptr), shape=by_user.shape),
            np.column_stack([np.ones(users), observations.mean - user_means]),
            np.column_stack([item_means - observations.mean, np.ones(items)]),
        )
        with naming_iteration("singular value decomposition", 1):
            leading = imputed.leading(self.rank, seed)
        progress("completing", 1, 1)
        return BiasedFactors(
            observations.mean,
            user_means - observations.mean,
            np.zeros(items),
            leading.left * leading.values,
            leading.right,
            diagnostics={"singular_values": leading.values.tolist()},
        )


def _means(entities: NDArray[np.int32], observations: Observations, count: int) -> NDArray[np.float64]:
    """Return the mean value of every user or item; the overall mean for one without values."""
    seen = np.bincount(entities, minlength=count)
    sums = np.bincount(entities, weights=observations.values, minlength=count)
    return np.where(seen > 0, sums / np.maximum(seen, 1), observations.mean)
