"""How loud one user can be: what a channel lets somebody say who chooses symbols instead of drawing them.

Noise that hides an honest answer makes it quiet, and the server makes up for that by how it reads answers.
One that is not drawn is not quiet: a malicious user sends the symbols that are read as most (maximal gain,
Cao, Jia and Gong [cao2021]), so the smaller epsilon is, the more honest users it outweighs.
"""

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.channel import Channel


def sides(channel: Channel) -> Floats:
    """Return the log likelihood ratio of the highest level against the lowest, shape (symbols,).

    Where all levels are answered alike, it is against "not rated", if that is an input. Infinite where a
    symbol excludes one of the two, 0 where it excludes both.
    """
    highest, lowest = channel.probabilities[-1], channel.probabilities[_lowest(channel)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Floats = np.log(highest) - np.log(lowest)
    return np.where(np.isnan(ratios), 0.0, ratios)


def _lowest(channel: Channel) -> int:
    """Return the row of the lowest level, or of "not rated" where all levels have the same row."""
    first = 1 - channel.first_level
    return 0 if np.array_equal(channel.weights[first], channel.weights[-1]) else first


def loudest(channel: Channel) -> Ints:
    """Return the symbol that says most for each input, shape (inputs,).

    For the two ends it is that of `sides` which tells them farthest apart, and of several that with the most
    extreme value; for any other input, that which is likeliest in comparison with the mean of all inputs.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        says = np.nan_to_num(channel.probabilities / channel.probabilities.mean(axis=0), nan=-1.0)
    symbols: Ints = says.argmax(axis=1)
    evidence, values = sides(channel), np.nan_to_num(channel.values)
    for row, side in ((_lowest(channel), -1.0), (-1, 1.0)):
        signed_evidence = side * evidence
        # Rounding to integer weights may make a small difference.
        best = signed_evidence >= signed_evidence.max() - 1e-6
        symbols[row] = np.where(best, side * values, -np.inf).argmax()
    return symbols


def evidence(channel: Channel, *, of_values: bool) -> Floats:
    """Return what a server adds up of each symbol that it reads about an item, shape (symbols,).

    Decoded values less the middle of the scale, or else `sides`. Where ratings are sent as they are, it is
    their values in any case; where all symbols read alike, that an item is shown is all there is to add up.
    """
    addends = sides(channel)
    if of_values or np.isinf(addends).any():
        rated = channel.inputs[~np.isnan(channel.inputs)]
        addends = np.nan_to_num(channel.values - (rated[0] + rated[-1]) / 2)
    return addends if addends.any() else np.ones(addends.size)


def most_evidence(channel: Channel, *, of_values: bool) -> float:
    """Return the evidence of the symbol that says most about an item."""
    return float(np.abs(evidence(channel, of_values=of_values)).max())


def mean_evidence(channel: Channel, *, of_values: bool) -> float:
    """Return the mean evidence of the symbols that are drawn for the highest rating of an item."""
    return float(channel.probabilities[-1] @ evidence(channel, of_values=of_values))
