""" """

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.completion import levels_of, slope_channel
from dprec.wire import BitStream, SymbolRows
from dprec.wire import symbols as prefix_code
from dprec.wire.bits import MAX_FIELD_BITS
from dprec.wire.symbols import PrefixCode

ALPHABETS = [1, 2, 3, 5, 6, 255, 256, 257]


def distributions(symbols: int) -> dict[str, np.ndarray]:
    return {
        "uniform": np.full(symbols, 1 / symbols),
        "geometric": 0.5 ** np.arange(1, symbols + 1, dtype=np.float64),
        "one symbol": np.eye(symbols)[symbols // 2],
        "two ends": np.where(np.isin(np.arange(symbols), [0, symbols - 1]), 1.0, 1e-9),
        "never anything": np.zeros(symbols),
    }


CASES = [
    pytest.param(shares, id=f"{symbols} {name}")
    for symbols in ALPHABETS
    for name, shares in distributions(symbols).items()
]


def round_trip(code: PrefixCode, rows: list[np.ndarray]) -> None:
    """Write the rows end to end, each from a byte of its own, and read them back."""
    counts = np.array([row.size for row in rows], dtype=np.int64)
    packed = []
    for row in rows:
        lengths = code.lengths[row]
        bits = np.zeros(-(-int(lengths.sum()) // 8) * 8, dtype=np.uint8)
        code.write(bits, np.cumsum(lengths) - lengths, row)
        packed.append(np.packbits(bits).tobytes())
    stream = BitStream(packed)
    symbols, ends = code.read(stream, stream.starts, counts)
    assert symbols.tolist() == [int(symbol) for row in rows for symbol in row]
    used = [int(code.lengths[row].sum()) for row in rows]
    assert (ends - stream.starts).tolist() == used


@pytest.mark.parametrize("shares", CASES)
def test_round_trip(shares: np.ndarray) -> None:
    code = PrefixCode.for_distribution(shares)
    random = np.random.default_rng(0)
    rows = [random.integers(0, shares.size, size) for size in (0, 1, 300, 7)]
    round_trip(code, [np.arange(shares.size), *rows])


@pytest.mark.parametrize("shares", CASES)
def test_the_code_is_complete_and_fits_a_field(shares: np.ndarray) -> None:
    code = PrefixCode.for_distribution(shares)
    assert code.longest <= MAX_FIELD_BITS
    # Kraft's equality: every sequence of bits decodes, so that a decoder cannot get stuck.
    assert sum(2.0**-code.lengths) == 1
    words = {
        f"{word:0{length}b}" if length else "" for word, length in zip(code.words, code.lengths, strict=True)
    }
    assert len(words) == shares.size
    assert not any(other != word and other.startswith(word) for word in sorted(words)[:40] for other in words)


@pytest.mark.parametrize("stretch", [1, 24, 100, 1 << 14])
@pytest.mark.parametrize("shares", CASES)
def test_few_long_rows_are_read_as_many_short_ones_are(
    shares: np.ndarray, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any bits decode, also those of other rows and none at all, where a row is shorter than it says."""
    code = PrefixCode.for_distribution(shares)
    random = np.random.default_rng(2)
    stream = BitStream([random.bytes(size) for size in (900, 0, 30, 3)])
    counts = np.array([700, 250, 40, 1000])
    monkeypatch.setattr(prefix_code, "_STRETCH_BITS", stretch)
    found = code.read(stream, stream.starts, counts)
    monkeypatch.setattr(prefix_code, "_FEW_ROWS", 1)
    for ours, theirs in zip(found, code.read(stream, stream.starts, counts), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()


def test_65536_symbols_however_skewed() -> None:
    random = np.random.default_rng(1)
    for shares in (np.full(65536, 2.0**-16), 0.7 ** np.arange(65536.0), random.random(65536) ** 9):
        code = PrefixCode.for_distribution(shares)
        assert code.longest <= MAX_FIELD_BITS
        round_trip(code, [random.integers(0, 65536, 500), np.array([0, 65535])])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=64).filter(lambda weights: sum(weights) > 0))
def test_the_mean_length_is_within_one_bit_of_the_entropy(weights: list[float]) -> None:
    shares = np.array(weights) / sum(weights)
    code = PrefixCode.for_distribution(shares)
    used = shares[shares > 0]
    entropy = float(-(used * np.log2(used)).sum())
    # Rare symbols are coded as more likely than they are, which takes a little from the others.
    assert entropy - 1e-9 <= code.expected_bits(shares) <= entropy + 1 + 0.1


def test_equal_shares_of_a_power_of_two_are_plain_bit_packing() -> None:
    code = PrefixCode.for_distribution(np.full(256, 1 / 256))
    assert code.lengths.tolist() == [8] * 256
    assert code.words.tolist() == list(range(256))


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
