"""Similarities and edges against their definitions, one pair at a time.

Similarity-based sensitivity against the removal of every single user.
"""

from __future__ import annotations

import numpy as np
import pytest

from dprec.crossdomain import RatedItems
from dprec.crossdomain.similarity import (
    dense_similarities,
    edges_between,
    global_sensitivity,
    largest_sensitivities,
)


def by_definition(dense, one, other, kind):
    both = ~np.isnan(dense[:, one]) & ~np.isnan(dense[:, other])
    centre = np.nanmean(dense, axis=1, keepdims=True) if kind == "adjusted-cosine" else 0.0
    deviations = np.nan_to_num(dense - centre)
    norms = np.linalg.norm(deviations[:, one]) * np.linalg.norm(deviations[:, other])
    similarity = deviations[:, one] @ deviations[:, other] / norms if norms > 1e-12 else 0.0
    above = dense >= np.nanmean(dense, axis=0) - 1e-12
    mutual = int((both & (above[:, one] == above[:, other])).sum())
    either = int((~np.isnan(dense[:, one]) | ~np.isnan(dense[:, other])).sum())
    return similarity, int(both.sum()), mutual, either


@pytest.mark.parametrize("kind", ["adjusted-cosine", "cosine"])
@pytest.mark.parametrize("seed", range(5))
def test_every_edge_is_as_defined(random_ratings, sparse, kind, seed) -> None:
    dense = random_ratings(seed, 25, 14, 0.4)
    dense[0] = np.nan
    dense[0, 3] = 4.0  # A user with one rating has no deviation.
    items = RatedItems.of(sparse(dense), kind)
    left, right = np.arange(7), np.arange(7, 14)
    edges = edges_between(items, left, right, significance=5)
    found = {
        (one, other): values
        for one, other, *values in zip(
            edges.left, edges.right, edges.similarity, edges.mutuality, edges.confidence, strict=True
        )
    }
    plain = dense_similarities(items, left, right)
    for one in left:
        for other in right:
            similarity, common, mutual, either = by_definition(dense, one, other, kind)
            assert plain[one, other - 7] == pytest.approx(similarity, abs=1e-12)
            if common and abs(similarity) > 1e-12:
                expected = [similarity * min(common, 5) / 5, mutual, mutual / either]
                assert found.pop((one, other)) == pytest.approx(expected, abs=1e-12)
    assert not found


def test_the_strongest_edges_of_either_end_stay(random_ratings, sparse) -> None:
    items = RatedItems.of(sparse(random_ratings(3, 40, 16, 0.5)))
    edges = edges_between(items, np.arange(8), np.arange(8, 16), significance=50)
    kept = edges.strongest(2)
    for ends, all_ends in ((kept.left, edges.left), (kept.right, edges.right)):
        for item in np.unique(all_ends):
            best = np.sort(edges.similarity[all_ends == item])[::-1][:2]
            assert np.isin(best, kept.similarity[ends == item]).all()
    assert kept.count <= 2 * 16
    assert edges.strongest(99).count == edges.count


def test_nothing_to_compare() -> None:
    import scipy.sparse as sp

    items = RatedItems.of(sp.csr_array((3, 4)))
    assert edges_between(items, np.arange(2), np.arange(2, 4), 50).count == 0
    assert edges_between(items, np.arange(0), np.arange(2, 4), 50).count == 0
    assert not dense_similarities(items, np.arange(2), np.arange(4)).any()


def test_ranges() -> None:
    assert global_sensitivity("adjusted-cosine") == 2
    assert global_sensitivity("cosine") == 1


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
    np.testing.assert_allclose(largest_sensitivities(items), by_removal(items).max(axis=1), atol=1e-9)


def test_items_in_stretches(random_ratings, sparse, monkeypatch) -> None:
    items = RatedItems.of(sparse(random_ratings(1, 20, 11, 0.5)))
    monkeypatch.setattr("dprec.crossdomain.similarity._ITEMS_AT_ONCE", 2)
    largest = by_removal(items).max(axis=1)
    np.testing.assert_allclose(largest_sensitivities(items), largest, atol=1e-9)
