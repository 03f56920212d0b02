import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.mechanisms.duchi import Duchi
from dprec.mechanisms.threshold_bit import ThresholdBit
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
UNEVEN = RatingScale(np.array([1.0, 2.0, 5.0, 6.0]), False)


def test_a_fixed_threshold_sends_one_bit_that_is_unbiased_for_the_means_of_the_two_parts() -> None:
    channel = ThresholdBit().channel(STARS, 1.0)
    flip = 1 / (1 + np.e)
    np.testing.assert_allclose(channel.probabilities[:, 1], [flip, flip, flip, 1 - flip, 1 - flip])
    np.testing.assert_allclose(channel.probabilities @ channel.values, [2, 2, 2, 4.5, 4.5])
    assert ThresholdBit(threshold=2).channel(STARS, 1.0).probabilities[1, 1] == pytest.approx(1 - flip)


def test_a_drawn_threshold_is_sent_with_its_bit_and_unbiased_for_every_rating() -> None:
    for scale in (STARS, UNEVEN):
        channel = ThresholdBit(threshold="drawn").channel(scale, 0.7)
        assert channel.symbols == 2 * (scale.levels - 1)
        np.testing.assert_allclose(channel.bias(), 0, atol=1e-12)
        # Without the threshold, the bit is that of Duchi et al.
        alone = Duchi().channel(scale, 0.7)
        half = channel.symbols // 2
        np.testing.assert_allclose(channel.probabilities[:, half:].sum(axis=1), alone.probabilities[:, 1])


@pytest.mark.parametrize("threshold", [1, 5.5, -3.0])
def test_a_threshold_that_splits_nothing_is_refused(threshold: float) -> None:
    with pytest.raises(SettingError, match=f"threshold: {threshold:g}.*above 1 and at most 5"):
        ThresholdBit(threshold=threshold).channel(STARS, 1.0)
