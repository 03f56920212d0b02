"""Features of users and items, and the prior of the biases that are regressed on them."""

import numpy as np

from dprec.catalogue import Catalogue
from dprec.completion import prior_biases
from dprec.completion.calibrated.embedding import ItemSetEmbedding
from dprec.completion.calibrated.features import (
    catalogue_features,
    expected_coefficients,
    item_features,
    user_features,
)

RANDOM = np.random.default_rng(2)
USERS, ITEMS = np.nonzero(np.column_stack([RANDOM.random((30, 8)) < 0.4, np.zeros((30, 1), dtype=bool)]))
GEOMETRY = ItemSetEmbedding.of(USERS, ITEMS, (30, 9), 3, seed=1)
YEARS = np.array([-1.5, 0.0, 0.5, 1.0, 1.5, -0.5, -1.0, 0.25, -0.25])
CATALOGUE = Catalogue(YEARS[:, None], RANDOM.random((9, 2)) < 0.5, ("year",), ("drama", "war"))


def test_an_item_has_an_intercept_popularity_public_data_and_its_embedding_in_this_order() -> None:
    features = item_features(GEOMETRY, CATALOGUE, 2)
    assert features.shape == (9, 1 + 2 + 2 + 2 + 2)
    np.testing.assert_array_equal(features[:, 0], 1.0)
    np.testing.assert_array_equal(features[:, 1], GEOMETRY.popularity)
    np.testing.assert_array_equal(features[:, 3:7], catalogue_features(CATALOGUE, GEOMETRY.item_counts))
    np.testing.assert_array_equal(features[:, 7:], GEOMETRY.items[:, :2])
    assert item_features(GEOMETRY, None, 2).shape == (9, 1 + 2 + 2)


def test_squares_are_0_where_the_number_is_unknown_and_for_items_that_nobody_rated() -> None:
    features = item_features(GEOMETRY, CATALOGUE, 0)
    np.testing.assert_allclose(features[0, 4], 1.5**2 - 1)
    assert features[1, 4] == 0.0
    assert GEOMETRY.item_counts[8] == 0
    np.testing.assert_array_equal(features[8, 1:3], 0.0)
    np.testing.assert_allclose(features[:8, 2], GEOMETRY.popularity[:8] ** 2 - 1)


def test_categories_have_mean_0_over_the_ratings() -> None:
    categories = catalogue_features(CATALOGUE, GEOMETRY.item_counts)[:, 2:]
    np.testing.assert_allclose(categories[ITEMS].mean(axis=0), 0.0, atol=1e-12)


def test_the_coefficient_of_popularity_is_expected_to_be_the_largest_that_of_its_square_the_least() -> None:
    ratios = expected_coefficients(6)
    assert (ratios.argmax(), ratios.argmin()) == (1, 2)
    np.testing.assert_array_equal(ratios[[0, 3, 4, 5]], 1.0)


def test_the_prior_rests_on_these_features_and_gives_items_alone_an_intercept() -> None:
    users, items = prior_biases(GEOMETRY, CATALOGUE, 2)
    np.testing.assert_array_equal(users.features, user_features(GEOMETRY, 2))
    np.testing.assert_array_equal(items.features, item_features(GEOMETRY, CATALOGUE, 2))
    assert [side.expected.intercepts for side in (users, items)] == [None, (100.0,)]
    assert items.expected.spread < users.expected.spread
    np.testing.assert_array_equal(users.means, 0.0)
