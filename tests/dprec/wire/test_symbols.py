"""Symbols, slopes, fields and sets of items as bits: read as they were written, refused when malformed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.completion import levels_of, slope_channel
from dprec.wire import BitStream, FixedFields, ItemSets, SymbolRows, longest_item_set, read_item_sets
from dprec.wire import symbols as prefix_code
from dprec.wire.symbols import MAX_FIELD_BITS, PrefixCode, count_bits, put

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


FIELDS = st.lists(
    st.integers(0, MAX_FIELD_BITS).flatmap(
        lambda width: st.tuples(st.just(width), st.integers(0, 2**width - 1))
    ),
    max_size=40,
)


def written(fields: list[tuple[int, int]]) -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray]:
    widths = np.array([width for width, _ in fields], dtype=np.int64)
    values = np.array([value for _, value in fields], dtype=np.int64)
    positions = np.cumsum(widths) - widths
    bits = np.zeros(-(-int(widths.sum()) // 8) * 8, dtype=np.uint8)
    put(bits, positions, values, widths)
    return np.packbits(bits).tobytes(), positions, values, widths


@given(FIELDS)
def test_fields_are_the_binary_digits_of_their_values_end_to_end(fields: list[tuple[int, int]]) -> None:
    packed, *_ = written(fields)
    digits = "".join(f"{value:0{width}b}" for width, value in fields if width)
    padded = digits.ljust(len(packed) * 8, "0")
    assert packed == bytes(int(padded[start : start + 8], 2) for start in range(0, len(padded), 8))


@given(st.lists(st.binary(max_size=6), max_size=8))
def test_a_stream_is_its_reports_end_to_end(reports: list[bytes]) -> None:
    stream = BitStream(reports)
    for report, start, end in zip(reports, stream.starts, stream.ends, strict=True):
        assert end - start == 8 * len(report)
        places = np.arange(start, end, 8)
        assert bytes(stream.peek(places, 8).astype(np.uint8).tolist()) == report
    whole = np.unpackbits(np.frombuffer(b"".join(reports), dtype=np.uint8))
    assert stream.ones.tolist() == np.flatnonzero(whole).tolist()


@given(st.binary(max_size=4), st.integers(0, 2**62), st.integers(0, MAX_FIELD_BITS))
def test_past_the_end_of_the_stream_is_zero(report: bytes, beyond: int, width: int) -> None:
    stream = BitStream([report])
    assert stream.peek(stream.ends + beyond, width).tolist() == [0]


ROWS = np.array([[0, 5, 1682], [1682, 1, 0]])


def test_rows_are_read_as_they_were_written() -> None:
    codec = FixedFields(3, 1682)
    pieces = codec.encode(ROWS)
    assert (codec.width, codec.size, [len(piece) for piece in pieces]) == (11, 5, [5, 5])
    valid, rows = codec.decode(pieces)
    assert valid.all()
    assert rows.tolist() == ROWS.tolist()


@pytest.mark.parametrize(("fields", "largest"), [(4, 0), (4, 1), (1, 255)])
def test_the_narrowest_rows(fields: int, largest: int) -> None:
    codec, rows = FixedFields(fields, largest), np.full((2, fields), largest)
    valid, read = codec.decode(codec.encode(rows))
    assert valid.all()
    assert read.tolist() == rows.tolist()
    assert codec.encode(rows[:0]) == []
    assert codec.decode([])[1].shape == (0, fields)


def test_malformed_rows_are_rejected_alone() -> None:
    codec = FixedFields(3, 1682)
    good = codec.encode(ROWS)[0]
    too_large = codec.encode(np.array([[0, 1683, 0]]))[0]
    padding = good[:-1] + bytes([good[-1] | 1])
    valid, rows = codec.decode([good[:-1], too_large, good, padding, b"", good + b"\0"])
    assert valid.tolist() == [False, False, True, False, False, False]
    assert rows[2].tolist() == ROWS[0].tolist()
    assert not np.delete(rows, 2, axis=0).any()


HUGE = 1 << 20

CATALOGUES = st.one_of(st.integers(1, 70), st.sampled_from([127, 128, 129, 1682, HUGE, 1 << 24]))


@st.composite
def partitions(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    n_items = draw(CATALOGUES)
    items = st.integers(0, n_items - 1)
    sets = draw(st.lists(st.lists(items, unique=True, max_size=30).map(sorted), max_size=6))
    return n_items, sets


def as_arrays(sets: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.concatenate([[0], np.cumsum([len(items) for items in sets])]).astype(np.int64)
    return indptr, np.array([item for items in sets for item in items], dtype=np.int32)


def encoded(sets: list[list[int]], n_items: int) -> tuple[list[bytes], np.ndarray]:
    """Return each set as the bytes of a report of its own, and its length in bits."""
    plan = ItemSets.plan(*as_arrays(sets), n_items)
    sizes = -(-plan.lengths // 8)
    starts = (np.cumsum(sizes) - sizes) * 8
    bits = np.zeros(int(sizes.sum()) * 8, dtype=np.uint8)
    plan.write(bits, starts)
    packed = np.packbits(bits).tobytes()
    return [
        packed[start // 8 : start // 8 + size]
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    ], plan.lengths


def check_round_trip(sets: list[list[int]], n_items: int) -> np.ndarray:
    reports, lengths = encoded(sets, n_items)
    assert [bool(report) for report in reports] == [bool(items) for items in sets]
    stream = BitStream(reports)
    users = np.flatnonzero([len(items) > 0 for items in sets])
    valid, counts, items, ends = read_item_sets(stream, users, n_items)
    assert valid.all()
    assert counts.tolist() == [len(sets[user]) for user in users]
    assert items.tolist() == [item for one in sets for item in one]
    assert (ends - stream.starts[users]).tolist() == lengths[users].tolist()
    return lengths


@given(partitions())
@settings(deadline=None)
def test_round_trip_item_sets(partition: tuple[int, list[list[int]]]) -> None:
    n_items, sets = partition
    check_round_trip(sets, n_items)


@pytest.mark.parametrize("n_items", [1, 2, 3, 64, 1682])
def test_full_single_and_empty_sets(n_items: int) -> None:
    singles = [[item] for item in {0, n_items // 2, n_items - 1}]
    lengths = check_round_trip([list(range(n_items)), [], *singles, []], n_items)
    assert lengths[1] == lengths[-1] == 0
    assert lengths.max() <= longest_item_set(n_items)


@pytest.mark.parametrize("density", [1e-5, 1e-3, 0.05, 0.3, 0.5, 0.9, 1.0])
def test_a_huge_catalogue_at_any_density(density: float) -> None:
    random = np.random.default_rng(3)
    items = np.flatnonzero(random.random(HUGE) < density).tolist()
    lengths = check_round_trip([items, [0, HUGE - 1], []], HUGE)
    assert lengths.max() <= longest_item_set(HUGE)


@pytest.mark.parametrize("density", [0.003, 0.03, 0.1, 0.3, 0.5])
def test_the_length_stays_near_the_number_of_sets_of_that_size(density: float) -> None:
    random = np.random.default_rng(4)
    n_items, users = 2000, 50
    sets = [np.flatnonzero(random.random(n_items) < density).tolist() for _ in range(users)]
    bound = sum(math.log2(math.comb(n_items, len(items))) for items in sets)
    header = users * (5 + count_bits(n_items))
    assert check_round_trip(sets, n_items).sum() <= 1.06 * bound + header


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=6), CATALOGUES)
@settings(deadline=None)
def test_any_bytes_are_a_set_or_are_refused(reports: list[bytes], n_items: int) -> None:
    stream = BitStream(reports)
    valid, counts, items, ends = read_item_sets(stream, np.arange(len(reports)), n_items)
    assert (counts > 0).tolist() == valid.tolist()
    assert items.size == counts.sum()
    for own in np.split(items, np.cumsum(counts)[:-1]):
        assert np.all(np.diff(own) > 0)
        assert np.all((own >= 0) & (own < n_items))
    assert np.all(ends[valid] <= stream.ends[valid])


@pytest.mark.parametrize("n_items", [1682, HUGE])
def test_an_item_outside_the_catalogue_is_refused(n_items: int) -> None:
    # The code of a larger catalogue with fields as wide, so that the bytes are read alike.
    larger = 1 << count_bits(n_items)
    if larger == n_items:
        larger, n_items = n_items, n_items - 1
    reports, _ = encoded([[0, larger - 1], [larger - 1], [0]], larger)
    valid, _, items, _ = read_item_sets(BitStream(reports), np.arange(3), n_items)
    assert valid.tolist() == [False, False, True]
    assert items.tolist() == [0]


def test_count_bits() -> None:
    for n_items in range(1, 300):
        width = count_bits(n_items)
        assert n_items <= 1 << width
        assert width == 1 or n_items > 1 << (width - 1)
