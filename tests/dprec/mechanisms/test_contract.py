"""What every registered mechanism must do, whatever it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.channel import Channel
from dprec.randomness import words
from dprec.ratings import RatingScale

SCALES = {
    "stars": RatingScale.evenly(1, 5, 1),
    "half stars": RatingScale.evenly(0.5, 5, 0.5),
    "jokes": RatingScale.evenly(-10, 10, 1, continuous=True),
}
EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0, 1.6, 2.0, 3.0, 5.0, 8.0)
KINDS = [kind for kind in MECHANISMS.kinds if kind != "binary-flip"]
"""Without the one that takes signs and no budget; it has tests of its own."""

PRIVATE = [kind for kind in KINDS if MECHANISMS[kind].private]
SAMPLES = 1_000_000
FALSE_ALARM = 1e-6
"""Probability that a correct sampler fails anywhere in this file (seeds are fixed, so once at most)."""


def channel_of(kind: str, scale: RatingScale, epsilon: float) -> Channel:
    return MECHANISMS[kind]().channel(scale, epsilon)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES.keys())
@pytest.mark.parametrize("kind", PRIVATE)
def test_exact_epsilon_is_the_requested_one(kind: str, scale: RatingScale) -> None:
    for epsilon in EPSILONS:
        realised = channel_of(kind, scale, epsilon).epsilon
        assert 0.98 * epsilon <= realised <= epsilon + 1e-9, epsilon


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES.keys())
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_distributions_over_the_symbols(kind: str, scale: RatingScale) -> None:
    channel = channel_of(kind, scale, 1.0)
    hidden = MECHANISMS[kind].hides_rated_items
    assert channel.hides_rated_items == hidden
    assert channel.weights.shape == (scale.levels + hidden, channel.symbols)
    assert all(sum(map(int, row)) == 1 << 60 for row in channel.weights)
    np.testing.assert_array_equal(channel.inputs[int(hidden) :], scale.values)
    assert np.isnan(channel.values).sum() == int(hidden)
    assert 0 <= channel.entropy() <= np.log2(channel.symbols) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_samples_follow_the_channel(kind: str) -> None:
    """Chi-square of a million samples per input, Bonferroni over every input of every mechanism."""
    scale = SCALES["stars"]
    channel = channel_of(kind, scale, 1.0)
    level_of_significance = FALSE_ALARM / (len(KINDS) * (scale.levels + 1))
    for row, probabilities in enumerate(channel.probabilities):
        level = row + channel.first_level
        levels = np.full(SAMPLES, level, dtype=np.uint8)
        symbols = channel.sample(levels, words(11, f"chi-square {kind}", level * SAMPLES, SAMPLES))
        counts = np.bincount(symbols, minlength=channel.symbols)
        expected = probabilities * SAMPLES
        rare = expected < 10
        observed = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 10:
            assert observed[-1] <= 60
            observed, expected = observed[:-1], expected[:-1]
        if observed.size > 1:
            p_value = stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue
            assert p_value > level_of_significance, level


@pytest.mark.parametrize("kind", KINDS)
def test_bias_and_variance_are_those_of_the_samples(kind: str) -> None:
    channel = channel_of(kind, SCALES["stars"], 2.0)
    for row in range(1 - channel.first_level, len(channel.inputs)):
        level = row + channel.first_level
        levels = np.full(200_000, level, dtype=np.uint8)
        values = channel.values[channel.sample(levels, words(3, f"moments {kind}", level << 20, levels.size))]
        values = values[~np.isnan(values)]
        deviation = np.sqrt(channel.variance()[row])
        error = values.mean() - channel.inputs[row] - channel.bias()[row]
        # Six standard errors of the mean; the variance's own error is wider, noise having heavy tails.
        assert abs(error) <= 6 * deviation / np.sqrt(values.size) + 1e-12
        assert values.var() == pytest.approx(channel.variance()[row], rel=0.05, abs=1e-12)
