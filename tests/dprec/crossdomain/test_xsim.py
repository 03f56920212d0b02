"""X-Sim against an enumeration of every meta-path."""

from itertools import pairwise, product

import numpy as np
import pytest

from dprec.crossdomain import RatedItems, layered_graph, similarity, x_sim
from dprec.crossdomain.similarity import (
    BRIDGE,
    FAR,
    NEXT_TO_BRIDGE,
    dense_similarities,
    largest_sensitivities,
)
from tests import make


def edge_table(dense, significance):
    """Return {(i, j): (similarity, mutuality, confidence)} from the definitions."""
    items = dense.shape[1]
    rated = ~np.isnan(dense)
    deviations = np.nan_to_num(dense - np.nanmean(np.where(rated.any(1)[:, None], dense, 0), 1)[:, None])
    means = np.nanmean(np.where(rated.any(0), dense, 0), axis=0)
    edges = {}
    for i, j in product(range(items), repeat=2):
        both = rated[:, i] & rated[:, j]
        norm = np.linalg.norm(deviations[:, i]) * np.linalg.norm(deviations[:, j])
        if i == j or not both.any() or norm < 1e-12:
            continue
        s = deviations[:, i] @ deviations[:, j] / norm * min(both.sum(), significance) / significance
        mutual = (both & ((dense[:, i] >= means[i] - 1e-12) == (dense[:, j] >= means[j] - 1e-12))).sum()
        if abs(s) > 1e-12:
            edges[i, j] = (s, mutual, mutual / (rated[:, i] | rated[:, j]).sum())
    return edges


def pruned(edges, left, right, k):
    """Return the pairs that are among the k strongest of either end."""
    pairs = [(i, j) for i in left for j in right if (i, j) in edges]
    kept = set()
    for end, other in ((0, 1), (1, 0)):
        for item in {pair[end] for pair in pairs}:
            own = [pair for pair in pairs if pair[end] == item]
            kept |= set(sorted(own, key=lambda pair: (-edges[pair][0], pair[other]))[:k])
    return kept


def by_enumeration(dense, in_target, k, significance):
    edges = edge_table(dense, significance)
    sides = [np.flatnonzero(~in_target), np.flatnonzero(in_target)]
    bridge = {i for i, j in edges if in_target[i] != in_target[j]}
    layers, links = [], []
    for side in sides:
        own = set(side.tolist())
        bb = own & bridge
        nb = {i for i in own - bb if any((i, j) in edges for j in bb)}
        nn = own - bb - nb
        layers.append((bb, nb, nn))
        links.append((pruned(edges, nb, bb, k), pruned(edges, nn, nb, k)))
    cross = pruned(edges, layers[0][0], layers[1][0], k)

    def to_bridges(side):
        bb, _, _ = layers[side]
        near, far = links[side]
        yield from ([i] for i in bb)
        yield from ([i, j] for i, j in near)
        yield from ([i, j, b] for i, j in far for other, b in near if other == j)

    sums = {}
    for inward, outward in product(to_bridges(0), to_bridges(1)):
        if (inward[-1], outward[-1]) not in cross:
            continue
        path = inward + outward[::-1]
        steps = [edges[pair] for pair in pairwise(path)]
        certainty = np.prod([confidence for _, _, confidence in steps])
        if certainty == 0:
            continue
        s_p = sum(s * mutual for s, mutual, _ in steps) / sum(mutual for _, mutual, _ in steps)
        total = sums.setdefault((path[0], path[-1]), [0.0, 0.0])
        total[0] += certainty * s_p
        total[1] += certainty
    return layers, {cell: numerator / weight for cell, (numerator, weight) in sums.items()}


def graph_with_layers(seed):
    """Few straddlers and chains of tastes, so that all three layers occur in both domains."""
    random = np.random.default_rng(seed)
    dense = np.full((66, 24), np.nan)
    in_target = np.arange(24) >= 12
    for user in range(60):
        side, place = 12 * (user % 2), random.integers(0, 10)
        own = side + place + random.choice(3, size=2, replace=False)
        dense[user, own] = random.integers(1, 6, own.size)
    for user in range(60, 66):
        across = random.choice([0, 1, 2, 12, 13, 14], size=4, replace=False)
        dense[user, across] = random.integers(1, 6, 4)
    return dense, in_target


@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_the_enumeration_of_all_paths(seed) -> None:
    dense, in_target = graph_with_layers(seed)
    k = 1 + seed % 4
    graph = layered_graph(RatedItems.of(make.table(dense).to_sparse()), in_target, k, significance=3)
    layers, expected = by_enumeration(dense, in_target, k, 3)
    for target in (False, True):
        for layer, members in zip((BRIDGE, NEXT_TO_BRIDGE, FAR), layers[target], strict=True):
            assert set(np.flatnonzero((graph.layers == layer) & (in_target == target))) == members
            assert graph.count(layer, target=target) == len(members)
    found = x_sim(graph).tocoo()
    cells = dict(zip(zip(*(axis.tolist() for axis in found.coords), strict=True), found.data, strict=True))
    assert cells.keys() == expected.keys()
    for cell, value in expected.items():
        assert cells[cell] == pytest.approx(value, abs=1e-9)


def test_paths_are_summed_in_stretches(monkeypatch) -> None:
    dense, in_target = graph_with_layers(1)
    graph = layered_graph(RatedItems.of(make.table(dense).to_sparse()), in_target, 4, significance=3)
    whole = x_sim(graph)
    monkeypatch.setattr("dprec.crossdomain.similarity._PATHS_AT_ONCE", 7)
    parts = x_sim(graph)
    np.testing.assert_array_equal(whole.indices, parts.indices)
    np.testing.assert_allclose(whole.data, parts.data, atol=1e-12)


def test_cosines_are_of_the_ratings_themselves() -> None:
    held = make.random_ratings(25, 14).to_sparse()
    dense, everything = held.toarray(), np.arange(14)
    norms = np.linalg.norm(dense, axis=0)
    found = dense_similarities(RatedItems.of(held, "cosine"), everything, everything)
    np.testing.assert_allclose(found, dense.T @ dense / np.outer(norms, norms), atol=1e-12)


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
def test_it_is_the_largest_change_over_all_users(kind, seed) -> None:
    items = RatedItems.of(make.random_ratings(14, 9, 0.2 + 0.03 * seed, seed).to_sparse(), kind)
    np.testing.assert_allclose(largest_sensitivities(items), by_removal(items).max(axis=1), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_how_many_pairs_are_compared_at_once_changes_no_bit(seed, monkeypatch) -> None:
    items = RatedItems.of(make.random_ratings(14, 9, 0.6, seed).to_sparse())
    together = largest_sensitivities.__wrapped__(items)
    monkeypatch.setattr(similarity, "_PAIRS_AT_ONCE", 5)
    np.testing.assert_array_equal(largest_sensitivities.__wrapped__(items), together)
    assert together.any()
