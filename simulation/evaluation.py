"""Accuracy of a run on the test ratings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dprec.binarization import is_binary
from dprec.errors import SettingError
from dprec.metrics import (
    mean_absolute_error,
    ranking_accuracy,
    root_mean_squared_error,
    sign_accuracy,
)
from dprec.ratings import Ratings, RatingScale
from simulation.configuration.models import EvaluationOptions


def check_relevance(options: EvaluationOptions, scale: RatingScale) -> None:
    """Refuse a bound of relevance that is off the scale; signs are not ranked, and need none.

    Raises
    ------
    SettingError
    """
    bound = options.relevant_from
    if bound is not None and not is_binary(scale) and not scale.low <= bound <= scale.high:
        accepted = f"a rating from {scale.low:g} to {scale.high:g}"
        raise SettingError("relevant_from", f"{bound:g}", accepted)


def accuracy(
    predictions: NDArray[np.float64], train: Ratings, test: Ratings, options: EvaluationOptions
) -> dict[str, float | None]:
    """Return the accuracy of predictions under the names that the run directory uses.

    Of signs, it is the share that is predicted; a prediction of 0 counts as +1.
    """
    if is_binary(test.scale):
        return {"sign_accuracy": sign_accuracy(predictions, test.values), "relative_error": None}
    ranking = ranking_accuracy(predictions, test, train, options.top_k, options.relevant_from)
    return {
        "rmse": root_mean_squared_error(predictions, test.values),
        "mae": mean_absolute_error(predictions, test.values),
        "precision_at_k": ranking.precision,
        "recall_at_k": ranking.recall,
        "f_score_at_k": ranking.f_score,
        "k": options.top_k,
    }


def relative_error(
    hidden: Callable[[NDArray[np.integer], NDArray[np.integer]], NDArray[np.float64]],
    truth: NDArray[np.float64],
) -> float:
    """Return ||M^ - M||_F^2 / ||M||_F^2 over all cells, observed or not (Li et al., section 5.1)."""
    users, items = np.divmod(np.arange(truth.size), truth.shape[1])
    errors = hidden(users, items) - truth.ravel()
    return float((errors**2).sum() / (truth**2).sum())
