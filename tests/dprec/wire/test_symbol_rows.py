from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.completion import levels_of, slope_channel
from dprec.wire import SymbolRows

CHANNEL = slope_channel(0.5, 64, 1.0)
CODEC = SymbolRows(CHANNEL)


@given(st.lists(st.lists(st.integers(0, 63), max_size=20), min_size=1, max_size=6))
def test_what_is_encoded_comes_back(rows: list[list[int]]) -> None:
    counts = np.array([len(row) for row in rows])
    symbols = np.array([symbol for row in rows for symbol in row], dtype=np.uint16)
    reports = CODEC.encode(counts, symbols)
    valid, decoded = CODEC.decode(reports, counts)
    assert valid.all()
    np.testing.assert_array_equal(decoded, symbols)
    # A partition's reports are those of its users alone.
    alone = [CODEC.encode(np.array([len(row)]), np.array(row, dtype=np.uint16))[0] for row in rows]
    assert reports == alone


@given(st.lists(st.integers(0, 63), min_size=1, max_size=8), st.binary(max_size=12))
def test_what_is_malformed_is_rejected(row: list[int], noise: bytes) -> None:
    counts = np.array([len(row), len(row)])
    (good,) = CODEC.encode(counts[:1], np.array(row, dtype=np.uint16))
    for bad in (good[:-1], good + b"\x00", b""):
        valid, decoded = CODEC.decode([bad, good], counts)
        assert valid.tolist() == [False, True]
        assert decoded.tolist() == row
    valid, decoded = CODEC.decode([noise, good], counts)
    assert valid[1]
    assert decoded.size == valid.sum() * len(row)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 10.0])
def test_the_channel_of_slopes_keeps_its_epsilon_within_a_tenth_of_the_entropy(epsilon: float) -> None:
    channel = slope_channel(0.5, 256, epsilon)
    assert 0.98 * epsilon <= channel.epsilon <= epsilon + 1e-9
    ends = channel.inputs[[0, -1]]
    assert ends.tolist() == [-0.5, 0.5]
    counts = np.array([20_000])
    levels = np.tile(np.arange(1, 130, dtype=np.uint8), 156)[:20_000]
    symbols = channel.sample(levels, np.random.default_rng(0).integers(0, 2**64, 20_000, dtype=np.uint64))
    assert len(SymbolRows(channel).encode(counts, symbols)[0]) * 8 / 20_000 <= 1.1 * channel.entropy()


def test_slopes_are_clamped_and_rounded() -> None:
    slopes = np.array([-9.0, -0.5, -0.001, 0.0, 0.001, 0.25, 0.5, 3.0])
    levels = levels_of(slopes, 0.5)
    np.testing.assert_array_equal(CHANNEL.inputs[levels - 1], [-0.5, -0.5, 0, 0, 0, 0.25, 0.5, 0.5])
