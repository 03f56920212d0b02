"""Exact losses between all pairs of levels."""

import numpy as np
import pytest

from dprec.accounting import worst_pair
from dprec.accounting.pld import pairwise_losses
from dprec.channel import Channel
from dprec.mechanisms import BoundedLaplace, RandomizedResponse
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


@pytest.mark.parametrize("mechanism", [RandomizedResponse(), BoundedLaplace()], ids=lambda one: one.kind)
def test_the_worst_pair_has_the_loss_of_the_channel(mechanism) -> None:
    channel = mechanism.channel(STARS, 1.5)
    loss, pair = worst_pair(channel.weights)
    assert loss == pytest.approx(channel.epsilon, rel=1e-12)
    assert pair == (0, 4) or mechanism.kind == "randomized-response"


def test_every_pair_is_compared() -> None:
    rows = [[0.5, 0.5, 0.0], [0.4, 0.6, 0.0], [0.25, 0.25, 0.5]]
    losses = pairwise_losses(Channel.from_probabilities(rows, [1, 2, 3], [1, 2, 3], np.inf).weights)
    expected = np.log([[1, 1.25, 2], [1.2, 1, 2.4], [np.inf, np.inf, 1]])
    assert losses == pytest.approx(expected)
