import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.wire import BitStream, prefix_code
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
