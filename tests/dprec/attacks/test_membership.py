"""Which items a user rated: from symbols alone, beside what is public, and from what lists lack."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from dprec.arrays import offsets
from dprec.attacks import Figure
from dprec.attacks.membership import Membership, Popularity, omission
from dprec.mechanisms import HiddenThreshold, Mechanism, RandomizedSet, ThresholdBit
from dprec.ratings import Ratings
from tests.dprec.attacks.games import STARS, FakeGame, nothing_said, people, reported

PEOPLE = people()
ENDS = "auc", "tpr"


def reached(game: FakeGame) -> dict[str, Figure]:
    """Return the figures of the attack."""
    return dict(Membership().perform(game).figures)


def ratings_of(rated: np.ndarray) -> Ratings:
    """Return ratings of three stars in some cells."""
    users, items = np.nonzero(rated)
    names = np.arange(rated.shape[0]), np.arange(rated.shape[1])
    stars = np.full(users.size, 3.0)
    return Ratings.from_triples(users, items, stars, STARS, user_ids=names[0], item_ids=names[1])


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


def test_pairs_without_ratings_are_told_as_well() -> None:
    pairs = Ratings.from_pairs(PEOPLE.users, PEOPLE.items, user_ids=PEOPLE.user_ids, item_ids=PEOPLE.item_ids)
    figure = reached(reported(pairs, RandomizedSet(), 2.0, "cell"))["membership_auc"]
    assert figure.value == pytest.approx(expit(2.0), abs=0.025)


def test_sets_that_are_shown_are_told_in_full() -> None:
    figures = reached(reported(PEOPLE, ThresholdBit(), 1.0))
    for name in ("membership", "membership_posterior"):
        assert figures[f"{name}_auc"].value == figures[f"{name}_tpr"].value == 1.0
        assert figures[f"{name}_auc"].bound is None


def test_without_reports_the_baseline_is_all() -> None:
    figures = reached(nothing_said(PEOPLE))
    assert figures["membership_auc"].value == 0.5
    popular = figures["membership_posterior_auc"]
    assert popular.value == popular.baseline
    assert figures["omission_precision"] == Figure(None)


def test_who_is_given_the_ratings_has_the_sets() -> None:
    game = nothing_said(PEOPLE)
    figures = reached(game.saying(replace(game.transcript, trusted=True)))
    assert figures["membership_auc"].value == 1.0
    assert figures["membership_auc"].bound is None


def test_some_users_answer_for_all_in_a_large_population() -> None:
    attacked = Membership(cells=PEOPLE.n_items * 20).perform(nothing_said(PEOPLE))
    assert attacked.notes == ("Asked of the first 20 users.",)


def test_nothing_rated_has_no_figures() -> None:
    empty = replace(PEOPLE, indptr=offsets(np.zeros(PEOPLE.n_users, dtype=np.int64)))
    empty = replace(empty, items=PEOPLE.items[:0], levels=PEOPLE.levels[:0])
    attacked = Membership().perform(nothing_said(empty))
    assert set(attacked.figures) == {"omission_precision"}
    assert attacked.notes


def test_popularity_leaves_the_users_own_rating_out() -> None:
    popularity = Popularity.of(ratings_of(np.array([[1, 0], [1, 1], [0, 0]])))
    np.testing.assert_allclose(expit(popularity.log_odds), [[2.5 / 4, 1.5 / 4], [1.5 / 4, 0.5 / 4]])


def test_active_users_are_expected_to_have_rated_more() -> None:
    random = np.random.default_rng(5)
    popularity = Popularity.of(ratings_of(random.random((200, 30)) < random.beta(1, 4, 200)[:, None]))
    ratios = np.stack([np.full(30, 2.0), np.zeros(30), np.full(30, -2.0)])
    given = popularity.given_others(np.tile(popularity.log_odds[0], (3, 1)), ratios)
    assert np.all(given[0] > given[1])
    assert np.all(given[1] > given[2])
    # What is said of a cell itself is not among what is known before.
    ratios[0, 0] = -2.0
    again = popularity.given_others(np.tile(popularity.log_odds[0], (3, 1)), ratios)
    assert again[0, 0] == pytest.approx(given[0, 0])
    assert again[0, 1] < given[0, 1]


def test_listed_items_that_are_missing_were_rated() -> None:
    rated = np.zeros((5, 8), dtype=np.bool_)
    rated[0, 1] = rated[3, 2] = rated[4, 6] = True
    lists = np.array([[0, 2, 3], [0, 1, 2], [0, 1, 2], [0, 1, -1], [-1, -1, -1]])
    figure = omission(lists, ratings_of(rated))
    # The most listed are 0, 1, 2 and 3; missing are 1 and, in four lists, others.
    assert figure.value == pytest.approx(2 / 5)
    assert figure.baseline == pytest.approx(2 / 20)
    assert figure.bound is None
    assert omission(None, ratings_of(rated)) == Figure(None)
    assert omission(np.full((5, 2), -1), ratings_of(rated)) == Figure(None)
