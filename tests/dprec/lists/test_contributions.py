"""What a device contributes for lists: vectors of norm 1 at most, whatever its set, and their sums."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.lists.contributions import (
    DIAGONAL,
    PairLayout,
    PopularityLayout,
    ProductLayout,
    SetContributions,
    SetLayout,
)
from dprec.sums import UNIT, TrustedAggregation

ITEMS = 7
SETS = st.lists(st.sets(st.integers(0, ITEMS - 1)), min_size=1, max_size=6)
FEATURES = np.array([[1, 0, 0.5], [0, 1, 0], [1, 1, 0], [0, 0, 0], [0.3, 0, 2], [0, 1, 1], [0, 0, 1]])
PRODUCTS = ProductLayout(ITEMS, np.array([0, 1, 3, 5, 6], dtype=np.int32), FEATURES)
LAYOUTS = [PopularityLayout(ITEMS), PairLayout(ITEMS), PRODUCTS]
BOUNDED = [replace(layout, fewest=3) for layout in LAYOUTS]


def flat(sets: list[set[int]]) -> tuple[np.ndarray, np.ndarray]:
    counts = [len(each) for each in sets]
    items = [item for each in sets for item in sorted(each)]
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.array(items, dtype=np.int32)


def dense(layout: SetLayout, own: set[int]) -> np.ndarray:
    """Return the vector of a set, made from its definition."""
    x = np.zeros(ITEMS)
    x[list(own)] = 1
    if isinstance(layout, PopularityLayout):
        return x / max(1.0, float(np.sqrt(len(own))))
    if isinstance(layout, ProductLayout):
        table = np.zeros((5, 3))
        taking_part = own & {0, 1, 3, 5, 6}
        for row, item in enumerate([0, 1, 3, 5, 6]):
            others = FEATURES[list(own - {item})].sum(axis=0)
            if item in own and others.any():
                table[row] = others / np.linalg.norm(others) / np.sqrt(len(taking_part))
        return table.ravel()
    pairs = (np.outer(x, x) * np.where(np.eye(ITEMS), DIAGONAL, 1))[np.triu_indices(ITEMS)]
    return pairs / max(float(np.linalg.norm(pairs)), DIAGONAL)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(sets=SETS)
def test_vectors_are_those_of_the_sets_and_no_longer_than_one(
    layout: SetLayout, sets: list[set[int]]
) -> None:
    vectors = SetContributions(*flat(sets)).vectors(layout)
    numbers = vectors.numbers[:, 0]
    for user, own in enumerate(sets):
        cells = slice(vectors.indptr[user], vectors.indptr[user + 1])
        assert (np.diff(vectors.rows[cells]) > 0).all()
        found = np.zeros(layout.n_rows)
        found[vectors.rows[cells]] = numbers[cells] * UNIT
        assert np.allclose(found, dense(layout, own), rtol=0, atol=2 * UNIT)
        assert sum(int(number) ** 2 for number in numbers[cells]) <= int(1 / UNIT) ** 2


@pytest.mark.parametrize("layout", [*LAYOUTS, *BOUNDED, PopularityLayout(ITEMS, normalised=False)])
@given(own=st.sets(st.integers(0, ITEMS - 1)))
def test_no_number_of_a_set_is_larger_than_is_said_and_some_are_as_large(
    layout: SetLayout, own: set[int]
) -> None:
    def largest(*sets: set[int]) -> float:
        return float(SetContributions(*flat([*sets])).vectors(layout).numbers.max(initial=0)) * UNIT

    assert largest(own) <= layout.largest
    some = [{item for item in range(ITEMS) if bits >> item & 1} for bits in range(1 << ITEMS)]
    # Features may be spread over several numbers of an item.
    assert largest(*some) >= layout.largest * (0.9 if isinstance(layout, ProductLayout) else 1 - 1e-9)


@pytest.mark.parametrize(("layout", "bounded"), [*zip(LAYOUTS, BOUNDED, strict=True)])
@given(own=st.sets(st.integers(0, ITEMS - 1)))
def test_small_sets_count_as_larger_ones_and_large_ones_as_they_are(
    layout: SetLayout, bounded: SetLayout, own: set[int]
) -> None:
    one, other = (SetContributions(*flat([own])).vectors(each) for each in (layout, bounded))
    assert np.array_equal(one.rows, other.rows)
    counting = own & {0, 1, 3, 5, 6} if isinstance(layout, ProductLayout) else own
    if len(counting) >= 3 or not one.numbers.any():
        assert np.array_equal(one.numbers, other.numbers)
        return
    # As if the weight of 3 items were on fewer.
    weight = {"PopularityLayout": 3.0, "PairLayout": DIAGONAL**2 * 3 + 3, "ProductLayout": 3.0}
    n = len(counting)
    own_weight = DIAGONAL**2 * n + n * (n - 1) / 2 if isinstance(layout, PairLayout) else n
    expected = one.numbers * np.sqrt(own_weight / weight[type(layout).__name__])
    assert np.allclose(other.numbers, expected, rtol=0, atol=2)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(sets=SETS, cut=st.integers(0, 6))
def test_sums_do_not_depend_on_partitions_and_reject_what_is_no_set(
    layout: SetLayout, sets: list[set[int]], cut: int
) -> None:
    own = SetContributions(*flat(sets))
    reports = TrustedAggregation().encode(own, layout, 1.0, None)  # type: ignore[arg-type]
    assert [not report for report in reports] == [not own for own in sets]
    valid, whole = layout.added_up([*reports, b"\xff\xff\xff\xff\xff"])
    assert valid.tolist() == [True] * len(sets) + [False]
    expected = sum(dense(layout, own) for own in sets)
    assert np.allclose(whole[:, 0] * UNIT, expected, rtol=0, atol=len(sets) * 2 * UNIT)
    cut = min(cut, len(sets))
    parts = [SetContributions(*flat(part)) for part in (sets[:cut], sets[cut:]) if part]
    totals = [layout.added_up(part.encode(layout))[1] for part in parts]
    assert np.array_equal(sum(totals), whole)
    some = own.of_users(slice(0, cut))
    assert some.encode(layout) == reports[:cut]
    numbers = some.vectors(layout).numbers
    assert np.array_equal(numbers, own.vectors(layout).numbers[: len(numbers)])
