from __future__ import annotations

import numpy as np
import pytest

from dprec.binarization import FixedThreshold, MeanThreshold, binary_scale, check_binary, is_binary
from dprec.errors import InputError
from dprec.ratings import Ratings, RatingScale

STARS = RatingScale.evenly(1, 5, 1)
TRAIN = Ratings.from_triples([1, 1, 2, 2], [1, 2, 1, 2], [1, 3, 4, 5], STARS)
TEST = Ratings.from_triples([1, 2], [1, 2], [3, 4], STARS)


def test_the_mean_of_train_cuts_both() -> None:
    train, test = MeanThreshold().apply(TRAIN, TEST)
    assert train.values.tolist() == [-1, -1, 1, 1]
    assert test.values.tolist() == [-1, 1]
    assert train.scale.cut == test.scale.cut == 3.25
    assert is_binary(train.scale)
    assert train.items.tolist() == TRAIN.items.tolist()
    assert train.user_ids.tolist() == TRAIN.user_ids.tolist()


def test_a_rating_at_the_threshold_is_not_above_it() -> None:
    train, _ = FixedThreshold(above=3).apply(TRAIN, TEST)
    assert train.values.tolist() == [-1, -1, 1, 1]
    assert FixedThreshold(above=1).apply(TRAIN, TEST)[0].values.tolist() == [-1, 1, 1, 1]


def test_a_continuous_scale_is_cut_at_its_unrounded_ratings() -> None:
    jokes = RatingScale.evenly(-10, 10, 1, continuous=True)
    ratings = Ratings.from_triples([1, 1], [1, 2], [0.2, 0.4], jokes)
    train, _ = FixedThreshold(above=0.3).apply(ratings, ratings)
    assert train.values.tolist() == [-1, 1]
    assert train.exact is None


def test_signs_stay_what_they_are() -> None:
    once, _ = MeanThreshold().apply(TRAIN, TEST)
    again, _ = MeanThreshold().apply(once, once)
    np.testing.assert_array_equal(again.levels, once.levels)


@pytest.mark.parametrize("above", [0.5, 5.0, 7.0])
def test_a_threshold_off_the_scale_is_refused(above: float) -> None:
    with pytest.raises(InputError, match=rf"^above: {above:g}; accepted: from 1 to below 5"):
        FixedThreshold(above=above).apply(TRAIN, TEST)


def test_a_mean_that_no_rating_is_above_divides_nothing() -> None:
    alike = Ratings.from_triples([1, 2], [1, 1], [4.0, 4.0], RatingScale.evenly(1, 5, 1))
    with pytest.raises(InputError, match="all alike"):
        MeanThreshold().cut(alike)


def test_only_minus_one_and_one_are_binary() -> None:
    check_binary(binary_scale())
    for values in ([0.0, 1.0], [1.0, 2.0], [-1.0, 0.0, 1.0]):
        scale = RatingScale(np.array(values))
        assert not is_binary(scale)
        with pytest.raises(InputError, match=r"binarization: none.*\{kind: mean\}, or \{kind: threshold"):
            check_binary(scale)
