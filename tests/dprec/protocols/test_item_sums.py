"""Sums of items that go together: what users add to that of items and groups, and what devices are sent."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.arrays import Floats
from dprec.lists.groups import NO_GROUP
from dprec.protocols.gram import PairTableOptions, SetDevice
from dprec.protocols.item_sums import GroupSum
from dprec.ratings import POSITIVE
from dprec.sums import UNIT
from dprec.wire import Reader, encode_items
from tests import make
from tests.summing import contributions, dense

ITEMS, ASKED, COUNT = 12, np.array([0, 2, 3, 5, 8, 9, 11], dtype=np.int32), 3
GROUPS = np.array([NO_GROUP, 1, 1, 0, NO_GROUP, 2, 1], dtype=np.uint8)
IN_TABLE = 5


def asked(fewest: int = 1) -> GroupSum:
    return GroupSum(ASKED, GROUPS, COUNT, fewest)


def device(fewest: int = 1) -> SetDevice:
    """Return a device that is asked about groups."""
    table = PairTableOptions(
        items=IN_TABLE, popularity_share=0.2, groups=COUNT, grouped_items=ASKED.size, fewest=fewest
    )
    return replace(SetDevice.begun(table, ITEMS), groups=asked(fewest))


def added(*sets: set[int], fewest: int = 1) -> Floats:
    """Return what users add to the sum of items and groups, shape (users, items asked about * groups)."""
    people = make.profiles_of_sets(make.sparse_sets(*sets, items=ITEMS))
    own = device(fewest)
    layout = own.release(3)
    found = dense(contributions(own, people, layout), layout)
    # As a trusted server reads them from what it is sent.
    valid, total = layout.added_up(contributions(own, people, layout).encode(layout))
    assert valid.all()
    np.testing.assert_array_equal(total.ravel() * UNIT, found.sum(axis=0))
    return found


def expected(own: set[int], fewest: int) -> Floats:
    """Return what a user adds, by definition."""
    told, table = own & set(ASKED.tolist()), np.zeros((ASKED.size, COUNT))
    group_of = dict(zip(ASKED.tolist(), GROUPS.tolist(), strict=True))
    for place, item in enumerate(ASKED.tolist()):
        if item in told:
            counts = Counter(group_of[other] for other in told - {item})
            squares = np.array([counts[group] ** 2 for group in range(COUNT)])
            length = float(np.linalg.norm(squares)) or 1.0
            table[place] = squares / length / math.sqrt(max(len(told), fewest))
    return table.ravel()


SETS = st.lists(st.sets(st.integers(0, ITEMS - 1)), min_size=1, max_size=5)


@settings(deadline=None)
@given(sets=SETS, fewest=st.sampled_from([1, 2, 4]))
def test_each_item_adds_the_groups_of_all_others_and_all_together_have_length_one(
    sets: list[set[int]], fewest: int
) -> None:
    found = added(*sets, fewest=fewest)
    np.testing.assert_allclose(found, [expected(own, fewest) for own in sets], rtol=0, atol=2 * UNIT)
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-9


@pytest.mark.parametrize("fewest", [1, 2, 4])
def test_the_largest_number_is_as_large_as_is_said_and_a_single_item_adds_nothing(fewest: int) -> None:
    every = [{item for place, item in enumerate(ASKED.tolist()) if bits >> place & 1} for bits in range(128)]
    found, layout = added(*every, fewest=fewest), device(fewest).release(3)
    assert found.max() == pytest.approx(layout.largest, rel=1e-8)
    sizes = np.array([len(own) for own in every])
    assert not found[sizes < 2].any()
    assert layout.honest(np.array([0, 1])).tolist() == [0, 0]
    lengths = np.linalg.norm(found, axis=1)[sizes >= 2] / np.sqrt(sizes[sizes >= 2])
    assert (lengths <= layout.honest(sizes[sizes >= 2]) * (1 + 1e-9)).all()


@pytest.mark.parametrize("item", range(ITEMS))
def test_numbers_that_an_item_changes_are_about_it(item: int) -> None:
    """Its own, and those of its group; others by their lengths alone."""
    own = device()
    about = own.about(np.array([item]), own.release(3)).reshape(ASKED.size, COUNT)
    place = np.flatnonzero(np.isin(ASKED, item))
    if not place.size:
        assert not about.any()
        return
    group = GROUPS[place[0]]
    theirs = np.zeros_like(about)
    theirs[place] = True
    if group != NO_GROUP:
        theirs[:, group] = True
    assert np.array_equal(about, theirs)


def test_groups_are_received_as_they_were_sent() -> None:
    sizes = ASKED.size, IN_TABLE, COUNT
    found = GroupSum.decode(asked().encode(ITEMS), sizes, ITEMS, 1)
    assert (found.items.tolist(), found.groups.tolist()) == (ASKED.tolist(), GROUPS.tolist())
    own = device()
    received = SetDevice.decode(own.encode(), own.table, ITEMS)
    assert received.encode() == own.encode()
    assert received.release(3).n_rows == own.release(3).n_rows == ASKED.size * COUNT


def sent(**changes: Any) -> bytes:
    return replace(asked(), **changes).encode(ITEMS)


MORE_IN_TABLE, FEWER_ITEMS = np.where(GROUPS == NO_GROUP, 0, GROUPS).astype(np.uint8), ASKED[:-1]
WRONG = {
    "cut off": sent()[:-1],
    "too long": sent() + b"\0",
    "nothing": b"",
    "a group beyond the last": sent(groups=np.where(GROUPS == 2, COUNT, GROUPS).astype(np.uint8)),
    "more items in the table": sent(groups=MORE_IN_TABLE),
    "fewer items": sent(items=FEWER_ITEMS, groups=GROUPS[:-1]),
    "items alone": encode_items(ASKED, ITEMS),
    "an item beyond the last": replace(asked(), items=ASKED + 2).encode(ITEMS + 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_bytes_that_are_no_groups_are_refused(name: str) -> None:
    own = device()
    with pytest.raises(ValueError, match="bytes"):
        GroupSum.decode(WRONG[name], (ASKED.size, IN_TABLE, COUNT), ITEMS, 1)
    with pytest.raises(ValueError, match="bytes"):
        SetDevice.decode(b"\3" + WRONG[name], own.table, ITEMS)
    without = replace(own.table, groups=0)
    with pytest.raises(ValueError, match="neither a search"):
        SetDevice.decode(own.encode(), without, ITEMS)


def test_a_set_of_another_size_is_no_set_of_a_table() -> None:
    read = Reader(encode_items(ASKED, ITEMS) + b"rest")
    assert (read.item_set(ITEMS, ASKED.size).tolist(), read.rest()) == (ASKED.tolist(), b"rest")
    for size in (ASKED.size - 1, ASKED.size + 1):
        with pytest.raises(ValueError, match=f"no set of {size} items"):
            Reader(encode_items(ASKED, ITEMS)).item_set(ITEMS, size)


def test_before_groups_are_known_all_of_the_table_is_one() -> None:
    begun = SetDevice.begun(device().table, ITEMS)
    assert begun.known_groups.groups.tolist() == [0] * IN_TABLE + [NO_GROUP] * (ASKED.size - IN_TABLE)
    assert begun.release(3).n_rows == ASKED.size * COUNT
    assert begun.release(3).scale == POSITIVE
