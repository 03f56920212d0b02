import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.mechanisms.thresholds import HiddenThreshold
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 20.0])
def test_three_classes_are_answered_by_randomised_response(epsilon: float) -> None:
    channel = HiddenThreshold().channel(STARS, epsilon)
    kept = 1 / (1 + 2 * np.exp(-epsilon))
    classes = np.array([0, 1, 1, 1, 2, 2])
    expected = np.where(classes[:, None] == np.arange(3), kept, (1 - kept) / 2)
    np.testing.assert_allclose(channel.probabilities, expected, atol=1e-15)
    assert channel.hides_rated_items
    assert epsilon * (1 - 1e-6) <= channel.epsilon <= epsilon


def test_symbols_read_as_the_means_of_their_levels() -> None:
    np.testing.assert_array_equal(HiddenThreshold().channel(STARS, 1.0).values, [np.nan, 2, 4.5])
    np.testing.assert_array_equal(HiddenThreshold(threshold=2).channel(STARS, 1.0).values, [np.nan, 1, 3.5])


def test_a_threshold_that_splits_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match=r"threshold: 1.*above 1 and at most 5"):
        HiddenThreshold(threshold=1).channel(STARS, 1.0)
