"""Item factors on the wire: read back bit for bit, never longer than whole, refused when malformed.

Lists of items come back as they were sent, whatever their lengths; malformed ones are refused.
"""

import zlib
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dprec.predictions import NO_ITEM
from dprec.wire import BroadcastOptions, Factors, ItemListCodec, ItemTable, decode_broadcast, encode_broadcast
from dprec.wire.downlink import RATING
from tests.hostile import devices_sent

OPTIONS = [BroadcastOptions(dtype="float16", delta=True), BroadcastOptions(dtype="float32", delta=True)]
WIDE = st.floats(-1e39, 1e39, allow_nan=False)


def pair() -> st.SearchStrategy[tuple[BroadcastOptions, Factors, Factors]]:
    """Return rounded factors and what a device held before, of which they keep some numbers."""

    def build(drawn: tuple[BroadcastOptions, Any, Any, Any]) -> tuple[BroadcastOptions, Factors, Factors]:
        options, held, fresh, kept = drawn
        before = options.rounded(held)
        return options, np.where(kept, before, options.rounded(fresh)), before

    shapes = arrays.array_shapes(min_dims=2, max_dims=2, max_side=12)
    return shapes.flatmap(
        lambda shape: st.tuples(
            st.sampled_from(OPTIONS),
            arrays.arrays(np.float64, shape, elements=WIDE),
            arrays.arrays(np.float64, shape, elements=WIDE),
            arrays.arrays(np.bool_, shape),
        )
    ).map(build)


@given(pair())
def test_factors_come_back_bit_for_bit(case: tuple[BroadcastOptions, Factors, Factors]) -> None:
    options, factors, held = case
    whole, changes = encode_broadcast(factors), encode_broadcast(factors, held)
    assert len(whole) == 1 + factors.nbytes
    assert len(changes) <= len(whole)
    for data, known in ((whole, None), (whole, held), (changes, held)):
        read = decode_broadcast(data, options, factors.shape, known)
        assert read.dtype == factors.dtype
        assert read.tobytes() == factors.tobytes()


@given(st.data(), pair())
def test_malformed_bytes_are_refused_or_read_as_finite_factors(
    data: st.DataObject, case: tuple[BroadcastOptions, Factors, Factors]
) -> None:
    options, factors, held = case
    known, good = held.copy(), encode_broadcast(factors, held)
    for read in devices_sent(data, good, lambda sent: decode_broadcast(sent, options, factors.shape, known)):
        assert read.shape == factors.shape
        assert np.isfinite(read).all()
    with pytest.raises(ValueError):
        decode_broadcast(good + b"\0", options, factors.shape, known)
    assert known.tobytes() == held.tobytes()


def test_devices_see_finite_numbers_and_no_negative_zeros() -> None:
    narrow = OPTIONS[0].rounded(np.array([[1e9, -1e9], [-1e-12, -0.0]]))
    assert narrow.tolist() == [[65504.0, -65504.0], [0.0, 0.0]]
    assert not np.signbit(narrow[1]).any()
    assert OPTIONS[1].rounded(np.array([[1e300]])).tolist() == [[float(np.finfo(np.float32).max)]]


CUTS = np.array([-1.0, 0.25, 1.5])
WIDTHS = 6
START = WIDTHS + (3 + 12) * 4
"""Where means and deviations begin, with their steps: after widths, cut points and leanings."""


def table(items: int = 50, dimensions: int = 4, seed: int = 0) -> ItemTable:
    random = np.random.default_rng(seed)
    return ItemTable(
        CUTS,
        random.normal(size=items),
        random.random(items),
        random.normal(size=(items, dimensions)) * 3,
        random.normal(size=(items, 2)),
        random.normal(size=(items, 1)),
        random.random((items, 3)) < 0.5,
        random.normal(size=(dimensions, 3)).astype(np.float32).astype(np.float64),
    )


def decoded(data: bytes, items: int = 50) -> ItemTable:
    return ItemTable.decode(data, n_levels=4, n_items=items)


def columns(of: ItemTable) -> list[np.ndarray]:
    return [of.means, of.deviations, *of.embeddings.T, *of.item_factors.T, *of.numbers.T]


@given(items=st.integers(1, 40), dimensions=st.integers(0, 5), seed=st.integers(0, 99))
def test_every_number_comes_back_within_half_a_step_of_its_column(
    items: int, dimensions: int, seed: int
) -> None:
    sent = table(items, dimensions, seed)
    received = decoded(sent.encode(), items)
    for one, other, step in zip(columns(sent), columns(received), sent.sent_steps, strict=True):
        assert np.abs(one - other).max() <= 0.5001 * step
    assert received.encode() == sent.encode()
    np.testing.assert_array_equal(received.cuts, CUTS)
    np.testing.assert_array_equal(received.categories, sent.categories)
    np.testing.assert_array_equal(received.leanings, sent.leanings)


@given(st.lists(st.floats(0, 900), min_size=1, max_size=60))
def test_cautions_follow_the_table_and_are_rounded_up(cautions: list[float]) -> None:
    """None is lower than it was, the rest of the table is what it was, and an item takes a byte at most."""
    items, given_ones = len(cautions), np.array(cautions)
    sent = table(items)
    data = replace(sent, cautions=given_ones).encode()
    assert data.startswith(sent.encode())
    assert len(data) <= len(sent.encode()) + items + 4 + 16
    received = decoded(data, items).cautions
    assert received is not None
    assert (received >= given_ones * (1 - 1e-12) - 1e-300).all()
    assert (received - given_ones).max() <= given_ones.max() / 255 * 1.0001 + 1e-40
    assert decoded(sent.encode(), items).cautions is None


@given(data=st.data())
def test_bytes_from_anywhere_are_a_table_or_refused(data: st.DataObject) -> None:
    for received in devices_sent(data, table().encode(), decoded):
        assert np.isfinite(received.embeddings).all()


SIGNALLING = np.frombuffer(b"\x01\x00\x80\x7f", dtype="<f4")[0]
"""Not a number, and one of which arithmetic complains."""


@cache
def damaged() -> dict[str, bytes]:
    whole, cautious = table().encode(), replace(table(), cautions=np.linspace(0, 2, 50)).encode()
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = whole[: START + 12] + stream.compress(bytes(5_000_000)) + stream.flush()
    end = START + 8
    numbers = np.frombuffer(whole[WIDTHS:end], dtype="<f4")

    def with_numbers(place: int, value: float | np.float32) -> bytes:
        changed = numbers.copy()
        changed[place] = value
        return whole[:WIDTHS] + changed.tobytes() + whole[end:]

    return {
        "nothing": b"",
        "cut": whole[:-1],
        "more": whole + b"x",
        "bomb": bomb,
        "not finite": with_numbers(-2, np.nan),
        "a signalling NaN": with_numbers(2, SIGNALLING),
        "a signalling NaN as a step": with_numbers(-1, SIGNALLING),
        "far too large": with_numbers(-2, 1e30),
        "a step of 0": with_numbers(-1, 0.0),
        "a cut far too high": with_numbers(2, 1e30),
        "a cut that is infinite": with_numbers(2, np.inf),
        "cuts out of order": with_numbers(1, -5.0),
        "leanings far too large": with_numbers(-3, 1e30),
        "cautions and more": cautious + b"x",
        "cautions without a step": whole + bytes(4) + cautious[len(whole) + 4 :],
        "a signalling NaN as a step of cautions": whole + SIGNALLING.tobytes() + cautious[len(whole) + 4 :],
        "cautions far too large": whole + np.float32(1e30).tobytes() + cautious[len(whole) + 4 :],
        "a bomb of cautions": cautious[: len(whole) + 4] + zlib.compress(bytes(5_000_000)),
        "cautions of other items": cautious[: len(whole) + 4] + zlib.compress(bytes(49)),
        "leanings of some dimensions": whole[: WIDTHS - 1] + b"\x03" + whole[WIDTHS:],
    }


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("what", damaged())
def test_a_damaged_table_is_refused(what: str) -> None:
    with pytest.raises(ValueError, match=r"a table|bytes"):
        decoded(damaged()[what])


def test_few_bytes_do_not_become_a_table_that_fills_the_memory() -> None:
    n_items, widths = 1000, bytes(3) + (65535).to_bytes(2, "little") + bytes(1)
    numbers = np.array([-1, -0.5, 0.5, 1, 0, 0], dtype="<f4").tobytes()
    data = widths + numbers + zlib.compress(bytes(2 * n_items + 65535 * n_items // 8), 9)
    assert len(data) < 10_000
    with pytest.raises(ValueError, match="2 numbers and 65535 categories for 1000 items"):
        ItemTable.decode(data, n_levels=5, n_items=n_items)


LISTS = st.integers(1, 300).flatmap(
    lambda n_items: st.tuples(
        st.just(n_items),
        st.lists(st.lists(st.integers(0, n_items - 1), unique=True, max_size=12), min_size=1, max_size=5),
    )
)


def padded(lists: list[list[int]]) -> np.ndarray:
    longest = max(map(len, lists))
    return np.array([[*row, *[NO_ITEM] * (longest - len(row))] for row in lists], dtype=np.int64)


@given(LISTS, st.floats(0, 5, width=32))
def test_what_is_encoded_comes_back(drawn: tuple[int, list[list[int]]], rating: float) -> None:
    n_items, lists = drawn
    codec, items = ItemListCodec(n_items), padded(lists)
    ratings = np.where(items == NO_ITEM, np.nan, rating + items)
    encoded = codec.encode(items, ratings)
    decoded, values = codec.decode(encoded)
    np.testing.assert_array_equal(decoded, items)
    np.testing.assert_array_equal(values, ratings.astype(RATING))
    # The bytes follow from the lengths alone, and a user's are its own.
    assert codec.sizes(np.array([len(row) for row in lists])).tolist() == [len(each) for each in encoded]
    assert [
        codec.encode(padded([row]), values[user : user + 1])[0] for user, row in enumerate(lists)
    ] == encoded


@given(st.integers(1, 70), st.binary(max_size=40))
def test_whatever_is_read_is_a_list_of_the_catalogue(n_items: int, noise: bytes) -> None:
    codec = ItemListCodec(n_items)
    try:
        items, ratings = codec.decode([noise])
    except ValueError:
        return
    assert np.unique(items).size == items.size
    assert items.min(initial=0) >= 0
    assert items.max(initial=0) < n_items
    assert np.isfinite(ratings).all()
    assert codec.encode(items, ratings) == [noise]


@pytest.mark.parametrize(
    ("items", "rating", "read_by", "reason"),
    [
        ([3, 3], 1.0, 20, "twice"),
        ([3, 4], np.nan, 20, "not finite"),
        ([3, 4], np.inf, 20, "not finite"),
        ([0, 19], 1.0, 19, "unknown item"),
        ([0, 1, 2], 1.0, 2, "no possible length"),
    ],
)
def test_a_list_that_cannot_be_is_refused(items: list[int], rating: float, read_by: int, reason: str) -> None:
    (encoded,) = ItemListCodec(20).encode(np.array([items]), np.full((1, len(items)), rating))
    with pytest.raises(ValueError, match=reason):
        ItemListCodec(read_by).decode([encoded])
    for other in (encoded[:-1], encoded + b"\0"):
        with pytest.raises(ValueError, match="no possible length"):
            ItemListCodec(20).decode([other])
