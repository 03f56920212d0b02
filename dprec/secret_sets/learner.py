"""What the server learns from the sums: popularity, item biases, and embeddings from who rated an item.

A user adds its own profile in public features to each item that it rated, or its residuals by feature times
the residual of the item, always with the item itself left out. So the sum of item i is its count times the
mean direction of its raters, g_i, with noise of the sum and of sampling. Of the covariance of the g_i those
directions are kept that stand above what noise alone would have; along each, g_i is shrunk as Wiener's
filter does.
"""

from dataclasses import dataclass, field

import numpy as np

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.ordinal import expected_rating
from dprec.randomness import generator
from dprec.secret_sets.biases import PRIOR_SPREAD, Biases, FeatureSum, ResidualSum, learned_biases
from dprec.secret_sets.contributions import Part, ProfileLayout
from dprec.secret_sets.popularity import Counts, standardised
from dprec.sums import Learner, Releases
from dprec.wire import ItemTable

_MOST = 20
"""Dimensions, at most: as those of item embeddings that are learned from visible sets."""

_MARGIN = 1.1
"""How far beyond its expected edge noise may reach."""


def embeddings_of(sums: Floats, deviation: float, counts: Floats, users: int) -> Floats:
    """Return item embeddings, with their deviations over ratings by strength; shape (items, dimensions).

    Parameters
    ----------
    sums : ndarray, shape (items, features)
        With noise.
    deviation : float
        Of the noise of each number.
    counts : ndarray, shape (items,)
        How often items are rated, in the weights of the sums.
    users : int
        Who contributed.
    """
    n_items, width = sums.shape
    total = max(float(counts.sum()), np.finfo(float).tiny)
    shares = counts / total
    # What all items have in common says nothing about who rates what.
    apart = sums - counts[:, None] * (sums.sum(axis=0) / total)
    noise = deviation**2 + counts * (users / total / width)
    weights = counts / np.maximum(noise, np.finfo(float).tiny)
    weighted = apart * weights[:, None]
    scale = max(float(((counts * weights) ** 2).sum()), np.finfo(float).tiny)
    spread = weights**2 * noise
    covariance = (weighted.T @ weighted - np.eye(width) * spread.sum()) / scale
    # Of noise alone, so weighted, no eigenvalue is expected beyond (Marchenko and Pastur).
    squares = float((spread**2).sum())
    edge = 2 * np.sqrt(width * squares) + width * squares / max(float(spread.sum()), np.finfo(float).tiny)
    edge *= _MARGIN / scale
    values, vectors = np.linalg.eigh(covariance)
    kept = np.flatnonzero(values > edge)[::-1][:_MOST]
    if not kept.size:
        return np.zeros((n_items, 0))
    strengths, along = values[kept], apart @ vectors[:, kept]
    told = counts[:, None] ** 2 * strengths
    gains = told / (told + noise[:, None])
    means = gains * along / np.maximum(counts, np.finfo(float).tiny)[:, None]
    spreads = np.sqrt(np.maximum(shares @ means**2, np.finfo(float).tiny))
    # Deviations as those of dprec.completion: the root of the singular values.
    by_strength = (strengths / strengths[0]) ** 0.25 * np.sqrt(shares @ gains)
    return means / spreads * by_strength


_LEAST_DEVIATION = 1e-3
"""Where there is hardly any noise, what a count is known up to."""

_LATENT_VARIANCE = 0.3
"""Of a rating's latent rating about what is known of its item."""

_SCALES: dict[Part, float] = {"profiles": 1.0, "tastes": 0.5}
"""Deviation of the strongest embedding from each sum."""

_PUBLIC_DEVIATION = 0.15
"""Deviation of what is public of an item among the embeddings."""

_POPULARITY, _ITS_SQUARE, _OTHERS = 0.3, 0.08, 0.08
"""Prior variances of the coefficients of an item bias."""

_FARTHEST = 5.0
"""What a standardised number is cut at before it is squared."""

_LEAST_SHARE = 0.1
"""A category of fewer or more than all but this share of ratings is scaled as one of this share."""


@dataclass(eq=False)
class TableLearner(Learner):
    """What is known of the items after each release."""

    releases: Releases
    catalogue: Catalogue | None
    cuts: Floats
    most_features: int
    parts: tuple[tuple[tuple[Part, float], ...], ...]
    """The parts of each round, and what each spends."""
    seed: int
    """Of what the server draws."""
    _residuals: list[ResidualSum] = field(init=False, default_factory=list)
    _learned: Biases | None = field(init=False, default=None)
    _embeddings: Floats = field(init=False)
    _sent: ItemTable = field(init=False)
    """As devices decode it."""

    def __post_init__(self) -> None:
        n_items = self.releases.n_items
        self._embeddings = np.zeros((n_items, 0))
        self._sent = ItemTable.of_biases(self.cuts, np.zeros(n_items), np.zeros(n_items))

    def layout(self, round_index: int) -> ProfileLayout:
        """Return what is summed in a round; see `Learner.layout`."""
        return ProfileLayout.of_parts(self.parts[round_index - 1], self._sent, self.releases.scale)

    def learn(
        self, round_index: int, released: Floats, layout: ProfileLayout, deviation: float, users: int
    ) -> None:
        """Learn from a release; see `Learner.learn`."""
        noise = max(deviation, _LEAST_DEVIATION)
        sums = {part: (own, noise * grown) for part, own, grown in layout.parts_of(released)}
        counts = self._counts
        if round_index == 1:
            n_items = self.releases.n_items
            public = _public_columns(self.catalogue, np.full(n_items, 1 / n_items))
            counts = Counts.of(*sums["counts"], public, users)
        if counts is None:
            return  # the first release failed, so that nothing is known to learn with
        if "residuals" in sums or "features" in sums or self._learned is None:
            # The biases, of all residuals so far.
            known = layout.table.means / self._slope
            if "residuals" in sums:
                self._residuals.append(ResidualSum(*sums["residuals"], known))
            of_features = None
            if "features" in sums and layout.features.shape[1]:
                of_features = FeatureSum(*sums["features"], layout.features, known)
            self._learned = learned_biases(counts, self._residuals, of_features, *self._design(counts), users)
        if layout.features.shape[1]:
            found = self._embedded(sums, self._learned.counts.means, users)
            self._embeddings = found if found.shape[1] else self._embeddings
        self._sent = self._table_for_round(self._learned)

    @property
    def _counts(self) -> Counts | None:
        return None if self._learned is None else self._learned.counts

    def _embedded(self, sums: dict[Part, tuple[Floats, float]], counts: Floats, users: int) -> Floats:
        """Return the embeddings from who rated an item, and from who liked it; shape (items, dimensions)."""
        found = [np.zeros((counts.size, 0))]
        for part, scale in _SCALES.items():
            if part in sums:
                own, deviation = sums[part]
                found.append(scale * embeddings_of(own.reshape(counts.size, -1), deviation, counts, users))
        return np.hstack(found)

    @property
    def _slope(self) -> float:
        """Return by how much an expected rating grows with the latent rating."""
        ends = np.array([-0.1, 0.1])
        low, high = expected_rating(
            ends, np.full(2, _LATENT_VARIANCE), self.cuts, self.releases.scale.values
        ).tolist()
        return float((high - low) / (ends[1] - ends[0]))

    def _design(self, counts: Counts) -> tuple[Floats, Floats]:
        """Return the columns on which biases are regressed, and the variances of their coefficients."""
        popularity = counts.popularity
        of_items = np.column_stack([popularity, popularity**2 - 1])
        public = _public_columns(self.catalogue, counts.shares)
        variances = np.append([_POPULARITY, _ITS_SQUARE], np.full(public.shape[1], _OTHERS))
        return np.hstack([of_items, public]), variances

    def _table_for_round(self, learned: Biases) -> ItemTable:
        """Return what devices contribute to the next release with: biases of ratings, and features.

        Features are what is public of an item and its popularity, or embeddings once some are learned. Where
        two releases learn these, random ones fill up the first.
        """
        nothing = np.zeros((self.releases.n_items, 0))
        shares = learned.counts.shares
        features = standardised(self._design(learned.counts)[0], shares, np.sqrt(_LEAST_SHARE))
        if self._embeddings.shape[1]:
            features = standardised(self._embeddings, shares)
        elif len(self.parts) == 3:
            # As many as there is room for beside others, from which the next release learns the space.
            others = features.shape[1]
            shape = self.releases.n_items, max(0, self.most_features - others)
            features = np.hstack(
                [features, generator(self.seed, "random features of items").standard_normal(shape)]
            )
        table = ItemTable(
            self.cuts,
            learned.means * self._slope,
            np.zeros(len(nothing)),
            features[:, : self.most_features],
            nothing,
            nothing,
            nothing.astype(np.bool_),
        )
        return self._decoded(table.encode())

    def _all_embeddings(self, learned: Biases) -> Floats:
        """Return the embeddings from raters, and what is public, so that alike items share a taste too."""
        public = _public_columns(self.catalogue, learned.counts.shares)
        near = standardised(public, learned.counts.shares, np.sqrt(_LEAST_SHARE))
        return np.hstack([self._embeddings, _PUBLIC_DEVIATION * near])

    def _decoded(self, data: bytes) -> ItemTable:
        return ItemTable.decode(data, n_levels=self.cuts.size + 1, n_items=self.releases.n_items)

    def model_bytes(self) -> bytes:
        """Return what the next contributions are computed with; see `Learner.model_bytes`."""
        return b"" if self._learned is None else self._sent.encode()

    def learned_bytes(self) -> bytes:
        """Return the table from which devices predict; see `Learner.learned_bytes`."""
        n_items, learned, catalogue = self.releases.n_items, self._learned, self.catalogue
        means = np.zeros(n_items) if learned is None else learned.means
        deviations = np.full(n_items, PRIOR_SPREAD) if learned is None else np.sqrt(learned.variances)
        numbers = np.zeros((n_items, 0)) if learned is None else learned.counts.popularity[:, None]
        embeddings = self._embeddings if learned is None else self._all_embeddings(learned)
        categories = np.zeros((n_items, 0), dtype=np.bool_)
        if catalogue is not None:
            numbers, categories = np.hstack([numbers, catalogue.numbers]), catalogue.categories
        no_factors = np.zeros((n_items, 0))
        table = ItemTable(self.cuts, means, deviations, embeddings, no_factors, numbers, categories)
        return table.encode()


def _public_columns(catalogue: Catalogue | None, shares: Floats) -> Floats:
    """Return public numbers, each also squared, and categories, with mean 0 over ratings, a row each.

    Of categories, the ones that divide ratings most evenly come first.
    """
    if catalogue is None:
        return np.zeros((shares.size, 0))
    numbers = catalogue.numbers
    bends = (np.clip(numbers, -_FARTHEST, _FARTHEST) ** 2 - 1) * (numbers != 0)
    even = np.abs(shares @ catalogue.categories - 0.5)
    categories = catalogue.categories[:, np.argsort(even, kind="stable")]
    bent = standardised(np.hstack([numbers, bends]), shares)
    return np.hstack([bent, categories - shares @ categories])
