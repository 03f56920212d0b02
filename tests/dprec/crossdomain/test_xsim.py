"""X-Sim against an enumeration of every meta-path."""

from itertools import pairwise, product

import numpy as np
import pytest

from dprec.crossdomain import RatedItems, layered_graph, x_sim
from dprec.crossdomain.similarity import BRIDGE, FAR, NEXT_TO_BRIDGE


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
def test_it_agrees_with_the_enumeration_of_all_paths(sparse, seed) -> None:
    dense, in_target = graph_with_layers(seed)
    k = 1 + seed % 4
    graph = layered_graph(RatedItems.of(sparse(dense)), in_target, k, significance=3)
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


def test_the_graphs_have_every_kind_of_path() -> None:
    lengths = set()
    for seed in range(20):
        dense, in_target = graph_with_layers(seed)
        layers, expected = by_enumeration(dense, in_target, 1 + seed % 4, 3)
        depth = [{i: at for at, members in enumerate(side) for i in members} for side in layers]
        lengths |= {(depth[0][i], depth[1][j]) for i, j in expected}
    assert lengths == set(product(range(3), repeat=2))


def test_paths_are_summed_in_stretches(sparse, monkeypatch) -> None:
    dense, in_target = graph_with_layers(1)
    graph = layered_graph(RatedItems.of(sparse(dense)), in_target, 4, significance=3)
    whole = x_sim(graph)
    monkeypatch.setattr("dprec.crossdomain.similarity._PATHS_AT_ONCE", 7)
    parts = x_sim(graph)
    np.testing.assert_array_equal(whole.indices, parts.indices)
    np.testing.assert_allclose(whole.data, parts.data, atol=1e-12)


def test_domains_without_a_path_between_them(sparse, random_ratings) -> None:
    dense = random_ratings(1, 12, 10, 0.6)
    dense[:6, 5:] = np.nan
    dense[6:, :5] = np.nan
    graph = layered_graph(RatedItems.of(sparse(dense)), np.arange(10) >= 5, 3, 10)
    assert (graph.layers == FAR).all()
    assert x_sim(graph).nnz == 0
