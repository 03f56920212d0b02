"""Lists of items come back as they were sent, whatever their lengths; malformed ones are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.predictions import NO_ITEM
from dprec.wire import ItemListCodec
from dprec.wire.downlink import RATING

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
    ("items", "rating", "reason"),
    [([3, 3], 1.0, "twice"), ([3, 4], np.nan, "not finite"), ([3, 4], np.inf, "not finite")],
)
def test_a_list_that_cannot_be_is_refused(items: list[int], rating: float, reason: str) -> None:
    codec = ItemListCodec(20)
    (encoded,) = codec.encode(np.array([items]), np.full((1, 2), rating))
    with pytest.raises(ValueError, match=reason):
        codec.decode([encoded])


def test_other_lengths_and_unknown_items_are_refused() -> None:
    codec = ItemListCodec(20)
    (encoded,) = codec.encode(np.array([[0, 19]]), np.ones((1, 2)))
    for other in (encoded[:-1], encoded + b"\0"):
        with pytest.raises(ValueError, match="no possible length"):
            codec.decode([other])
    with pytest.raises(ValueError, match="unknown item"):
        ItemListCodec(19).decode([encoded])
    with pytest.raises(ValueError, match="no possible length"):
        ItemListCodec(2).decode(ItemListCodec(3).encode(np.array([[0, 1, 2]]), np.ones((1, 3))))
