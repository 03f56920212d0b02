"""Logistic regression with a ridge, by Newton's method: a classifier that an audit learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

_STEPS = 12


@dataclass(frozen=True, eq=False)
class LogisticRegression:
    """A linear score of features, whose sign says which class is likelier."""

    weights: NDArray[np.float64]
    """Shape (features,)."""
    intercept: float

    @classmethod
    def fit(cls, features: NDArray[np.floating], labels: NDArray[np.bool_], ridge: float = 1.0) -> Self:
        """Learn to distinguish two classes.

        Parameters
        ----------
        features : ndarray of float, shape (people, features)
        labels : ndarray of bool, shape (people,)
        ridge : float
            Penalty on half the squared weights of standardised features.
        """
        centre, spread = features.mean(axis=0), features.std(axis=0)
        scale = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0)
        design = np.column_stack([(features - centre) * scale, np.ones(len(features))]).astype(np.float64)
        penalty = np.append(np.full(design.shape[1] - 1, ridge), 1e-9)
        weights = np.zeros(design.shape[1])
        for _ in range(_STEPS):
            chances = expit(design @ weights)
            slope = design.T @ (labels - chances) - penalty * weights
            curvature = (design * (chances * (1 - chances))[:, None]).T @ design + np.diag(penalty)
            weights = weights + np.linalg.solve(curvature, slope)
        own = weights[:-1] * scale
        return cls(own, float(weights[-1] - own @ centre))

    def scores(self, features: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the log odds of the class True, shape (people,)."""
        scores: NDArray[np.float64] = features @ self.weights + self.intercept
        return scores
