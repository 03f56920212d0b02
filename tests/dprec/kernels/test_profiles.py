"""Kernels that make up profiles, compiled and interpreted, against what loops find."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import offsets
from dprec.kernels.profiles import add_opinions, draw_distinct
from tests.interpreted import twin

N_ITEMS, ROUNDS = 6, 2
SHARES = st.lists(st.integers(0, 9), min_size=N_ITEMS, max_size=N_ITEMS).filter(lambda shares: shares[0] > 0)
USERS = st.lists(st.tuples(st.integers(1, N_ITEMS), st.integers(0, 4)), max_size=5)
"""How many items are there, and how many of them each user is to have."""


@given(SHARES, USERS, st.data())
def test_items_are_those_that_draws_lead_to_but_for_repeated_ones(
    shares: list[int], users: list[tuple[int, int]], data: st.DataObject
) -> None:
    thresholds, available = (
        np.cumsum(shares) / sum(shares),
        np.array([first for first, _ in users], dtype=int),
    )
    wanted = np.array([count for _, count in users], dtype=np.int64)
    most = int(wanted.sum())
    many = st.lists(st.floats(0, 1, exclude_max=True), min_size=most, max_size=most)
    rounds = [data.draw(many) for _ in range(ROUNDS)]
    expected: list[list[int]] = [[] for _ in users]
    for draws in map(iter, rounds):
        for items, (there, count) in zip(expected, users, strict=True):
            for _ in range(count - len(items)):
                reached = thresholds[there - 1] * next(draws)
                item = min(int(np.searchsorted(thresholds, reached, side="right")), there - 1)
                if item not in items:
                    items.append(item)

    def found(function: Callable[..., Any]) -> list[list[int]]:
        items, missing = np.empty(most, dtype=np.int32), wanted.copy()
        guide = np.searchsorted(thresholds, np.arange(8) / 8, side="right").astype(np.int32)
        indptr, seen = offsets(wanted), np.full(N_ITEMS, -1, dtype=np.int32)
        everybody = np.arange(wanted.size)
        for draws in rounds:
            own = np.array(draws[: missing.sum()])
            function(items, missing, seen, indptr, everybody, available, thresholds, guide, own)
        ends = indptr[1:] - missing
        return [items[start:end].tolist() for start, end in zip(indptr[:-1], ends, strict=True)]

    assert found(draw_distinct) == found(twin(draw_distinct)) == expected


def test_opinions_are_sums_of_biases_products_and_noise() -> None:
    random, indptr = np.random.default_rng(3), np.array([0, 2, 2, 5])
    items = np.array([0, 1, 0, 1, 3], dtype=np.int32)
    biases = random.normal(size=3), random.normal(size=4)
    factors = random.normal(size=(3, 2)), random.normal(size=(4, 2))
    noise, users = random.normal(size=5), np.array([0, 0, 2, 2, 2])
    products = (factors[0][users] * factors[1][items]).sum(axis=1)
    expected = biases[0][users] + biases[1][items] + products + 0.5 * noise
    for function in (add_opinions, twin(add_opinions)):
        opinions = noise.copy()
        function(opinions, indptr, items, *biases, *factors, 0.5)
        np.testing.assert_allclose(opinions, expected, rtol=1e-14)
