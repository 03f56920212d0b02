"""Symbols, slopes, fields and sets of items as bits: read as they were written, refused when malformed.

All of it holds for the compiled loops and for the interpreted ones; see `conftest.py`.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.arrays import Pieces, offsets
from dprec.completion import levels_of, slope_channel
from dprec.kernels.codec import count_bits
from dprec.wire import Batches, FixedFields, ItemSets, SymbolRows, decode_item_sets, encode_item_sets
from dprec.wire.symbols import MAX_FIELD_BITS, PrefixCode, read_item_sets, written

pytestmark = pytest.mark.usefixtures("compiled_or_not")

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
    indptr = offsets(np.array([row.size for row in rows], dtype=np.int64))
    reports = written(indptr, words=(code, np.concatenate(rows)))
    words = [digits_of(*pair) for pair in zip(code.words.tolist(), code.lengths.tolist(), strict=True)]
    digits = ["".join(words[symbol] for symbol in row) for row in rows]
    assert reports == [packed(row) for row in digits]
    places = 8 * reports.bounds[:-1]
    symbols = code.read(reports, places, indptr)
    assert symbols.tolist() == [int(symbol) for row in rows for symbol in row]
    assert (places - 8 * reports.bounds[:-1]).tolist() == [len(row) for row in digits]


def digits_of(number: int, width: int) -> str:
    return f"{number:0{width}b}" if width else ""


def packed(digits: str) -> bytes:
    padded = digits.ljust(-(-len(digits) // 8) * 8, "0")
    return bytes(int(padded[start : start + 8], 2) for start in range(0, len(padded), 8))


@pytest.mark.parametrize("shares", CASES)
def test_the_code_is_complete_and_fits_a_field_and_symbols_come_back(shares: np.ndarray) -> None:
    code = PrefixCode.for_distribution(shares)
    assert code.longest <= MAX_FIELD_BITS
    # Kraft's equality: every sequence of bits decodes, so that a decoder cannot get stuck.
    assert sum(2.0**-code.lengths) == 1
    random = np.random.default_rng(0)
    rows = [random.integers(0, shares.size, size) for size in (0, 1, 300, 7)]
    round_trip(code, [np.arange(shares.size), *rows])


@pytest.mark.parametrize("shares", CASES)
def test_a_row_that_ends_before_its_symbols_do_is_refused(shares: np.ndarray) -> None:
    """Any bits decode, but none of another row, and none after the last one."""
    code = PrefixCode.for_distribution(shares)
    random = np.random.default_rng(2)
    counts = np.array([700, 250, 40, 1000])
    rows = [random.integers(0, shares.size, count) for count in counts]
    whole = list(written(offsets(counts), words=(code, np.concatenate(rows))))
    if code.longest == 0:
        assert whole == [b""] * 4
        return
    for spoilt in (whole[1][:-1], whole[1] + b"\0", b"", bytes(100_000), random.bytes(900)):
        reports = Pieces.of([whole[0], spoilt, *whole[2:]])
        places = 8 * reports.bounds[:-1]
        symbols = code.read(reports, places, offsets(counts))
        assert (places >= 0).tolist() == [True, False, True, True]
        kept = np.repeat(places >= 0, counts)
        assert symbols[kept].tolist() == np.concatenate([rows[0], *rows[2:]]).tolist()


@given(st.lists(st.floats(0, 1), min_size=2, max_size=64).filter(lambda weights: sum(weights) > 0))
def test_the_mean_length_is_within_one_bit_of_the_entropy(weights: list[float]) -> None:
    shares = np.array(weights) / sum(weights)
    code = PrefixCode.for_distribution(shares)
    used = shares[shares > 0]
    entropy = float(-(used * np.log2(used)).sum())
    # Rare symbols are coded as more likely than they are, which takes a little from the others.
    assert entropy - 1e-9 <= code.expected_bits(shares) <= entropy + 1 + 0.1


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


def test_slopes_are_clamped_and_rounded() -> None:
    slopes = np.array([-9.0, -0.5, -0.001, 0.0, 0.001, 0.25, 0.5, 3.0])
    levels = levels_of(slopes, 0.5)
    np.testing.assert_array_equal(CHANNEL.inputs[levels - 1], [-0.5, -0.5, 0, 0, 0, 0.25, 0.5, 0.5])


@given(st.integers(0, 62), st.data())
def test_fields_are_the_binary_digits_of_their_values_end_to_end(width: int, data: st.DataObject) -> None:
    row = data.draw(st.lists(st.integers(0, 2**width - 1), max_size=9))
    codec, rows = FixedFields(len(row), 2**width - 1), np.array([row, row[::-1]], dtype=np.int64)
    pieces = codec.encode(rows)
    digits = ["".join(digits_of(value, width) for value in own) for own in (row, row[::-1])]
    assert pieces == [packed(own) for own in digits]
    valid, read = codec.decode(pieces)
    assert valid.all()
    assert read.tolist() == rows.tolist()


@settings(report_multiple_bugs=False)
@given(st.lists(st.lists(st.integers(0, 5050), max_size=6), max_size=5), st.sampled_from([5050, 2**23]))
def test_batches_say_what_was_sent_and_not_in_which_order(batches: list[list[int]], largest: int) -> None:
    codec, counts = Batches(largest), np.array([len(batch) for batch in batches], dtype=np.int64)
    pieces = codec.encode(counts, np.array([message for batch in batches for message in batch], np.int64))
    assert pieces.sizes.tolist() == codec.sizes(counts).tolist()
    assert pieces == codec.encode(counts, np.array([m for own in batches for m in own[::-1]], np.int64))
    valid, found, messages = codec.decode(pieces, 0, 6)
    assert valid.all()
    assert found.tolist() == counts.tolist()
    assert messages.tolist() == [message for batch in batches for message in sorted(batch)]


def test_malformed_batches_are_rejected_alone_and_have_no_messages() -> None:
    codec = Batches(1682)
    assert (codec.width, Batches(3).width) == (11, 8)
    good, too_large = (codec.encode(np.array([3]), np.array([0, 5, top]))[0] for top in (1682, 1683))
    too_few, too_many = (codec.encode(np.array([size]), np.arange(size))[0] for size in (2, 5))
    pieces = [too_large, good, padded(good), good[:-1], too_few, too_many, bytes(10**6), b""]
    valid, counts, messages = codec.decode(pieces, 3, 4)
    assert valid.tolist() == [place == 1 for place in range(8)]
    assert counts.tolist() == [0, 3, 0, 0, 0, 0, 0, 0]
    assert messages.tolist() == [0, 5, 1682]


def padded(good: bytes) -> bytes:
    """Return bytes of which a bit that means nothing is set."""
    return good[:-1] + bytes([good[-1] | 1])


def test_malformed_rows_are_rejected_alone() -> None:
    codec, row = FixedFields(3, 1682), [0, 5, 1682]
    good, too_large = codec.encode(np.array([row, [0, 1683, 0]]))
    valid, rows = codec.decode([good[:-1], too_large, good, padded(good), b"", good + b"\0"])
    assert valid.tolist() == [False, False, True, False, False, False]
    assert rows[2].tolist() == row
    assert not np.delete(rows, 2, axis=0).any()


@given(st.lists(st.integers(0, 63), min_size=1, max_size=8), st.binary(max_size=12))
def test_malformed_symbols_are_rejected_alone(row: list[int], noise: bytes) -> None:
    counts = np.array([len(row), len(row)])
    (good,) = CODEC.encode(counts[:1], np.array(row, dtype=np.uint16))
    for bad in (good[:-1], good + b"\x00", b"", noise):
        valid, decoded = CODEC.decode([bad, good], counts)
        assert valid[1]
        assert not valid[0] or bad == noise
        assert decoded.size == valid.sum() * len(row)


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


def check_round_trip(sets: list[list[int]], n_items: int) -> np.ndarray:
    indptr, items = as_arrays(sets)
    plan = ItemSets.plan(indptr, items, n_items)
    reports = written(indptr, plan)
    assert [bool(report) for report in reports] == [bool(items) for items in sets]
    places, cells, read = read_item_sets(reports, n_items)
    assert cells.tolist() == indptr.tolist()
    assert read.tolist() == items.tolist()
    assert (places - 8 * reports.bounds[:-1]).tolist() == plan.bits.tolist()
    return plan.bits


@given(partitions())
@settings(deadline=None)
def test_round_trip_item_sets(partition: tuple[int, list[list[int]]]) -> None:
    n_items, sets = partition
    check_round_trip(sets, n_items)


@pytest.mark.parametrize("density", [0.003, 0.03, 0.1, 0.3, 0.5, 1.0])
def test_the_length_stays_near_the_number_of_sets_of_that_size(density: float) -> None:
    random = np.random.default_rng(4)
    n_items, users = 2000, 20
    sets = [np.flatnonzero(random.random(n_items) < density).tolist() for _ in range(users)]
    bound = sum(math.log2(math.comb(n_items, len(items))) for items in sets)
    bits = check_round_trip(sets, n_items)
    assert bits.max() <= 5 + n_items, "a bitmap is as long"
    if density < 1:
        assert bits.sum() <= 1.06 * bound + users * (5 + count_bits(n_items))


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6), CATALOGUES)
@settings(deadline=None)
def test_any_bytes_are_a_set_or_are_refused(reports: list[bytes], n_items: int) -> None:
    rows = Pieces.of(reports)
    valid, counts, items, ends = decode_item_sets(rows, n_items)
    assert np.all((counts > 0) <= valid)
    assert (valid & (counts == 0)).tolist() == [report == b"" for report in reports]
    assert items.size == counts.sum()
    for own in np.split(items, np.cumsum(counts)[:-1]):
        assert np.all(np.diff(own) > 0)
        assert np.all((own >= 0) & (own < n_items))
    assert np.all((ends <= rows.bounds[1:])[valid])
    # Neither what is accepted nor what is read depends on the neighbours.
    for row, report in enumerate(reports):
        alone = decode_item_sets(Pieces.of([report]), n_items)
        assert alone[0][0] == valid[row]
        assert alone[2].tolist() == np.split(items, np.cumsum(counts)[:-1])[row].tolist()


@pytest.mark.parametrize("n_items", [1682, HUGE - 1])
def test_an_item_outside_the_catalogue_is_refused(n_items: int) -> None:
    # The code of a larger catalogue with fields as wide, so that the bytes are read alike.
    larger = 1 << count_bits(n_items)
    reports = encode_item_sets(*as_arrays([[0, larger - 1], [larger - 1], [0]]), larger)
    valid, _, items, _ = decode_item_sets(reports, n_items)
    assert valid.tolist() == [False, False, True]
    assert items.tolist() == [0]


def gaps(parameter: int, count: int, quotients: list[int], rest: str, width: int) -> bytes:
    """Return a set as an attacker may write it."""
    unary = "".join("0" * quotient + "1" for quotient in quotients)
    return packed(digits_of(parameter, 5) + digits_of(count - 1, width) + unary + rest)


def test_what_sets_look_like() -> None:
    """Bit by bit: parameter, count, quotients, remainders; or 31 and the bitmap."""
    width, zeros = count_bits(100), "0" * 6
    assert encode_item_sets(*as_arrays([[9, 85]]), 100) == [gaps(4, 2, [0, 4], f"{9:04b}{11:04b}", width)]
    assert encode_item_sets(*as_arrays([[0, 1, 3, 4], []]), 7) == [packed("11111" + "1101100"), b""]
    assert decode_item_sets(Pieces.of([gaps(5, 1, [0], "0" + zeros, width)]), 100)[0].tolist() == [True]


@pytest.mark.parametrize(
    "spoilt",
    [
        gaps(25, 1, [0], "0" * 25, 7),
        gaps(30, 1, [0], "0" * 30, 7),
        gaps(0, 101, [0] * 101, "", 7),
        gaps(0, 1, [100], "", 7),
        gaps(6, 2, [0, 0], "111111", 7),
        gaps(6, 1, [1], "111111", 7),
        gaps(24, 1, [0], "1" * 24, 7),
        gaps(5, 3, [0, 0], "0" * 20, 7),
        gaps(5, 128, [0] * 10, "", 7),
        gaps(0, 1, [0], "1", 7),
        packed("11111" + "0" * 100),
        packed("11111" + "1" * 90),
        packed("11111" + "1" * 101),
        b"\0",
    ],
    ids=range(14),
)
def test_sets_that_nobody_writes_are_refused_alone(spoilt: bytes) -> None:
    good = encode_item_sets(*as_arrays([[9, 85]]), 100).data
    valid, counts, items, _ = decode_item_sets(Pieces.of([good, spoilt, good]), 100)
    assert valid.tolist() == [True, False, True]
    assert counts.tolist() == [2, 0, 2]
    assert items.tolist() == [9, 85] * 2
