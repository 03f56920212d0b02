import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.wire import ItemTable

CUTS = np.array([-1.0, 0.25, 1.5])
START = 5 + (3 + 9) * 4
"""Where the compressed columns begin: after the widths, the cut points and the columns' steps."""


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
    )


def decoded(data: bytes, items: int = 50) -> ItemTable:
    return ItemTable.decode(data, n_levels=4, n_items=items)


@given(items=st.integers(1, 40), dimensions=st.integers(0, 5), seed=st.integers(0, 99))
def test_every_number_comes_back_within_half_a_step_of_its_column(
    items: int, dimensions: int, seed: int
) -> None:
    sent = table(items, dimensions, seed)
    received = decoded(sent.encode(), items)
    for one, other in (
        (sent.means, received.means),
        (sent.deviations, received.deviations),
        *zip(sent.embeddings.T, received.embeddings.T, strict=True),
        *zip(sent.item_factors.T, received.item_factors.T, strict=True),
        *zip(sent.numbers.T, received.numbers.T, strict=True),
    ):
        assert np.abs(one - other).max() <= np.abs(one).max() / 31 * 0.5001
    np.testing.assert_array_equal(received.cuts, CUTS)
    np.testing.assert_array_equal(received.categories, sent.categories)


def test_a_number_costs_less_than_a_byte() -> None:
    assert len(table(2000, 10).encode()) < 2000 * 13


def test_directions_have_lengths_below_1() -> None:
    lengths = np.sqrt((table().directions(0.3) ** 2).sum(axis=1))
    distances = np.sqrt((table().embeddings ** 2).sum(axis=1))
    np.testing.assert_allclose(lengths, distances / np.sqrt(distances**2 + 0.3))


@given(data=st.binary(max_size=80))
def test_bytes_from_anywhere_are_a_table_or_refused(data: bytes) -> None:
    for attempt in (data, table().encode()[: len(data)] + data, data + table().encode()):
        try:
            received = decoded(attempt)
        except ValueError:
            continue
        assert np.isfinite(received.embeddings).all()


def damaged() -> dict[str, bytes]:
    whole = table().encode()
    bomb = whole[:START] + zlib.compress(bytes(50_000_000))
    numbers = np.frombuffer(whole[5:START], dtype="<f4")

    def with_numbers(place: int, value: float) -> bytes:
        changed = numbers.copy()
        changed[place] = value
        return whole[:5] + changed.tobytes() + whole[START:]

    return {
        "nothing": b"",
        "cut": whole[:-1],
        "more": whole + b"x",
        "bomb": bomb,
        "not finite": with_numbers(4, np.nan),
        "far too large": with_numbers(3, 1e30),
        "a cut far too high": with_numbers(2, 1e30),
        "a cut that is infinite": with_numbers(2, np.inf),
        "cuts out of order": with_numbers(1, -5.0),
        "negative deviations": with_numbers(4, -1.0),
    }


@pytest.mark.parametrize("what", damaged())
def test_a_damaged_table_is_refused(what: str) -> None:
    with pytest.raises(ValueError, match="a table"):
        decoded(damaged()[what])


def test_a_table_for_other_items_is_refused() -> None:
    with pytest.raises(ValueError, match="51 items"):
        decoded(table().encode(), items=51)
    with pytest.raises(ValueError, match="a table"):
        ItemTable.decode(table().encode(), n_levels=5, n_items=50)


def test_few_bytes_do_not_become_a_table_that_fills_the_memory() -> None:
    n_items, widths = 1000, bytes(3) + (65535).to_bytes(2, "little")
    numbers = np.array([-1, -0.5, 0.5, 1, 0, 0], dtype="<f4").tobytes()
    data = widths + numbers + zlib.compress(bytes(2 * n_items + 65535 * n_items // 8), 9)
    assert len(data) < 10_000
    with pytest.raises(ValueError, match="2 numbers and 65535 categories for 1000 items"):
        ItemTable.decode(data, n_levels=5, n_items=n_items)
