"""Sums of reports of which only some numbers are held."""

import numpy as np
import pytest

from dprec.gradients import Aggregate, Places

SHAPE = (30, 4)


def held(places: list[int], users: int) -> Aggregate:
    """Return a sum that is 0 but at some places."""
    flat = np.array(places, dtype=np.int64)
    return Aggregate(flat + 1, None, users, places=Places(flat, SHAPE))


@pytest.mark.parametrize("places", [[], [3, 7, 119], list(range(0, 120, 2))])
def test_numbers_at_places_are_added_as_the_whole_sum_is(places: list[int]) -> None:
    expected = np.zeros(SHAPE, dtype=np.int64)
    expected.flat[places] = [place + 1 for place in places]
    assert np.array_equal(held(places, 2).total, expected)
    total = Aggregate(np.ones(SHAPE, dtype=np.int64), None, 5)
    kept = total.total
    assert np.array_equal((total + held(places, 2)).total, expected + 1)
    total += held(places, 2)
    assert np.array_equal(total.total, expected + 1)
    assert total.total is kept
    assert (total.users, total.places) == (7, None)
