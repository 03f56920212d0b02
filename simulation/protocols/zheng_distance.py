"""How far the reports are from the true ratings, and the bound that Zheng [zheng2016] proves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.completion import Observations
from dprec.mechanisms.published_noise import modified_laplace_bound, randomized_response_bound
from dprec.mechanisms.zheng_laplace import ZhengLaplace
from dprec.mechanisms.zheng_randomized_response import ZhengRandomizedResponse
from dprec.privacy.calibration import CalibratedMechanism
from dprec.ratings import Ratings
from simulation.protocols.reported_cells import RatedCells

TOLERANCE = 0.05
"""Probability with which the bound may fail (gamma in the paper)."""

RATING_NOISE = 0.0
"""Difference between a given rating and the true one (rho_0); here the given rating is the true one."""


def distance_per_cell(
    calibrated: CalibratedMechanism,
    train: Ratings,
    accepted: NDArray[np.bool_],
    observed: Observations,
    rated: RatedCells,
) -> dict[str, float | None]:
    """Return rho = ||P(Theta - Z)||_F per cell, bounded (Zheng [zheng2016], Theorem 3) and measured.

    Both are root mean squares in rating units, comparable to an RMSE. The bound covers all reported
    cells, true or made up. The measured distance is that between the report and the train rating, on the
    reported cells that are truly rated: a made-up cell has no known truth.

    Parameters
    ----------
    accepted : ndarray of bool, shape (users,)
        Users whose report was used; the bound covers these users alone.
    rated : RatedCells
        The reported cells that are truly rated.

    Returns
    -------
    dict
        Empty for other mechanisms.
    """
    bound = _bound(calibrated, int(accepted.sum()), int(train.counts[accepted].sum()))
    if bound is None:
        return {}
    reported = observed.values.size
    errors = observed.values[rated.among_reported] - train.values[rated.among_rated]
    return {
        "shown_cells": reported,
        "rated_cells": errors.size,
        "bound": bound / np.sqrt(reported) if reported else None,
        "measured": float(np.sqrt(np.mean(errors**2))) if errors.size else None,
        "tolerance": TOLERANCE,
        "rating_noise": RATING_NOISE,
    }


def _bound(calibrated: CalibratedMechanism, users: int, ratings: int) -> float | None:
    """Return the bound on rho in rating units."""
    scale, items, epsilon = calibrated.scale, calibrated.n_items, calibrated.reference_channel.epsilon
    width = scale.high - scale.low
    if isinstance(calibrated.mechanism, ZhengLaplace):
        return modified_laplace_bound(users, items, ratings, epsilon, TOLERANCE, RATING_NOISE) * width / 2
    if isinstance(calibrated.mechanism, ZhengRandomizedResponse):
        # Of the levels, the proof uses only the distance between the outer two.
        levels = randomized_response_bound(
            users, items, ratings, scale.levels, epsilon, TOLERANCE, RATING_NOISE
        )
        return levels * width / (scale.levels - 1)
    return None
