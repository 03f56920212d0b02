"""Which items a user rated: from symbols alone, beside what is public, and from what lists lack."""

import numpy as np
import pytest
from scipy.special import expit

from dprec.attacks import Figure
from dprec.attacks.membership import Membership, Popularity, omission
from dprec.mechanisms import HiddenThreshold, Mechanism, RandomizedSet
from tests import make
from tests.dprec.attacks.games import Played, people, reported, seen_by_all

PEOPLE = people()
ENDS = "auc", "tpr"


def reached(game: Played) -> dict[str, Figure]:
    """Return the figures of the attack."""
    return dict(Membership().perform(game).figures)


@pytest.mark.parametrize("mechanism", [HiddenThreshold(), RandomizedSet()])
def test_hidden_items_are_told_by_no_more_than_epsilon_allows(mechanism: Mechanism) -> None:
    for epsilon in (0.3, 1.0, 3.0):
        figures = reached(reported(PEOPLE, mechanism, epsilon, "cell"))
        for end in ENDS:
            figure = figures[f"membership_{end}"]
            assert figure.value is not None
            assert figure.bound is not None
            assert figure.value <= figure.bound < 1
            assert figures[f"membership_posterior_{end}"].bound is None
        alone, beside = figures["membership_auc"], figures["membership_posterior_auc"]
        assert alone.baseline == 0.5
        assert (beside.baseline or 1) > 0.6
        # An area over 4,000 ratings is 0.025 below its expectation with probability 1e-6 at most.
        assert (beside.value or 0) > max(alone.value or 1, beside.baseline or 1) - 0.025


def test_randomised_sets_reach_the_area_that_is_allowed() -> None:
    figure = reached(reported(PEOPLE, RandomizedSet(), 1.0, "cell"))["membership_auc"]
    assert figure.value == pytest.approx(expit(1.0), abs=0.025)


def test_a_set_that_is_seen_is_noted() -> None:
    seen, hidden = (
        Played(PEOPLE, seen_by_all(PEOPLE, trusted=True)),
        reported(PEOPLE, RandomizedSet(), 9.0, "cell"),
    )
    notes = [Membership().perform(game).notes for game in (seen, hidden)]
    assert [any("in clear" in note for note in each) for each in notes] == [True, False]


def test_popularity_leaves_the_users_own_rating_out() -> None:
    popularity = Popularity.of(make.rated(np.array([[1, 0], [1, 1], [0, 0]])))
    np.testing.assert_allclose(expit(popularity.log_odds), [[2.5 / 4, 1.5 / 4], [1.5 / 4, 0.5 / 4]])


def test_listed_items_that_are_missing_were_rated() -> None:
    rated = np.zeros((5, 8), dtype=np.bool_)
    rated[0, 1] = rated[3, 2] = rated[4, 6] = True
    lists = np.array([[0, 2, 3], [0, 1, 2], [0, 1, 2], [0, 1, -1], [-1, -1, -1]])
    figure = omission(lists, make.rated(rated))
    # The most listed are 0, 1, 2 and 3; missing are 1 and, in four lists, others.
    assert figure.value == pytest.approx(2 / 5)
    assert figure.baseline == pytest.approx(2 / 20)
    assert figure.bound is None
    assert omission(None, make.rated(rated)) == Figure(None)
    assert omission(np.full((5, 2), -1), make.rated(rated)) == Figure(None)
