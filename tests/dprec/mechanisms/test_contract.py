"""The contract of mechanisms, on every registered one."""

import math

import numpy as np
import pytest

from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS, BitsAndCounts, Laplace, ThresholdBit
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.randomized_response import BinaryFlip
from dprec.testing import MechanismContract
from tests.make import STARS

EXAMPLES = {"binary-flip": BinaryFlip(p1=0.3, p2=0.2)}
"""Of the mechanisms that have settings without a default."""


class TestEveryMechanism(MechanismContract):
    @pytest.fixture(params=MECHANISMS.kinds)
    def mechanism(self, request: pytest.FixtureRequest) -> Mechanism:
        return EXAMPLES.get(request.param) or MECHANISMS[request.param]()


class _LosesMore(Mechanism):
    """Adds half the noise that its budget asks for."""

    def channel(self, scale, epsilon):
        return MECHANISMS["randomized-response"]().channel(scale, 2 * epsilon)


def test_the_contract_refuses_a_mechanism_that_loses_more_than_its_budget() -> None:
    with pytest.raises(AssertionError):
        MechanismContract().test_the_exact_loss_is_the_budget(_LosesMore(kind="loses-more"))


def test_the_same_generator_gives_the_same_noise() -> None:
    ratings = np.full(50, 3.0)
    first, again, other = (Laplace().perturb(ratings, 1.0, seed).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert Laplace().perturb(ratings, 1.0).tolist() != Laplace().perturb(ratings, 1.0).tolist()


@pytest.mark.parametrize("kind", ["laplace", "bounded-laplace", "none", "fisher-optimal"])
def test_what_is_no_budget_is_refused(kind: str) -> None:
    for epsilon in (0, -1, math.nan):
        with pytest.raises(InputError, match=f"^epsilon: {epsilon:g}; accepted: a number above 0$"):
            MECHANISMS[kind]().channel(STARS, epsilon)


def test_a_rating_is_left_for_the_counts_with_the_same_probability_whatever_it_is() -> None:
    channel = BitsAndCounts(bits=0.4).channel(STARS, 1.0)
    assert (channel.weights[:, -1] == channel.weights[0, -1]).all()
    assert channel.probabilities[0, -1] == pytest.approx(0.6)
    bit = ThresholdBit().channel(STARS, 1.0)
    np.testing.assert_allclose(channel.probabilities[:, :-1], 0.4 * bit.probabilities, rtol=1e-9)
    assert channel.values.tolist() == pytest.approx([*bit.values, 3.25])
