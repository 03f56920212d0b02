"""Samples the noise of a comparison's mechanisms, and holds it against theory, as Fig. 2 of [neera2023] does.

The noise is n = r* - r, what is sent minus the true rating, over all ratings of the train set.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.errors import InputError
from dprec.randomness import categories, uniforms, words
from dprec.ratings import Ratings, RatingScale
from simulation.comparison.planning import Comparison
from simulation.comparison.templates import Cell
from simulation.execution import load_ratings
from simulation.storage.files import Row

_SYMBOLS_PER_INTERVAL = 16
"""With fewer, intervals would differ by how many symbols happen to lie in them."""

_FEWEST_INTERVALS = 16


def sampled_noise(comparison: Comparison) -> list[Row]:
    """Sample the noise of every private one-shot protocol that reveals the item set, at every epsilon.

    Ratings and seed are those of the first fold and seed. A budget per user is calibrated to a user with
    the median number of ratings.

    The lines of noise.csv, one per protocol, epsilon and interval: the share of the samples in the interval,
    and its probability. Empty if the configuration asks for no samples. Raises InputError when no protocol of
    the comparison qualifies.
    """
    count = comparison.config.noise_samples
    if count is None:
        return []
    chosen: dict[tuple[str, float | None], Cell] = {}
    for cell in comparison.cells:
        if cell.config.protocol.facts.noise_on_ratings is not None:
            chosen.setdefault((cell.protocol, cell.epsilon), cell)
    if not chosen:
        raise InputError(
            "noise_samples",
            f"{count}, without a mechanism to sample",
            "a private one-shot protocol whose mechanism reveals the item set",
        )
    return [row for cell in chosen.values() for row in _rows(cell, count)]


def _rows(cell: Cell, count: int) -> list[Row]:
    protocol = cell.config.protocol
    mechanism = protocol.facts.noise_on_ratings
    assert mechanism is not None
    train, _ = load_ratings(cell.config)
    device = mechanism.family(protocol.privacy, train.scale, train.n_items).device_channel(train.counts)
    assert device is not None
    edges, shares = noise_edges(device.channel, train.scale), train.histogram()
    noise = draw_noise(device.channel, train, count, cell.seed, f"{cell.protocol}/{cell.epsilon!r}")
    # The paper's density where it has one, or what follows from the channel.
    theory = mechanism.noise_between(edges, train.scale, shares, device.channel.epsilon)
    if theory is None:
        theory = exact_probabilities(edges, device.channel, shares)
    columns = {
        "low": edges[:-1],
        "high": edges[1:],
        "sampled_share": np.histogram(noise, edges)[0] / count,
        "theoretical_probability": theory,
    }
    same = {"protocol": cell.protocol, "mechanism": mechanism.kind, "epsilon": cell.epsilon}
    lines = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [{**same, **dict(zip(columns, line, strict=True))} for line in lines]


def draw_noise(channel: Channel, train: Ratings, count: int, seed: int, name: str) -> NDArray[np.float64]:
    """Sample noise: draw a level from the histogram of the ratings, and what the channel sends for it.

    ``count``: number of samples.
    ``name``: samples under different names are independent.
    The result, shape (count,), is in rating units.
    """
    cumulative = np.cumsum(train.histogram())
    places = uniforms(words(seed, f"noise levels/{name}", 0, count)) * cumulative[-1]
    levels = (categories(cumulative, places) + 1).astype(np.uint8)
    symbols = channel.sample(levels, words(seed, f"noise/{name}", 0, count))
    noise: NDArray[np.float64] = channel.values[symbols] - train.scale.values[levels - 1]
    return noise


def exact_probabilities(
    edges: NDArray[np.float64], channel: Channel, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the probability of the noise between neighbouring edges, from the channel's own matrix.

    ``edges``, shape (intervals + 1,): they enclose all of the noise.
    ``shares``, shape (levels,): how often each level occurs.
    """
    noise = channel.values[None, :] - channel.inputs[:, None]
    chances = channel.probabilities * shares[:, None]
    probabilities: NDArray[np.float64] = np.histogram(noise.ravel(), edges, weights=chances.ravel())[0]
    return probabilities


def noise_edges(channel: Channel, scale: RatingScale) -> NDArray[np.float64]:
    """Return the edges of equal intervals that enclose all of the noise.

    They are multiples of a quarter, a half, ... of the scale's mean step, as the symbols allow, so that 0 is
    an edge; if the symbols are the levels themselves, the intervals are centred on the differences between
    levels instead.
    """
    noise = channel.values[None, :] - channel.inputs[:, None]
    low, high = float(noise.min()), float(noise.max())
    step = (scale.high - scale.low) / (scale.levels - 1)
    if np.isin(channel.values, scale.values).all():
        return np.arange(np.floor(low / step), np.ceil(high / step) + 2) * step - step / 2
    between = (float(channel.values.max()) - float(channel.values.min())) / (channel.symbols - 1)
    width = min(_SYMBOLS_PER_INTERVAL * between, (high - low) / _FEWEST_INTERVALS)
    width = step * 2.0 ** max(-2, np.ceil(np.log2(width / step)))
    edges: NDArray[np.float64] = np.arange(np.floor(low / width), np.ceil(high / width) + 1) * width
    return edges
