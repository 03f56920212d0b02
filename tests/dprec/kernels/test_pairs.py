"""Which pairs are sampled: exact probabilities, none twice, the same compiled and interpreted."""

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dprec.arrays import offsets
from dprec.kernels import pairs as compiled
from tests.interpreted import interpreted

BOTH = [compiled, interpreted("dprec.kernels.pairs")]


def sampled(
    module: ModuleType,
    sets: list[list[int]],
    weights: NDArray[np.float64],
    starts: list[float],
    messages: int,
    least: float = 0.0,
) -> list[list[tuple[int, int]]]:
    """Return the pairs that are found of each set."""
    indptr = offsets(np.array([len(own) for own in sets], dtype=np.int64))
    items = np.array([item for own in sets for item in own], dtype=np.int32)
    firsts, seconds = np.full((2, len(sets), messages), -1, dtype=np.int64)
    room = np.empty(max(map(len, sets)) + 1)
    module.sample_pairs(indptr, items, weights, np.array(starts), least, firsts, seconds, room)
    rows = [list(zip(*pair, strict=True)) for pair in zip(firsts.tolist(), seconds.tolist(), strict=True)]
    return [[pair for pair in row if pair != (-1, -1)] for row in rows]


def line(own: list[int], weights: NDArray[np.float64]) -> tuple[list[tuple[int, int]], NDArray[np.float64]]:
    """Return the pairs of a set in their order on its line, and how long each is."""
    pairs = [(one, other) for place, one in enumerate(own) for other in own[place:]]
    return pairs, np.array([weights[one] * weights[other] for one, other in pairs])


@given(
    st.lists(st.integers(0, 9), max_size=7, unique=True),
    st.integers(1, 9),
    st.floats(0, 0.999),
    st.sampled_from([0.0, 0.4, 1.3]),
)
def test_pairs_at_equal_distances_are_found(
    own: list[int], messages: int, start: float, least: float
) -> None:
    weights = 2.0 ** (np.arange(10) % 3 - 1)
    pairs, lengths = line(own, weights)
    distance = max(lengths.sum() / messages, least * np.sqrt(lengths.sum()))
    points = [point for point in (start + np.arange(messages)) * distance if point < lengths.sum()]
    places = np.searchsorted(np.cumsum(lengths), points, side="right")
    expected = [pairs[place] for place in dict.fromkeys(places.tolist())]
    for module in BOTH:
        found = sampled(module, [own, []], weights, [start, 0.5], messages, least)
        assert found == [expected, []]


@pytest.mark.parametrize("messages", [1, 4, 10, 15])
@pytest.mark.parametrize("even", [True, False])
def test_over_all_starts_a_pair_is_sent_with_its_probability(messages: int, even: bool) -> None:
    own, steps = [4, 0, 2, 1], 2000
    weights = np.ones(5) if even else np.array([1.0, 0.3, 2.0, 9.0, 0.5])
    starts = ((np.arange(steps) + 0.5) / steps).tolist()
    rows = sampled(compiled, [own] * steps, weights, starts, messages)
    pairs, lengths = line(own, weights)
    for pair, length in zip(pairs, lengths.tolist(), strict=True):
        share = sum(row.count(pair) for row in rows) / steps
        assert share == pytest.approx(min(1.0, messages * length / lengths.sum()), abs=2.1 / steps)
    assert max(row.count(pair) for row in rows for pair in pairs) == 1


def test_every_order_of_a_set_is_as_likely() -> None:
    # Each of 24 orders is 6 deviations off its mean of 1000 with a chance of 2e-9, so 5e-8 for all.
    users = 24_000
    words = np.random.default_rng(2).integers(0, 2**64, 4 * users, dtype=np.uint64)
    indptr, orders = 4 * np.arange(users + 1), []
    for module in BOTH:
        items = np.tile(np.array([7, 3, 5, 1], dtype=np.int32), users)
        module.shuffle(indptr, words, items)
        orders.append(items.reshape(users, 4))
    assert (orders[0] == orders[1]).all()
    kinds, counts = np.unique(orders[0], axis=0, return_counts=True)
    assert len(kinds) == 24
    assert np.abs(counts - 1000).max() < 6 * np.sqrt(1000)
