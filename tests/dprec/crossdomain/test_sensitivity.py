"""Similarity-based sensitivity against the removal of every single user."""

import numpy as np
import pytest

from dprec.crossdomain import RatedItems
from dprec.crossdomain.similarity import dense_similarities, largest_sensitivities, similarity_sensitivities


def without(items: RatedItems, user: int) -> RatedItems:
    """Return the items with one user's deviations gone; the other users' means do not change."""
    kept = items.deviations.tocsr(copy=True)
    kept.data[kept.indptr[user] : kept.indptr[user + 1]] = 0.0
    deviations = kept.tocsc()
    norms = np.sqrt(np.asarray(deviations.multiply(deviations).sum(axis=0)).ravel())
    return RatedItems(deviations, items.rated, items.opinions, norms, items.raters, items.means)


def by_removal(items: RatedItems) -> np.ndarray:
    everything = np.arange(items.n_items)
    before = dense_similarities(items, everything, everything)
    largest = np.zeros_like(before)
    for user in range(items.deviations.shape[0]):
        after = dense_similarities(without(items, user), everything, everything)
        largest = np.maximum(largest, np.abs(before - after))
    np.fill_diagonal(largest, 0.0)
    return largest


@pytest.mark.parametrize("kind", ["adjusted-cosine", "cosine"])
@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_largest_change_over_all_users(random_ratings, sparse, kind, seed) -> None:
    items = RatedItems.of(sparse(random_ratings(seed, 14, 9, 0.2 + 0.03 * seed)), kind)
    everything = np.arange(items.n_items)
    found = similarity_sensitivities(items, everything)
    np.fill_diagonal(found, 0.0)
    expected = by_removal(items)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(largest_sensitivities(items), expected.max(axis=1), atol=1e-9)


def test_items_in_stretches(random_ratings, sparse, monkeypatch) -> None:
    items = RatedItems.of(sparse(random_ratings(1, 20, 11, 0.5)))
    some = np.array([2, 5, 10])
    whole = similarity_sensitivities(items, np.arange(11))[some]
    monkeypatch.setattr("dprec.crossdomain.similarity._ITEMS_AT_ONCE", 2)
    np.testing.assert_array_equal(similarity_sensitivities(items, some), whole)
    largest = by_removal(items).max(axis=1)
    np.testing.assert_allclose(largest_sensitivities(items), largest, atol=1e-9)


def test_the_printed_form_bounds_the_change_where_ratings_are_positive(random_ratings, sparse) -> None:
    # With plain cosine all products are positive, as the theorem's derivation takes them to be. It
    # considers users who rated both items.
    everything = np.arange(9)
    for seed in range(20):
        dense = random_ratings(seed, 14, 9, 1.0)
        items = RatedItems.of(sparse(dense), "cosine")
        printed = similarity_sensitivities(items, everything, published=True)
        exact = similarity_sensitivities(items, everything)
        off_diagonal = ~np.eye(9, dtype=bool)
        assert (printed >= exact - 1e-12)[off_diagonal].all()


def test_the_printed_form_fails_for_opposite_opinions(sparse) -> None:
    dense = np.array([[5.0, 1.0], [1.0, 5.0], [3.0, 4.0]])
    items = RatedItems.of(sparse(dense))
    printed = similarity_sensitivities(items, np.arange(2), published=True)[0, 1]
    exact = similarity_sensitivities(items, np.arange(2))[0, 1]
    assert printed <= exact
