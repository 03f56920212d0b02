"""Accuracy of a run on the test ratings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.binarization import is_binary
from dprec.crossdomain.domains import CrossDomainRatings
from dprec.errors import SettingError
from dprec.metrics import (
    RankingAccuracy,
    mean_absolute_error,
    ranking_accuracy,
    recommendation_accuracy,
    root_mean_squared_error,
    sign_accuracy,
)
from dprec.ratings import Ratings, RatingScale
from dprec.recommendation import recommended
from simulation.configuration.models import EvaluationOptions
from simulation.protocols.task import Predict


def check_relevance(options: EvaluationOptions, scale: RatingScale) -> None:
    """Refuse a relevance threshold outside the rating scale; signs are not ranked and need none.

    Raises
    ------
    SettingError
    """
    bound = options.relevant_from
    if bound is not None and not is_binary(scale) and not scale.low <= bound <= scale.high:
        accepted = f"a rating from {scale.low:g} to {scale.high:g}"
        raise SettingError("relevant_from", f"{bound:g}", accepted)


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Evaluates predictions on the test ratings; protocols call it as the `Measure` of their task.

    Parameters
    ----------
    train, test : Ratings
    options : EvaluationOptions
    truth : ndarray of float64, shape (users, items), or None
        The hidden matrix that the ratings were drawn from, if the data set knows it.
    """

    train: Ratings
    test: Ratings
    options: EvaluationOptions
    truth: NDArray[np.float64] | None

    def predictions(self, predict: Predict) -> NDArray[np.float64]:
        """Return the predictions of the test ratings, clipped to the scale, shape (test ratings,)."""
        low, high = self.train.scale.low, self.train.scale.high
        return np.clip(predict(self.test.users, self.test.items), low, high)

    def accuracy(
        self, predictions: NDArray[np.float64], predict: Predict, hidden: Predict | None = None
    ) -> dict[str, float | None]:
        """Return the accuracy of predictions under the names that the run directory uses.

        Parameters
        ----------
        predictions : ndarray of float64, shape (test ratings,)
            For signs, the accuracy is the share predicted correctly; a prediction of 0 counts as +1.
        predict : callable
            What made them, and predicts other items if these are ranked too.
        hidden : callable, optional
            From arrays of users and items to the learned entries of the hidden matrix.
        """
        if not is_binary(self.test.scale):
            return self._accuracy_of_ratings(predictions, predict)
        error = None
        if self.truth is not None and hidden is not None:
            error = relative_error(hidden, self.truth)
        return {"sign_accuracy": sign_accuracy(predictions, self.test.values), "relative_error": error}

    def __call__(self, predict: Predict, hidden: Predict | None = None) -> dict[str, float | None]:
        """Return the accuracy of a predictor; see `accuracy`."""
        return self.accuracy(self.predictions(predict), predict, hidden)

    def _accuracy_of_ratings(
        self, predictions: NDArray[np.float64], predict: Predict
    ) -> dict[str, float | None]:
        ranking = self._ranking(predictions, predict)
        return {
            "rmse": root_mean_squared_error(predictions, self.test.values),
            "mae": mean_absolute_error(predictions, self.test.values),
            "precision_at_k": ranking.precision,
            "recall_at_k": ranking.recall,
            "f_score_at_k": ranking.f_score,
            "k": self.options.top_k,
        }

    def _ranking(self, predictions: NDArray[np.float64], predict: Predict) -> RankingAccuracy:
        """Return the accuracy of the lists that users are recommended."""
        train, test, options = self.train, self.test, self.options
        if options.candidates == "test":
            return ranking_accuracy(predictions, test, train, options.top_k, options.relevant_from)
        tested = np.flatnonzero(test.counts)
        targets = train.in_target if isinstance(train, CrossDomainRatings) else None
        lists = recommended(predict, train, tested, options.top_k, targets)
        return recommendation_accuracy(lists, tested, test, train, options.relevant_from)


def relative_error(hidden: Predict, truth: NDArray[np.float64]) -> float:
    """Return ||M^ - M||_F^2 / ||M||_F^2 over all cells, observed or not (Li et al. [li2021], section 5.1)."""
    users, items = np.divmod(np.arange(truth.size), truth.shape[1])
    errors = hidden(users, items) - truth.ravel()
    return float((errors**2).sum() / (truth**2).sum())
