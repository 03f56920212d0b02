import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.wire import BitStream, ItemSets, longest_item_set, read_item_sets
from dprec.wire.item_sets import count_bits

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
def test_round_trip(partition: tuple[int, list[list[int]]]) -> None:
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
