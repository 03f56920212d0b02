"""Private alternating least squares with public features of the items: collective factorisation.

Two matrices are factorised with the same factors of the items (Singh and Gordon [singh2008]): ratings by
users, which are private, and public features, of which there is no need to hide anything. The statistics of
users have noise; those of features are added without any (Curmei et al. [curmei2023], abstract). An item of
few ratings, of which noise leaves nothing, so has the factors that its features say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.components import option
from dprec.protocols.base import Facts, Public
from dprec.protocols.private_als import FactorizationOptions, ItemServer, PrivateAlsProtocol
from dprec.protocols.searches import NOTHING_PUBLIC
from dprec.ratings import Ratings


@dataclass(frozen=True, kw_only=True)
class CollectiveOptions(FactorizationOptions):
    """How factors are learned from ratings and features."""

    papers: ClassVar[tuple[str, ...]] = ("curmei2023", "chien2021", "krichene2023")
    feature_weight: float = option("What a feature of an item counts, in ratings.", 1000.0, ge=0, le=1e6)


@dataclass(frozen=True, kw_only=True)
class CollectiveAlsProtocol(PrivateAlsProtocol):
    """Private alternating least squares whose server also factorises what is public of the items."""

    kind: Literal["dp-cmf"] = "dp-cmf"  # type: ignore[assignment]
    papers: ClassVar[tuple[str, ...]] = ("curmei2023", "chien2021", "krichene2023")
    factorization: CollectiveOptions = option("What is learned, and from what.", CollectiveOptions())

    @property
    def facts(self) -> Facts:
        """Factors of ratings and features."""
        return self.facts_of(learns="collective-als")

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> CollectiveServer:
        """Return the server before the first round."""
        malicious = 0 if self.guard is None else self.guard.most(public.n_users)
        features = features_of(catalogue, public.n_items)
        return CollectiveServer(
            self.factorization, public.scale, public.n_items, seed, malicious, features=features
        )

    def notes_on(self, train: Ratings, catalogue: Catalogue | None) -> tuple[str, ...]:
        """Say as well where there are no features."""
        return super().notes_on(train, catalogue) + (() if catalogue is not None else (NOTHING_PUBLIC,))


def features_of(catalogue: Catalogue | None, n_items: int) -> Floats:
    """Return standardised numbers and categories, of mean 0 over the items, shape (items, features)."""
    if catalogue is None:
        return np.zeros((n_items, 0))
    categories = catalogue.categories.astype(np.float64)
    return np.hstack([catalogue.numbers, categories - categories.mean(axis=0)])


@dataclass(eq=False)
class CollectiveServer(ItemServer):
    """Takes the item steps with statistics of features beside those of ratings."""

    options: CollectiveOptions
    features: Floats = field(kw_only=True)
    """Shape (items, features)."""

    def _of_features(self, root: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return alpha W W^T and alpha W f of items of features f, times the weight of a rating.

        W, shape (rank, features), fits the features to the items' factors of the last round, in the
        coordinates of this one; features are in units of what factors add to a rating.
        """
        features = self.features[self.model.popular] * (self.options.factor_deviation * self.span)
        loadings = np.linalg.lstsq(self.model.factors @ root / self.model.gain, features)[0]
        feature_weights = weights * self.options.feature_weight
        matrix, sides = loadings @ loadings.T, features @ loadings.T
        return feature_weights[:, None, None] * matrix, feature_weights[:, None] * sides
