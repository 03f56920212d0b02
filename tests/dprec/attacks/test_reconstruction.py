"""Levels and signs recovered from reports: what is known before, and every kind of evidence."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.attacks import Figure, Transcript
from dprec.attacks.background import Background, Tilts
from dprec.attacks.reconstruction import Reconstruction, readings
from dprec.mechanisms import (
    BoundedLaplace,
    HiddenThreshold,
    Mechanism,
    RandomizedResponse,
    Raw,
    ResidualBits,
    SetOnly,
    ThresholdBit,
)
from dprec.observations import Observations
from dprec.ratings import POSITIVE, Ratings
from tests.dprec.attacks.games import STARS, FakeGame, nothing_said, people, reported

PEOPLE = people()
ITEMS = Reconstruction(background="items")
USERS = Reconstruction()


def reached(attack: Reconstruction, game: FakeGame) -> tuple[Figure, Figure]:
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


def test_shares_of_much_rated_items_are_theirs() -> None:
    levels = np.array([1] * 200 + [5] * 600)
    columns = np.arange(800), np.zeros(800, dtype=np.int64), levels
    ratings = Ratings.from_triples(*columns, STARS, user_ids=np.arange(800), item_ids=np.arange(1))
    shares = Background.of(ratings).of_items[0]
    assert shares[4] == pytest.approx(0.75, abs=0.03)
    assert shares[0] == pytest.approx(0.25, abs=0.03)


def test_ways_to_rate_follow_what_is_said() -> None:
    shares = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    ways = Tilts.unfitted(shares)
    evidence = ways.evidence(np.tile(shares, (20, 1)), np.tile(np.eye(5)[4], (20, 1))).sum(axis=0)
    assert ways.shares(shares[None], evidence[None])[0, 4] > 0.7
    np.testing.assert_allclose(ways.shares(shares[None], 0 * evidence[None])[0], shares, atol=0.05)


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


def test_the_other_reports_of_a_user_tell_more() -> None:
    game = reported(PEOPLE, RandomizedResponse(), 1.5)
    assert (reached(USERS, game)[0].value or 0) > (reached(ITEMS, game)[0].value or 0) + 0.01


def test_several_reports_about_a_rating_are_multiplied() -> None:
    one, other = (reported(PEOPLE, RandomizedResponse(), 1.0, seed=seed) for seed in (1, 2))
    both = replace(one.transcript, reports=one.transcript.reports + other.transcript.reports)
    joined = replace(one.transcript, reports=(Observations.joined(both.reports),))
    alone = reached(ITEMS, one)[0].value or 0
    assert reached(ITEMS, one.saying(both))[0].value == reached(ITEMS, one.saying(joined))[0].value
    assert (reached(ITEMS, one.saying(both))[0].value or 0) > alone + 0.02


def test_hidden_rows_tell_of_listed_and_unlisted_ratings() -> None:
    game = reported(PEOPLE, HiddenThreshold(), 4.0, "cell")
    told = readings(game.transcript, PEOPLE)
    assert sum(each.ratings.size for each in told) == PEOPLE.count
    _, sign = reached(ITEMS, game)
    assert (sign.baseline or 1) + 0.1 < (sign.value or 0)


def test_sides_of_the_users_mean_tell_of_levels() -> None:
    _, sign = reached(ITEMS, reported(PEOPLE, ResidualBits(), 8.0, "user"))
    assert (sign.value or 0) > (sign.baseline or 1) + 0.005


def test_clear_ratings_are_recovered_and_sets_tell_nothing() -> None:
    level, sign = reached(USERS, reported(PEOPLE, Raw(), None))
    assert level.value == sign.value == 1.0
    assert level.bound is None
    level, _ = reached(ITEMS, reported(PEOPLE, SetOnly(), None))
    assert level.value == level.baseline


def test_values_without_symbols_are_near_their_levels() -> None:
    game = reported(PEOPLE, Raw(), None)
    observed = replace(game.transcript.reports[0], evidence=None)
    assert reached(ITEMS, game.saying(replace(game.transcript, reports=(observed,))))[0].value == 1.0


def test_without_reports_the_baseline_is_all() -> None:
    level, sign = reached(USERS, nothing_said(PEOPLE))
    assert level.value == level.baseline
    assert level.bound is None
    assert sign.value == sign.baseline


def test_who_is_given_the_ratings_has_them() -> None:
    game = nothing_said(PEOPLE)
    told = reached(USERS, game.saying(replace(game.transcript, trusted=True)))
    assert [figure.value for figure in told] == [1.0, 1.0]
    assert [figure.bound for figure in told] == [None, None]


def test_pairs_have_no_levels() -> None:
    pairs = Ratings.from_pairs(PEOPLE.users, PEOPLE.items)
    transcript = Transcript(n_users=pairs.n_users, n_items=pairs.n_items, scale=POSITIVE)
    game = replace(nothing_said(PEOPLE), truth=pairs, transcript=transcript)
    assert reached(USERS, game) == (Figure(None), Figure(None))
