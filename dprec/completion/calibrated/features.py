"""What is known before any rating is read: features of users and items, and the prior that rests on them."""

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats
from dprec.catalogue import Catalogue
from dprec.completion.calibrated.embedding import ItemSetEmbedding, standardised_logarithms
from dprec.completion.calibrated.regressions import Expected, Regressed

_USER_SPREAD, ITEM_SPREAD = 0.2, 0.06
"""Expected variances of the biases around what features say, in units of the noise on a latent rating."""

_POPULARITY, _ITS_SQUARE = 5.0, 0.3
"""Expected variances of the coefficients of popularity and of its square, relative to the others."""


def prior_biases(
    embedding: ItemSetEmbedding, catalogue: Catalogue | None, width: int
) -> tuple[Regressed, Regressed]:
    """Return the prior of user and item biases, regressed on ``width`` dimensions and the other features."""
    of_users, of_items = user_features(embedding, width), item_features(embedding, catalogue, width)
    return (
        Regressed.prior(of_users, Expected(spread=(_USER_SPREAD,), intercepts=None)),
        Regressed.prior(of_items, Expected(spread=(ITEM_SPREAD,))),
    )


def user_features(embedding: ItemSetEmbedding, width: int) -> Floats:
    """Return how much each user rates and the first ``width`` dimensions of its embedding, one row each."""
    return np.column_stack([standardised_logarithms(embedding.user_counts), embedding.users[:, :width]])


def item_features(embedding: ItemSetEmbedding, catalogue: Catalogue | None, width: int) -> Floats:
    """Return a row for each item, with 1 in the first column.

    The others hold the item's popularity and public numbers, each also squared, its categories, and the first
    ``width`` dimensions of its embedding.
    """
    rated = embedding.item_counts > 0
    popularity = embedding.popularity[:, None]
    columns = [np.ones((rated.size, 1)), _bent(popularity, rated)]
    if catalogue is not None:
        columns.append(catalogue_features(catalogue, embedding.item_counts))
    return np.hstack([*columns, embedding.items[:, :width]])


def catalogue_features(catalogue: Catalogue, counts: AnyInts) -> Floats:
    """Return public numbers, each also squared, and the categories, which have mean 0 over the ratings."""
    numbers = _bent(catalogue.numbers, catalogue.numbers != 0)
    return np.hstack([numbers, _centred_categories(catalogue, counts)])


def expected_coefficients(width: int) -> Floats:
    """Return how variable the coefficients of `item_features` are expected to be, relative to most of them.

    Popularity tells most about how an item is rated, and its square, which is large for items that hardly
    anyone rates, least. This matters where the reports of few users tell hardly more.
    """
    ratios = np.ones(width)
    ratios[1:3] = _POPULARITY, _ITS_SQUARE
    return ratios


def _centred_categories(catalogue: Catalogue, counts: AnyInts) -> Floats:
    """Return the categories with mean 0 over the ratings, shape (items, categories)."""
    shares = counts / max(int(counts.sum()), 1)
    centred: Floats = catalogue.categories - shares @ catalogue.categories
    return centred


def _bent(columns: Floats, known: Bools) -> Floats:
    """Return the columns and their squares, which are 0 where nothing is known."""
    bends = (columns**2 - 1) * (known if known.ndim == 2 else known[:, None])
    return np.hstack([columns, bends])
