from itertools import combinations, product

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.mechanisms import ResidualBits
from dprec.reports import ResidualBitFamily
from dprec.reports.partly_answered import sides_of_the_mean
from tests.make import STARS

N_ITEMS = 20


def calibrated(epsilon: float, bits: int | None = None) -> ResidualBitFamily:
    budget = PrivacyBudget(epsilon=epsilon, per="user")
    return ResidualBits(bits=bits).family(budget, STARS, N_ITEMS)


@pytest.mark.parametrize(("epsilon", "bits"), [(0.3, 1), (2.0, 2), (6.0, 3), (9.0, None)])
def test_no_two_profiles_on_the_same_items_differ_by_more_than_the_budget(
    epsilon: float, bits: int | None
) -> None:
    """All profiles of three ratings, from the probabilities of every report."""
    mechanism = calibrated(epsilon, bits)
    asked = int(mechanism.cells(np.array([3]))[0])
    chances = mechanism.channel(3).probabilities
    profiles = np.array(list(product(range(1, 6), repeat=3)), dtype=np.uint8)
    sides = sides_of_the_mean(np.full(len(profiles), 3), profiles.ravel(), STARS).reshape(-1, 3)
    choices = list(combinations(range(3), asked))
    given = np.array(
        [
            [
                np.prod([chances[side[cell] - 1, bit] for cell, bit in zip(choice, answers, strict=True)])
                for choice in choices
                for answers in product((0, 1), repeat=asked)
            ]
            for side in sides
        ]
    )
    losses = np.log(given.max(axis=0) / given.min(axis=0))
    assert losses.max() <= epsilon * (1 + 1e-12)
    # Below and above the mean are not both possible for all three ratings, but for two of them.
    assert losses.max() > 0.6 * epsilon
    per_rating, per_user = mechanism.losses(np.array([0, 1, 3]))
    assert per_user == pytest.approx([0, min(epsilon, 20), epsilon], rel=1e-9)
    np.testing.assert_array_equal(per_rating, [np.nan, *per_user[1:]])


def test_a_report_is_decoded_and_its_answers_read() -> None:
    mechanism, counts = calibrated(4.0), np.array([3, 0, 1])
    symbols = np.array([2, 1, 0, 1], dtype=np.uint16)
    items = np.array([0, 4, 9, 7])
    decoded = mechanism.codec.decode(mechanism.codec.encode(np.array([0, 3, 3, 4]), items, symbols))
    assert decoded.symbols.tolist() == symbols.tolist()
    reports = mechanism.evidence_of(counts, symbols, np.ones(3, dtype=np.bool_))
    assert reports.cells.tolist() == [1, 2, 3]
    assert reports.above.tolist() == [True, False, True]
    assert reports.lies == pytest.approx(1 / (1 + np.exp([2.0, 2.0, 4.0])))
    values = mechanism.read(counts, symbols)
    assert values[0] == 3
    assert values[1] > 3 > values[2]
    assert mechanism.noise_variance(counts) is not None


def test_users_who_answer_more_or_less_than_they_should_are_not_read() -> None:
    mechanism = calibrated(4.0)
    reports = mechanism.evidence_of(
        np.array([3, 3]), np.array([0, 1, 1, 2, 1, 2], dtype=np.uint16), np.ones(2, dtype=np.bool_)
    )
    assert reports.cells.size == 0


def test_a_rating_is_compared_with_the_mean_of_its_own_user() -> None:
    counts = np.array([3, 0, 1, 2])
    levels = np.array([1, 3, 5, 4, 2, 3], dtype=np.uint8)
    # The second rating is the mean, and a rating alone is its own mean: neither is above.
    assert sides_of_the_mean(counts, levels, STARS).tolist() == [1, 1, 5, 1, 1, 5]
