"""A message with all of a user's reports hides only among messages that show the same items."""

import math

import numpy as np
import pytest

from dprec.accounting import ShuffledProfiles, clones_delta, with_the_same_items

DELTA = 1e-6


def test_only_messages_on_the_same_items_are_alike() -> None:
    profiles = [[1, 2], [1, 2], [1], [2, 3], [], [1, 2], [513]]
    counts = np.array([len(own) for own in profiles])
    items = np.concatenate(profiles).astype(np.int32)
    assert with_the_same_items(counts, items).tolist() == [3, 3, 1, 1, 1, 3, 1]


def test_a_message_that_nothing_hides_loses_what_it_would_without_shufflers() -> None:
    losses = np.array([0.0, 0.5, 0.5, 0.5, 40.0, 900.0, 0.5])
    mixed = np.array([1, 1, 100, 10_000, 10_000, 10_000, 0])
    epsilons = ShuffledProfiles(losses, mixed).per_user(DELTA)
    assert epsilons[:2].tolist() == [0.0, 0.5]
    assert epsilons[2] > 5 * epsilons[3]
    assert epsilons[4:6].tolist() == [40.0, 900.0]
    assert math.isinf(epsilons[6])


@pytest.mark.parametrize(("loss", "mixed"), [(0.5, 100), (1.0, 1000)])
def test_a_hidden_message_loses_what_clones_leave(loss: float, mixed: int) -> None:
    (epsilon,) = ShuffledProfiles(np.array([loss]), np.array([mixed])).per_user(DELTA)
    assert clones_delta(epsilon, mixed, loss) <= DELTA < clones_delta(0.999 * epsilon, mixed, loss)
