"""Measures of accuracy of one's own: functions of the test ratings and their predictions."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.components import imported_function
from dprec.errors import InputError, RunError, SettingError, one_line
from dprec.ratings import Ratings

ACCEPTED = "a function of ratings and predictions, and perhaps users and items, that returns a finite number"


def name_of(reference: str) -> str:
    """Return the name under which results hold a measure: that of its function."""
    return re.split("[:.]", reference)[-1]


def check_names(references: Sequence[str]) -> None:
    """Refuse functions that cannot be imported, or two of one name.

    Raises
    ------
    SettingError
        Without a key.
    """
    names = [name_of(reference) for reference in references]
    for name, reference in zip(names, references, strict=True):
        imported_function(reference)
        if names.count(name) > 1:
            raise SettingError("", f"two functions named {name}", "functions of different names")


def metric(reference: str, test: Ratings, predictions: NDArray[np.float64]) -> float:
    """Return what a function measures of some predictions.

    Parameters
    ----------
    reference : str
        ``module:function``. It is called with the true ratings and the predictions, float64 of shape (test
        ratings,), and with their users' and items' identifiers if it has parameters named users and items.
    predictions : ndarray of float64, shape (test ratings,)

    Raises
    ------
    InputError
        Naming the function, when it raises an exception or returns anything but a finite number.
    """
    function = imported_function(reference)
    try:
        identifiers = {"users": test.user_ids[test.users], "items": test.item_ids[test.items]}
        wanted = {name: identifiers[name] for name in _parameters(function) if name in identifiers}
        # Copies, since a function of somebody's own may sort in place.
        value = function(test.values.copy(), predictions.copy(), **wanted)
    except (InputError, RunError, MemoryError):
        raise
    except Exception as error:
        raise InputError(reference, f"{type(error).__name__}: {one_line(error)}", ACCEPTED) from error
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not math.isfinite(value):
        found = f"it returned {value}" if isinstance(value, Real) else f"it returned a {type(value).__name__}"
        raise InputError(reference, found, ACCEPTED)
    return float(value)


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of functions that are not written in Python
        return []
