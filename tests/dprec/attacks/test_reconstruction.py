"""Levels and signs recovered from reports: what is known before, and every kind of evidence."""

import numpy as np
import pytest

from dprec.attacks import Figure
from dprec.attacks.background import Background
from dprec.attacks.reconstruction import Reconstruction
from dprec.mechanisms import BoundedLaplace, Mechanism, RandomizedResponse, ThresholdBit
from tests.dprec.attacks.games import Played, people, reported

PEOPLE = people()
ITEMS = Reconstruction(background="items")
USERS = Reconstruction()


def reached(attack: Reconstruction, game: Played) -> tuple[Figure, Figure]:
    """Return the figures of the level and of the sign."""
    figures = attack.perform(game).figures
    return figures["recovered_level"], figures["recovered_sign"]


def test_shares_among_others_leave_the_rating_out() -> None:
    background, places = Background.of(PEOPLE), np.flatnonzero(PEOPLE.items == 3)
    changed = PEOPLE.at_levels(np.where(np.arange(PEOPLE.count) == places[0], 1, 0).astype(np.uint8))
    one = background.of_ratings(PEOPLE.items[places[:1]], PEOPLE.levels[places[:1]])
    other = Background.of(changed).of_ratings(changed.items[places[:1]], changed.levels[places[:1]])
    np.testing.assert_allclose(one.sum(), 1)
    # The prior of all items moves with every rating, but little.
    np.testing.assert_allclose(one, other, atol=0.02)


def test_the_report_on_a_rating_is_not_among_the_others() -> None:
    background, counts = Background.of(PEOPLE), PEOPLE.counts[:1]
    own = slice(0, int(counts[0]))
    shares = background.of_ratings(PEOPLE.items[own], PEOPLE.levels[own])
    likelihoods = np.ones_like(shares)
    nothing = background.given_others(shares, likelihoods, counts)
    likelihoods[3] = np.eye(shares.shape[1])[4]
    given = background.given_others(shares, likelihoods, counts)
    np.testing.assert_allclose(given[3], nothing[3])
    assert np.all(np.delete(given, 3, axis=0)[:, 4] > np.delete(nothing, 3, axis=0)[:, 4])


@pytest.mark.parametrize("attack", [ITEMS, USERS], ids=["items", "users"])
@pytest.mark.parametrize("mechanism", [ThresholdBit(), BoundedLaplace(), RandomizedResponse()])
def test_reports_recover_more_than_nothing_and_without_a_bound(
    attack: Reconstruction, mechanism: Mechanism
) -> None:
    before = 0.0
    for epsilon in (0.2, 1.5, 4.0):
        for figure in reached(attack, reported(PEOPLE, mechanism, epsilon)):
            assert figure.value is not None
            assert figure.baseline is not None
            assert figure.bound is None
            # Of 4,000 ratings, a share is 0.03 below its expectation with probability 1e-6 at most.
            assert figure.baseline - 0.03 < figure.value
        assert figure.value > before - 0.01
        before = figure.value
    assert before > figure.baseline + 0.05


def test_randomised_response_is_believed_where_little_is_known_before() -> None:
    figure, _ = reached(ITEMS, reported(PEOPLE, RandomizedResponse(), 4.0))
    assert figure.value is not None
    assert figure.value == pytest.approx(1 / (1 + 4 * np.exp(-4.0)), abs=0.03)
