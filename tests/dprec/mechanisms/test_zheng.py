from __future__ import annotations

import numpy as np
import pytest

from dprec.mechanisms import MECHANISMS
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 50.0])
def test_modified_laplace_drops_and_makes_up_ratings_as_defined(epsilon: float) -> None:
    channel = MECHANISMS["zheng-laplace"]().channel(STARS, epsilon)
    honest = 1 / (1 + np.exp(-epsilon / 2))
    assert np.isnan(channel.inputs[0])
    assert np.isnan(channel.values[0])
    assert channel.probabilities[0, 0] == pytest.approx(honest)
    np.testing.assert_allclose(channel.probabilities[1:, 0], 1 - honest, atol=1e-15)


def test_made_up_ratings_have_their_centre_in_mid_scale() -> None:
    channel = MECHANISMS["zheng-laplace"]().channel(STARS, 1.0)
    shown = channel.probabilities[0, 1:] / channel.probabilities[0, 1:].sum()
    mean = shown @ channel.values[1:]
    assert mean == pytest.approx(3.0)
    # Laplace(0, 2 / epsilon) on [-1, 1], where a unit is two stars.
    assert shown @ (channel.values[1:] - mean) ** 2 == pytest.approx(8 * 2**2, rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 800.0])
def test_randomized_response_is_definition_3(epsilon: float) -> None:
    channel = MECHANISMS["zheng-randomized-response"]().channel(STARS, epsilon)
    kept = 1 / (1 + 5 * np.exp(-epsilon))
    expected = np.where(np.eye(6) > 0, kept, (1 - kept) / 5)
    np.testing.assert_allclose(channel.probabilities, expected, atol=1e-15)
    np.testing.assert_array_equal(channel.values, [np.nan, 1, 2, 3, 4, 5])
