"""Ratings with less noise where they are extreme, with a promise that does not hold.

DPSR (Ali [ali2025]) adds Laplace noise of scale (u - l) / epsilon(r) to a rating r in [l, u]. Here epsilon(r)
is epsilon (1 + alpha w), and w = |r - m| / ((u - l) / 2), at most 1, how far r is from the mean m of all
ratings. Values are then moved towards what other items of the user say, and completed to a low-rank matrix.

The scale of the noise tells what it hides: densities differ by the ratio of the scales besides, and far from
the scale of the ratings by any ratio. Clamped to it, they differ by a finite one, which is above epsilon: for
stars of mean 3.53, a claimed 1 is 1.30, and a claimed 0.1 is 0.275. The loss of the matrix is charged, and
what is claimed stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from dprec.accounting import Guarantee, PrivacyAccountant, PrivacyBudget
from dprec.arrays import Bools, Floats, Ints
from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms import Mechanism
from dprec.mechanisms.laplace import cell_probabilities
from dprec.observations import Observations
from dprec.progress import Progress
from dprec.protocols.base import Facts, Public
from dprec.protocols.one_shot import Learned, OneShotProtocol
from dprec.protocols.sharing import check_unit
from dprec.ratings import RatingScale
from dprec.reports import CellFamily, ReportFamily

_STAGE = "ali2025, stage 1, from a secondary source"


@dataclass(frozen=True, eq=False)
class ClaimedFamily(CellFamily):
    """A symbol for each rated item, from a channel that may lose more than its budget."""

    def _within(self, epsilon: float) -> Channel | None:
        return self._at(epsilon)


@dataclass(frozen=True, kw_only=True)
class InformationLaplace(Mechanism):
    """Laplace noise of a scale that depends on the rating, clamped (Ali [ali2025], stage 1)."""

    kind: ClassVar[str] = "information-laplace"  # type: ignore[misc]
    papers: ClassVar[tuple[str, ...]] = ("ali2025",)
    report_family: ClassVar[type[ReportFamily]] = ClaimedFamily
    reduction: float = option(
        "alpha: what information adds to epsilon.", 0.3, ge=0, le=1, published=0.3, source=_STAGE
    )
    mean: float | None = option(
        "Of all ratings, taken for public; by default the middle of the scale.", None, ge=-1e6, le=1e6
    )
    symbols: int = option("Cells of the grid on which the noisy rating is sent.", 256, ge=3, le=65536)

    def epsilons(self, scale: RatingScale, epsilon: float) -> Floats:
        """Return epsilon(r) of every level, shape (levels,)."""
        half = (scale.high - scale.low) / 2
        mean = scale.low + half if self.mean is None else self.mean
        return epsilon * (1 + self.reduction * np.minimum(np.abs(scale.values - mean) / half, 1.0))

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of r + Laplace(0, (u - l) / epsilon(r)) clamped to [l, u].

        The cells are those of `ClampedLaplace`. The channel loses more than epsilon.
        """
        edges = np.linspace(scale.low, scale.high, self.symbols - 1)
        scales = (scale.high - scale.low) / self.epsilons(scale, epsilon)
        pairs = zip(scale.values, scales, strict=True)
        rows = np.vstack([cell_probabilities(edges, [rating], b) for rating, b in pairs])
        loss = float(np.log(rows.max(axis=0) / rows.min(axis=0)).max())
        values = np.concatenate([[scale.low], (edges[1:] + edges[:-1]) / 2, [scale.high]])
        return Channel.from_probabilities(rows, scale.values, values, loss)


@dataclass(frozen=True, kw_only=True)
class SparseReconstructionProtocol(OneShotProtocol):
    """Devices send ratings with less noise where they are extreme; the server denoises and completes them."""

    kind: Literal["dpsr"] = "dpsr"  # type: ignore[assignment]
    papers: ClassVar[tuple[str, ...]] = ("ali2025",)
    undeployable: ClassVar[str] = "whose promise does not hold"
    mechanism: InformationLaplace = option("What the device applies to each rating.", InformationLaplace())
    privacy: PrivacyBudget = option("What is claimed of one rating.")
    neighbors: int = option("Similar items by which values are denoised.", 20, reader="server", ge=1)
    share: float = option("What they count for in a denoised value.", 0.5, reader="server", ge=0, le=1)

    @property
    def facts(self) -> Facts:
        """What mechanism and completion say, after denoising."""
        return replace(super().facts, learns=f"denoised-{self.completion.kind}")

    def model_bytes(self, public: Public) -> float:
        """Return that of choosing similar items, of what they say of all cells, or of the completion."""
        pairs, cells = public.n_items**2, public.n_users * public.n_items
        return max(8.0 * max(4 * pairs, 2 * pairs + cells), super().model_bytes(public))

    def check(self, train: Any) -> None:
        """Refuse what nothing is claimed of as well; see `OneShotProtocol.check`."""
        check_unit(self.privacy, "rating", "the paper claims nothing of a user")
        super().check(train)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Claim epsilon of one rating, and say why it does not hold."""
        reason = (
            "the scale of a rating's noise depends on the rating, and tells it; charged is what it loses."
        )
        return replace(super().guarantee(shape), status="claimed", reason=reason)

    def accountant(
        self, family: ReportFamily, counts: Ints, sent: Bools, loss_inputs: Ints | None = None
    ) -> PrivacyAccountant:
        """Return the account of what is lost, with what is claimed beside it."""
        claimed = PrivacyAccountant(rated=counts > 0)
        claimed.step(1, sent, self.privacy.epsilon, self.privacy.epsilon * counts.astype(np.float64))
        return replace(super().accountant(family, counts, sent, loss_inputs), claimed=claimed)

    def learn(
        self,
        observed: Observations,
        linked: Observations,
        seed: int,
        progress: Progress,
        numbers: Ints | None = None,
    ) -> Learned:
        """Complete the matrix from denoised values; see `OneShotProtocol.learn`."""
        values = denoised(observed, self.neighbors, self.share)
        return super().learn(replace(observed, read=lambda: [values]), linked, seed, progress, numbers)


def denoised(observed: Observations, neighbors: int, share: float) -> Floats:
    """Return the values of cells, with a share of what the user's similar items say, shape (cells,).

    Items are similar by the cosine of what they deviate from their means, among those who rated both.
    """
    import scipy.sparse as sp

    values, items, (_, n_items) = observed.values, observed.items, observed.shape
    counts = np.maximum(np.bincount(items, minlength=n_items), 1)
    means = np.bincount(items, values, minlength=n_items) / counts
    deviations = sp.csr_array((values - means[items], items, observed.indptr), shape=observed.shape)
    products = (deviations.T @ deviations).toarray()
    lengths = np.sqrt(np.maximum(np.diag(products), np.finfo(float).tiny))
    similarities = products / np.outer(lengths, lengths)
    np.fill_diagonal(similarities, 0.0)
    n_neighbors = min(neighbors, n_items)
    least = np.partition(np.abs(similarities), n_items - n_neighbors, axis=0)[n_items - n_neighbors]
    nearest = sp.csr_array(np.where(np.abs(similarities) >= least, similarities, 0.0))
    rated = sp.csr_array((np.ones(items.size), items, observed.indptr), shape=observed.shape)
    users = observed.users
    weighted_sums = (deviations @ nearest).toarray()[users, items]
    weights = (rated @ abs(nearest)).toarray()[users, items]
    similar_means = np.divide(weighted_sums, weights, out=np.zeros_like(weighted_sums), where=weights > 0)
    others = means[items] + similar_means
    return np.where(weights > 0, (1 - share) * values + share * others, values)
