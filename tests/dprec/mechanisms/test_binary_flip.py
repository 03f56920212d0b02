from __future__ import annotations

import math

import numpy as np
import pytest

from dprec.binarization import binary_scale
from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.randomized_response import flips_keep
from dprec.ratings import RatingScale


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_equal_flips_are_randomized_response(epsilon: float) -> None:
    p = 1 / (1 + math.exp(epsilon))
    flip = MECHANISMS["binary-flip"](p1=p, p2=p).channel(binary_scale(), epsilon)
    response = MECHANISMS["randomized-response"]().channel(binary_scale(), epsilon)
    np.testing.assert_allclose(flip.probabilities, response.probabilities, atol=1e-15)
    assert flip.epsilon == pytest.approx(epsilon)
    assert not flips_keep(p, p, epsilon * 0.99)
    assert flips_keep(p, p, epsilon)


@pytest.mark.parametrize("p1", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("p2", [0.05, 0.4, 0.6])
def test_the_condition_is_the_exact_loss(p1: float, p2: float) -> None:
    mechanism = MECHANISMS["binary-flip"](p1=p1, p2=p2)
    loss = mechanism.channel(binary_scale(), 20.0).epsilon
    assert mechanism.channel(binary_scale(), loss * 1.001).epsilon == loss
    with pytest.raises(InputError, match=r"^p1: .*accepted: 1 - p2 e\^epsilon <= p1"):
        mechanism.channel(binary_scale(), loss * 0.999)


def test_the_theorems_condition_alone_is_not_enough() -> None:
    # 1 - p2 e <= p1 <= (1 - p2) e holds, and yet a received -1 tells a -1 from a +1 by a factor of 50.
    p1, p2, epsilon = 0.01, 0.5, 1.0
    assert 1 - p2 * math.e <= p1 <= (1 - p2) * math.e
    assert math.log((1 - p2) / p1) > 3 * epsilon
    assert not flips_keep(p1, p2, epsilon)


@pytest.mark.parametrize(("p1", "p2"), [(0.0, 0.5), (0.5, 1.0), (-0.1, 0.5)])
def test_a_flip_that_never_or_always_happens_is_refused(p1: float, p2: float) -> None:
    with pytest.raises(InputError, match=r"p[12]: "):
        MECHANISMS["binary-flip"](p1=p1, p2=p2)


def test_stars_are_refused() -> None:
    with pytest.raises(InputError, match="binarization: none"):
        MECHANISMS["binary-flip"](p1=0.3, p2=0.3).channel(RatingScale.evenly(1, 5, 1), 5.0)
