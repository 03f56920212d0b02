"""Rounds whose bits keep to a budget by composition: what each may cost, and what that buys."""

import math

import pytest

from dprec.accounting import PrivacyLossDistribution, compose
from dprec.gradients.one_bit import unbiased_scale
from simulation import load
from simulation.protocols.iterative import IterativeProtocol


def protocol_of(*settings: str) -> IterativeProtocol:
    protocol = load("pg-mf-composed", list(settings)).protocol
    assert isinstance(protocol, IterativeProtocol)
    return protocol


def test_fifty_bits_keep_to_the_budget_with_more_than_the_share_of_a_sum() -> None:
    composed, added = protocol_of(), protocol_of("protocol.privacy.composition=sum")
    assert added.epsilon_per_round == pytest.approx(1 / 50)
    assert 1.7 < composed.epsilon_per_round * 50 < 1.75
    for protocol, spent in ((composed, 1.0), (added, 0.557)):
        channel = protocol._channel_at(protocol.epsilon_per_round)
        together = compose([(PrivacyLossDistribution.of(channel), 50)]).epsilon(1e-6)
        assert 0.995 * spent < together <= 1.0
        assert together == pytest.approx(spent, rel=0.01)


def test_the_noise_falls_as_the_share_grows() -> None:
    composed, added = protocol_of(), protocol_of("protocol.privacy.composition=sum")
    noise = [each.gradient.noise_deviation((100, 2), each.epsilon_per_round) for each in (composed, added)]
    ratio = unbiased_scale(composed.epsilon_per_round) / unbiased_scale(added.epsilon_per_round)
    assert noise[0] / noise[1] == pytest.approx(ratio)
    assert ratio == pytest.approx(added.epsilon_per_round / composed.epsilon_per_round, rel=1e-3)


def test_the_promise_says_that_losses_compose() -> None:
    composed, added = protocol_of(), protocol_of("protocol.privacy.composition=sum")
    assert "compose, beyond a probability of 1e-06" in composed.guarantee((1000, 100)).reason
    assert "the rounds add up" in added.guarantee((1000, 100)).reason
    assert math.isclose(composed.delta, 1e-6)
