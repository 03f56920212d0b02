from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dprec.channel import Channel
from dprec.randomness import words

matrices = st.tuples(st.integers(1, 6), st.integers(1, 9)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(0, 1e6)).filter(
        lambda rows: bool(np.all(rows.sum(axis=1) > 0))
    )
)


def channel_from(rows: np.ndarray) -> Channel:
    return Channel.from_probabilities(rows, np.arange(1, len(rows) + 1), np.arange(rows.shape[1]), math.inf)


@given(matrices)
def test_weights_are_whole_draws_that_add_up(rows: np.ndarray) -> None:
    channel = channel_from(rows)
    assert all(sum(map(int, row)) == 1 << 60 for row in channel.weights)
    shares = rows / rows.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(channel.probabilities, shares, atol=1e-14)


@given(matrices)
def test_epsilon_is_the_largest_log_ratio(rows: np.ndarray) -> None:
    channel = channel_from(rows)
    largest = max(
        float("inf") if low == 0 else np.log(float(high) / float(low))
        for column in channel.weights.T
        if column.max() > 0
        for low, high in [(int(column.min()), int(column.max()))]
    )
    assert channel.epsilon == pytest.approx(largest, rel=1e-12, abs=1e-12)
    assert channel.epsilon >= 0


def test_epsilon_is_that_of_the_worst_pair_wherever_it_stands() -> None:
    channel = channel_from(np.array([[0.5, 0.5], [0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]))
    assert channel.epsilon == pytest.approx(np.log(6), rel=1e-12)


@settings(max_examples=50)
@given(matrices, st.integers(0, 2**32))
def test_symbols_that_cannot_occur_never_do(rows: np.ndarray, seed: int) -> None:
    channel = channel_from(rows)
    levels = (np.arange(500) % len(rows) + 1).astype(np.uint8)
    symbols = channel.sample(levels, words(seed, "test", 0, levels.size))
    assert np.all(channel.weights[levels - 1, symbols] > 0)


@settings(max_examples=50)
@given(matrices)
def test_moments_are_sums_over_the_rows(rows: np.ndarray) -> None:
    channel = channel_from(rows)
    means = channel.probabilities @ channel.values
    np.testing.assert_allclose(channel.bias(), means - channel.inputs, atol=1e-9)
    spread = [
        row @ (channel.values - mean) ** 2 for row, mean in zip(channel.probabilities, means, strict=True)
    ]
    np.testing.assert_allclose(channel.variance(), spread, atol=1e-9)


@pytest.mark.parametrize("bad", [[[0.0, 0.0]], [[-1.0, 2.0]], [[np.nan, 1.0]], [[np.inf, 1.0]]])
def test_rows_that_are_no_distributions_are_refused(bad: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="non-negative"):
        Channel.from_probabilities(bad, [1.0], [1.0, 2.0], math.inf)


def test_shapes_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        Channel.from_probabilities(np.ones((2, 3)), [1.0, 2.0], [1.0, 2.0], math.inf)


@pytest.mark.parametrize("crowded", [False, True])
def test_symbols_are_the_same_whether_looked_up_or_searched(crowded: bool) -> None:
    """Every draw at a threshold, beside it and at the first of those that share their first bits."""
    rare = [2.0**-20] * 7 if crowded else [0.0] * 7
    rows = np.array([[0.25, 0.25, 0.5, *rare], [0.5, 0.25, 0.25, *rare]])
    channel = Channel.from_probabilities(rows, [1.0, 2.0], np.arange(10.0), math.inf)
    thresholds = np.cumsum(channel.weights, axis=1, dtype=np.uint64)[:, :-1].ravel()
    near = np.concatenate([thresholds, thresholds - np.uint64(1), thresholds + np.uint64(1), [np.uint64(0)]])
    words = np.resize(np.concatenate([near << np.uint64(4), [np.uint64(2**64 - 1)]]), 1 << 15)
    levels = np.repeat([1, 2], words.size // 2).astype(np.uint8)
    few = [
        channel.sample(levels[start : start + 64], words[start : start + 64])
        for start in range(0, words.size, 64)
    ]
    assert channel.sample(levels, words).tolist() == np.concatenate(few).tolist()
