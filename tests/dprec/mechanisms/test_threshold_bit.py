import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.mechanisms.steps import Duchi
from dprec.mechanisms.thresholds import ThresholdBit
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


def test_a_share_of_the_ratings_is_asked_about_other_thresholds_at_the_same_loss() -> None:
    channel = ThresholdBit(other_thresholds=0.3).channel(STARS, 1.0)
    asked = channel.probabilities.reshape(5, 2, 4).sum(axis=1)
    np.testing.assert_allclose(asked, [[0.1, 0.1, 0.7, 0.1]] * 5)
    yes = channel.probabilities[:, 4:] / asked
    np.testing.assert_allclose(yes > 0.5, STARS.values[:, None] >= [2, 3, 4, 5])
    assert channel.epsilon == pytest.approx(1.0, abs=1e-9)
    assert channel.epsilon <= 1
    between = ThresholdBit(threshold=3.5, other_thresholds=0.3).channel(STARS, 1.0)
    np.testing.assert_array_equal(between.probabilities, channel.probabilities)


def test_without_another_threshold_none_can_be_asked_about() -> None:
    with pytest.raises(SettingError, match=r"other_thresholds: 0\.1, on a scale of two levels; .*no other"):
        ThresholdBit(other_thresholds=0.1).channel(RatingScale.evenly(-1, 1, 2), 1.0)
    with pytest.raises(SettingError, match=r"other_thresholds: 0\.1, with threshold drawn"):
        ThresholdBit(threshold="drawn", other_thresholds=0.1).channel(STARS, 1.0)
