"""What is calibrated is the same on processors that round differently, and costs no more than was found."""

import math

from hypothesis import given
from hypothesis import strategies as st

from dprec.accounting.calibration import rounded_down, rounded_up

FOUND = st.floats(1e-12, 1e12)


@given(FOUND)
def test_rounding_goes_one_way_and_not_far(found: float) -> None:
    assert found * (1 - 2.0**-13) < rounded_down(found) <= found <= rounded_up(found) < found * (1 + 2.0**-13)


@given(FOUND)
def test_what_is_rounded_stays(found: float) -> None:
    kept = rounded_down(found)
    assert rounded_down(kept) == rounded_up(kept) == kept


@given(FOUND, st.floats(-1e-9, 1e-9))
def test_last_digits_do_not_matter_but_between_two_that_are_kept(found: float, off: float) -> None:
    low, high = sorted((found, found * (1 + off)))
    inside = rounded_down(high) <= low
    assert (rounded_down(low) == rounded_down(high)) == inside
    assert math.isclose(rounded_down(low), rounded_down(high), rel_tol=2.0**-12)
