"""The channel of the first part of a report of bits and counts."""

import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.mechanisms import BitsAndCounts, ThresholdBit
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


def test_a_rating_is_left_for_the_counts_with_the_same_probability_whatever_it_is() -> None:
    channel = BitsAndCounts(bits=0.4).channel(STARS, 1.0)
    assert (channel.weights[:, -1] == channel.weights[0, -1]).all()
    assert channel.probabilities[0, -1] == pytest.approx(0.6)
    bit = ThresholdBit().channel(STARS, 1.0)
    np.testing.assert_allclose(channel.probabilities[:, :-1], 0.4 * bit.probabilities, rtol=1e-9)
    assert channel.values.tolist() == pytest.approx([*bit.values, 3.25])


@pytest.mark.parametrize(("threshold", "level"), [("middle", 4), (2, 2), (4.5, 5)])
def test_what_reaches_the_threshold_is_counted(threshold: float, level: int) -> None:
    assert BitsAndCounts(threshold=threshold).least_counted_level(STARS) == level


def test_a_threshold_outside_the_scale_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^threshold: 6"):
        BitsAndCounts(threshold=6).channel(STARS, 1.0)
