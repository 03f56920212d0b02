"""What is no prediction is refused in one line that names who made it."""

import math
from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError
from dprec.predictions import checked, checked_predictions, checked_rows

USERS, ITEMS = np.array([0, 0, 1]), np.array([2, 3, 4])


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (None, "no predictions"),
        ([1.0, 2.0], "predictions of shape (2,)"),
        (3.0, "predictions of shape ()"),
        ([[1.0], [2.0], [3.0]], "predictions of shape (3, 1)"),
        ([1.0, math.nan, math.inf], "2 of 3 predictions that are NaN or infinite"),
        (["a", "b", "c"], "predictions of type list"),
        ({}, "predictions of type dict"),
    ],
)
def test_what_is_no_prediction_is_refused(made: Any, found: str) -> None:
    with pytest.raises(InputError) as caught:
        checked(lambda users, items: made, "my:Own")(USERS, ITEMS)
    accepted = "one finite number for each cell, shape (3,)"
    assert str(caught.value) == f"my:Own: {found}; accepted: {accepted}"


def test_predictions_pass_as_they_are() -> None:
    made = np.array([1.5, -2.0, 9.0])
    assert checked_predictions(made, (3,), "my:Own") is made
    rows = checked_rows(lambda users, n_items: np.ones((users.size, n_items)), "my:Own")
    assert rows(USERS, 4).shape == (3, 4)
    with pytest.raises(InputError, match=r"^my:Own: predictions of shape \(3, 4\); .*, shape \(3, 5\)$"):
        checked_rows(lambda users, n_items: np.ones((3, 4)), "my:Own")(USERS, 5)
