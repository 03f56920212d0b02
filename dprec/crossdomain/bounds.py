"""How far private neighbour selection may stray: Theorems 3 and 4 of Guerraoui et al. [guerraoui2017]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def selection_width(k: int, candidates: int, sensitivity: float, epsilon: float, failure: float) -> float:
    """Return the width w of Theorems 3 and 4, before it is limited to the range of similarities.

    w = (4 k SS / eps') ln(k (|v| - k) / rho). With probability at least 1 - rho, every selected
    neighbour has a similarity above Sim_k - w (Theorem 3), and every item with a similarity above
    Sim_k + w is selected (Theorem 4), where Sim_k is that of the k-th nearest (Guerraoui et al.
    [guerraoui2017]).

    Parameters
    ----------
    k : int
        Neighbours that are selected.
    candidates : int
        |v|; if there are no more than k, all are selected, and the width is 0.
    sensitivity : float
        SS, the most by which one user can change a similarity.
    epsilon : float
        eps', for selection and prediction together.
    failure : float
        rho, between 0 and 1.
    """
    if candidates <= k:
        return 0.0
    return float(4 * k * sensitivity / epsilon * np.log(k * (candidates - k) / failure))


def limited_width(
    width: NDArray[np.float64], nearest: NDArray[np.float64], lowest: float
) -> NDArray[np.float64]:
    """Return w = min(Sim_k - lowest, width): truncation never leaves the range of the similarity.

    Parameters
    ----------
    width : ndarray of float64, shape (rows,)
        As returned by `selection_width`.
    nearest : ndarray of float64, shape (rows,)
        Sim_k, the similarity of the k-th nearest.
    lowest : float
        The least possible similarity. The publication prints min(Sim_k, ...), which is the case of 0,
        for cosine; adjusted cosine goes down to -1. If this limit is the one that binds, Theorem 3 holds
        trivially and Theorem 4 is not implied.
    """
    return np.minimum(nearest - lowest, width)
