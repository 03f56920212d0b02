"""The contract of mechanisms, on every registered one."""

import dataclasses

import pytest

from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.randomized_response import BinaryFlip
from dprec.testing import MechanismContract

EXAMPLES = {"binary-flip": BinaryFlip(p1=0.3, p2=0.2)}
"""Of the mechanisms that have settings without a default."""


def test_examples_are_of_the_mechanisms_that_need_one() -> None:
    needing = [
        kind
        for kind in MECHANISMS.kinds
        if any(field.default is dataclasses.MISSING for field in dataclasses.fields(MECHANISMS[kind]))
    ]
    assert sorted(EXAMPLES) == sorted(needing)


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
