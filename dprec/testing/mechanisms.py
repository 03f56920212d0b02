"""What every mechanism must do."""

import functools
import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy import stats

from dprec.arrays import Floats, Ints
from dprec.binarization import binary_scale
from dprec.channel import Channel
from dprec.components import as_values, one_of, packed, unpacked
from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.base import Mechanism
from dprec.randomness import DRAWS, words
from dprec.ratings import RatingScale

_SAMPLES = 1_000_000
_FALSE_ALARM = 1e-7
"""Probability that the test fails for a correct channel, over all of its inputs."""


class MechanismContract:
    """Tests of a mechanism, given by the fixture `mechanism`.

    Attributes
    ----------
    scales : mapping of str to RatingScale
        Scales to try. A mechanism may refuse some scales and budgets with an `InputError`, but not all.
    epsilons : tuple of float
        Budgets to try, ascending.
    """

    scales: ClassVar[Mapping[str, RatingScale]] = {
        "stars": RatingScale.evenly(1, 5, 1),
        "half stars": RatingScale.evenly(0.5, 5, 0.5),
        "jokes": RatingScale.evenly(-10, 10, 1, continuous=True),
        "signs": binary_scale(),
    }
    epsilons: ClassVar[tuple[float, ...]] = (0.05, 0.1, 0.25, 0.5, 1.0, 1.6, 2.0, 3.0, 5.0, 8.0)

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        """Return the mechanism that is tested."""
        raise NotImplementedError("a subclass gives the mechanism")

    def channels(self, mechanism: Mechanism, scale: RatingScale) -> dict[float, Channel]:
        """Return the channel at each budget that the mechanism accepts on a scale, ascending."""
        accepted = {}
        for epsilon in self.epsilons if mechanism.private else (math.inf,):
            try:
                accepted[epsilon] = mechanism.channel(scale, epsilon)
            except InputError:
                continue
        return accepted

    def usual_channel(self, mechanism: Mechanism) -> tuple[RatingScale, Channel]:
        """Return the first scale that is accepted, and the channel at a budget in the middle."""
        for scale in self.scales.values():
            channels = list(self.channels(mechanism, scale).values())
            if channels:
                return scale, channels[len(channels) // 2]
        raise AssertionError("no scale is accepted at any budget")

    def test_a_configuration_names_it(self, mechanism: Mechanism) -> None:
        """What a file would hold, and what travels to other processes, is the same mechanism."""
        assert _reader().validate_json(json.dumps(as_values(mechanism))) == mechanism
        assert unpacked(packed(mechanism, mechanism.kind), "here") == mechanism

    def test_the_exact_loss_is_the_budget(self, mechanism: Mechanism) -> None:
        """The loss never exceeds the budget, and exhausts it unless settings fix it or nothing is said."""
        tried = 0
        for name, scale in self.scales.items():
            losses = {
                epsilon: channel.epsilon for epsilon, channel in self.channels(mechanism, scale).items()
            }
            tried += len(losses)
            fixed = len(losses) > 1 and len(set(losses.values())) == 1
            for epsilon, loss in losses.items():
                assert loss <= epsilon, (name, epsilon)
                silent = loss == 0 and not mechanism.private
                assert fixed or silent or loss >= 0.98 * epsilon, (name, epsilon)
        assert tried

    def test_rows_are_distributions_over_the_symbols(self, mechanism: Mechanism) -> None:
        """Every input has a row of integer weights with the right sum, and every level is an input."""
        for name, scale in self.scales.items():
            inputs = mechanism.report_family.channel_inputs(scale)
            hidden = bool(np.isnan(inputs[0]))
            for channel in list(self.channels(mechanism, scale).values())[-4:]:
                assert channel.hides_rated_items == hidden, name
                assert channel.weights.shape == (inputs.size, channel.symbols), name
                assert all(sum(map(int, row)) == DRAWS for row in channel.weights), name
                np.testing.assert_array_equal(channel.inputs, inputs)
                assert np.isnan(channel.values).sum() == int(hidden), name
                assert 0 <= channel.entropy() <= np.log2(channel.symbols) + 1e-12, name

    def test_samples_follow_the_channel(self, mechanism: Mechanism) -> None:
        """Chi-square of a million samples per input: false alarm 1e-7 over all inputs."""
        _, channel = self.usual_channel(mechanism)
        for row, probabilities in enumerate(channel.probabilities):
            level = row + channel.first_level
            levels = np.full(_SAMPLES, level, dtype=np.uint8)
            noise = words(11, f"chi-square {mechanism.kind}", level * _SAMPLES, _SAMPLES)
            counts = np.bincount(channel.sample(levels, noise), minlength=channel.symbols)
            assert _p_value(counts, probabilities * _SAMPLES) > _FALSE_ALARM / len(channel.inputs), level

    def test_bias_and_variance_are_those_of_the_samples(self, mechanism: Mechanism) -> None:
        """Means within six standard errors (false alarm 2e-9 each), variances within a twentieth.

        The error of the variance is larger, since the noise has heavy tails.
        """
        _, channel = self.usual_channel(mechanism)
        for row in range(1 - channel.first_level, len(channel.inputs)):
            level = row + channel.first_level
            levels = np.full(200_000, level, dtype=np.uint8)
            noise = words(3, f"moments {mechanism.kind}", level << 20, levels.size)
            values = channel.values[channel.sample(levels, noise)]
            values = values[~np.isnan(values)]
            deviation = np.sqrt(channel.variance()[row])
            error = values.mean() - channel.inputs[row] - channel.bias()[row]
            assert abs(error) <= 6 * deviation / np.sqrt(values.size) + 1e-12, level
            assert values.var() == pytest.approx(channel.variance()[row], rel=0.05, abs=1e-12), level


@functools.cache
def _reader() -> TypeAdapter[Any]:
    return TypeAdapter(one_of(MECHANISMS))


def _p_value(counts: Ints, expected: Floats) -> float:
    """Return the p-value of a chi-square test of counts; rare symbols are pooled."""
    rare = expected < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10:
        # Too few for the test: more than 60 would have a probability of about 1e-25.
        assert observed[-1] <= 60
        observed, expected = observed[:-1], expected[:-1]
    if observed.size == 1:
        return 1.0
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)
