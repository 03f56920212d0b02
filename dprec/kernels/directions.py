"""Loops over the entries of two copies of a matrix, each of which is in one of two sets, and of their dual.

As arrays they would be gone through many times, and new ones take as long as the sums.
"""

from dprec.arrays import Floats
from dprec.kernels.compilation import Written, compiled


@compiled
def weigh(target: Written[Floats], matrix: Floats, clipped: Floats, dual: Floats, penalty: float) -> None:
    """Write the mean of a matrix and its bounded copy less the dual, the latter with a penalty as weight."""
    for cell in range(target.size):
        target[cell] = ((clipped[cell] - dual[cell]) * penalty + matrix[cell]) / (1 + penalty)


@compiled
def move_within(
    clipped: Written[Floats],
    dual: Written[Floats],
    previous: Floats,
    inside: Floats,
    relaxation: float,
    bound: float,
) -> None:
    """Write the bounded copy, relaxed towards the one inside the ball, and add what separates them."""
    for cell in range(clipped.size):
        relaxed = relaxation * inside[cell] + (1 - relaxation) * previous[cell]
        entry = relaxed + dual[cell]
        if entry < -bound:
            entry = -bound
        elif entry > bound:
            entry = bound
        clipped[cell] = entry
        dual[cell] += relaxed - entry


@compiled
def relax(
    target: Written[Floats],
    within: Written[Floats],
    inside: Floats,
    dual: Floats,
    relaxation: float,
    bound: float,
) -> None:
    """Bound the entries of one copy, and write it relaxed against the other one, and the dual added."""
    for cell in range(target.size):
        if within[cell] < -bound:
            within[cell] = -bound
        elif within[cell] > bound:
            within[cell] = bound
        target[cell] = relaxation * within[cell] + (1 - relaxation) * inside[cell] + dual[cell]
