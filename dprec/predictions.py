"""Predictions as they must be: one finite number for each cell, whoever makes them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError

PredictT = TypeVar("PredictT", bound=Callable[..., Any])


def checked_predictions(predictions: Any, shape: tuple[int, ...], component: str) -> NDArray[np.float64]:
    """Return predictions, or refuse what is none.

    Parameters
    ----------
    predictions : object
        What a component has returned.
    shape : tuple of int
        What it was asked for: (cells,), or (users, items).
    component : str
        Its name, for the error.

    Raises
    ------
    InputError
        When they have another shape, or one of them is no finite number.
    """
    accepted = f"one finite number for each cell, shape {shape}"
    try:
        values = np.asarray(predictions, dtype=np.float64)
    except (TypeError, ValueError):
        found = f"predictions of type {type(predictions).__name__}"
        raise InputError(component, found, accepted) from None
    if values.shape != shape or predictions is None:
        found = "no predictions" if predictions is None else f"predictions of shape {values.shape}"
        raise InputError(component, found, accepted)
    wrong = values.size - int(np.count_nonzero(np.isfinite(values)))
    if wrong:
        raise InputError(
            component, f"{wrong} of {values.size} predictions that are NaN or infinite", accepted
        )
    return values


def checked(predict: PredictT, component: str) -> PredictT:
    """Return a function that predicts cells, given users and items, and checks its predictions."""

    @functools.wraps(predict)
    def predicting(users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        return checked_predictions(predict(users, items), users.shape, component)

    return predicting  # type: ignore[return-value]


def checked_rows(predict_rows: PredictT, component: str) -> PredictT:
    """Return a function that predicts all items of users, and checks its predictions."""

    @functools.wraps(predict_rows)
    def predicting(users: NDArray[np.integer], n_items: int) -> NDArray[np.float64]:
        return checked_predictions(predict_rows(users, n_items), (users.size, n_items), component)

    return predicting  # type: ignore[return-value]
