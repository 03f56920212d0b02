import numpy as np
import pytest

from dprec.mechanisms.residual_bits import ResidualBits, drawn_ratings, sides_of_the_mean
from dprec.randomness import words
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


def test_a_rating_is_compared_with_the_mean_of_its_own_user() -> None:
    counts = np.array([3, 0, 1, 2])
    levels = np.array([1, 3, 5, 4, 2, 3], dtype=np.uint8)
    # The second rating is the mean, and a rating alone is its own mean: neither is above.
    assert sides_of_the_mean(counts, levels, STARS).tolist() == [1, 1, 5, 1, 1, 5]


@pytest.mark.parametrize(("epsilon", "bits"), [(0.1, 1), (1, 1), (2.9, 1), (3, 2), (4, 2), (8, 4), (1e6, 64)])
def test_every_bit_has_a_budget_that_is_worth_it(epsilon: float, bits: int) -> None:
    assert ResidualBits().asked(epsilon) == bits
    assert ResidualBits(bits=3).asked(epsilon) == 3


def test_each_choice_of_ratings_is_equally_likely() -> None:
    """Frequencies of the six pairs of four ratings, within six standard errors: false alarm 1.2e-8."""
    users = 30_000
    drawn = drawn_ratings(np.full(users, 4), 2, words(5, "choice", 0, 4 * users)).reshape(users, 4)
    assert (drawn.sum(axis=1) == 2).all()
    pairs = np.unique(drawn @ (1 << np.arange(4)), return_counts=True)[1]
    assert pairs.size == 6
    assert np.abs(pairs / users - 1 / 6).max() < 6 * np.sqrt(5 / 36 / users)


def test_users_with_few_ratings_report_on_all_of_them() -> None:
    assert drawn_ratings(np.array([0, 1, 2]), 2, words(5, "choice", 0, 3)).all()
