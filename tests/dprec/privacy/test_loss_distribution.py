"""The loss distribution of a channel dominates every pair of its rows, and by no more than its grid."""

import math
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.accounting import PrivacyLossDistribution
from dprec.channel import Channel
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.mechanisms.zheng import ZhengLaplace
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


def random_channel(seed: int) -> Channel:
    """Return a channel whose worst pair of inputs differs from one divergence to the next."""
    rows = np.random.default_rng(seed).dirichlet(np.full(7, 2.0), size=4)
    return Channel.from_probabilities(rows, np.arange(4.0), np.arange(7.0), math.inf)


CHANNELS = {
    **{f"random {seed}": random_channel(seed) for seed in range(5)},
    "bounded Laplace": BoundedLaplace().channel(STARS, 1.0),
    "randomised response": RandomizedResponse().channel(STARS, 3.0),
    "Zheng's Laplace": ZhengLaplace().channel(STARS, 0.01),
}


def divergences(one: NDArray[np.float64], other: NDArray[np.float64], losses: NDArray[np.float64]) -> object:
    """Return sum max(0, one - exp(loss) other) for every loss."""
    return np.maximum(0, one - np.exp(losses)[:, None] * other).sum(axis=1)


@pytest.mark.parametrize("name", CHANNELS)
def test_no_pair_of_inputs_is_easier_to_tell_apart(name: str) -> None:
    channel = CHANNELS[name]
    dominating = PrivacyLossDistribution.of(channel)
    losses = np.linspace(-1.1, 1.1, 301) * channel.epsilon
    other = dominating.masses * np.exp(-dominating.losses)
    bound = divergences(dominating.masses, other, losses)
    rows = channel.probabilities
    pairs = [divergences(one, another, losses) for one, another in permutations(rows, 2)]
    worst = np.max(pairs, axis=0)
    assert (bound >= worst - 1e-12).all()
    # A mass between two points of the grid lifts the polygon by at most a quarter of a step.
    assert (bound <= worst + dominating.step / 4 + 1e-12).all()
    if name.startswith("random"):
        assert len(set(np.argmax(pairs, axis=0)[120:180])) > 1


@pytest.mark.parametrize("name", CHANNELS)
def test_both_of_the_pair_are_distributions_and_each_is_the_others_mirror_image(name: str) -> None:
    dominating = PrivacyLossDistribution.of(CHANNELS[name])
    other = dominating.masses * np.exp(-dominating.losses)
    assert dominating.masses.sum() == pytest.approx(1, abs=1e-9)
    assert other.sum() == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(other, dominating.masses[::-1], atol=1e-12)
    assert dominating.losses[-1] == pytest.approx(CHANNELS[name].epsilon)


def test_losses_that_lie_on_the_grid_are_kept() -> None:
    channel = RandomizedResponse().channel(STARS, 1.0)
    dominating = PrivacyLossDistribution.of(channel)
    likely, unlikely = channel.probabilities[0, :2]
    expected = np.zeros(dominating.masses.size)
    expected[[-1, 0, dominating.points]] = likely, unlikely, 1 - likely - unlikely
    np.testing.assert_allclose(dominating.masses, expected, atol=1e-11)


def test_moments_and_spectrum_are_those_of_the_masses() -> None:
    dominating = PrivacyLossDistribution.of(CHANNELS["random 1"])
    exponents = np.array([-3.0, 0.5, 20.0])
    direct = np.log([dominating.masses @ np.exp(t * dominating.losses) for t in exponents])
    np.testing.assert_allclose(dominating.log_moments(exponents), direct)
    assert dominating.variance == pytest.approx(
        np.average(
            (dominating.losses - dominating.masses @ dominating.losses) ** 2, weights=dominating.masses
        )
    )
    # A circle shorter than the masses adds up those that meet.
    log_moduli, angles = dominating.spectrum(100)
    wound = np.fft.irfft(np.exp(log_moduli + 1j * angles), 100)
    assert wound[0] == pytest.approx(dominating.masses[dominating.points % 100 :: 100].sum())
