"""Accuracy of a run on the test ratings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.metrics import mean_absolute_error, ranking_accuracy, root_mean_squared_error
from dprec.ratings import Ratings
from simulation.config import EvaluationOptions


def accuracy(
    predictions: NDArray[np.float64], train: Ratings, test: Ratings, options: EvaluationOptions
) -> dict[str, float | None]:
    """Return the accuracy of predictions under the names that the run directory uses."""
    ranking = ranking_accuracy(predictions, test, train, options.top_k, options.relevant_from)
    return {
        "rmse": root_mean_squared_error(predictions, test.values),
        "mae": mean_absolute_error(predictions, test.values),
        "precision_at_k": ranking.precision,
        "recall_at_k": ranking.recall,
        "f_score_at_k": ranking.f_score,
        "k": options.top_k,
    }
