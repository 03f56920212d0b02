"""Bounds over 200 seeds of small populations made to come close to them.

Everybody in one of two groups, items in disjoint blocks, hardly any rated cells or hardly any others, sets
that tell an attribute: whatever a user's cells say of each other, no figure is above its bound, and the mean
of the figures is near what is allowed in the mean. Of 200 figures, two are above their bounds with a
probability of 2e-8 at most. Means are within five or six standard errors: 1e-6 at most.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from dprec.accounting import NoisySum, PrivacyAccountant
from dprec.arrays import Bools
from dprec.attacks.attributes import Attributes
from dprec.attacks.bounds import Roc, between_users
from dprec.attacks.linkage import Linkage, allowed_to_find
from dprec.attacks.membership import Membership, allowed_by_reports
from dprec.attacks.rounds import Rounds, pairs_of, within_items
from dprec.catalogue import UsersTable
from dprec.ratings import Ratings
from tests import make
from tests.dprec.attacks.games import Played, hidden_rows, seen_by_all, transcript_of
from tests.dprec.attacks.test_rounds import of_halves, sent

SEEDS = 200
MOST = 1
"""Figures of 200 that may be above their bounds."""


def answers(true: Bools, epsilon: float, seed: int) -> Bools:
    """Return bits through randomised response."""
    return true ^ (np.random.default_rng(seed).random(true.shape) < expit(-epsilon))


# Whose report it is.


def found_by_bits(own: Bools, epsilon: float, seed: int) -> float:
    """Return the share of people who are found among bits on their group; equal bits share."""
    said = answers(own, epsilon, seed)
    alike = np.array([np.count_nonzero(~said), np.count_nonzero(said)])[own.astype(np.int64)]
    return float(np.where(said == own, 1 / np.maximum(alike, 1), (alike == 0) / own.size).mean())


@pytest.mark.parametrize("group", [1, 150, 299])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_people_are_found_by_a_bit_no_more_often_than_is_allowed(group: int, epsilon: float) -> None:
    own = np.arange(300) < group
    mean, bound = allowed_to_find(Roc.allowed(epsilon), 300, 300)
    shares = np.array([found_by_bits(own, epsilon, seed) for seed in range(SEEDS)])
    assert np.count_nonzero(shares > bound) <= MOST
    assert shares.mean() <= mean + 5 * shares.std() / np.sqrt(SEEDS)


def in_blocks(users: int, items: int) -> Ratings:
    """Return the sets of users of whom each has a block of items to itself."""
    return make.as_sets(np.arange(users)[:, None] == np.arange(users * items) // items)


@pytest.mark.parametrize("users", [40, pytest.param(200, marks=pytest.mark.thorough)])
def test_one_known_item_tells_a_block_and_no_loss_of_cells_is_taken_for_a_bound(users: int) -> None:
    """60 items, each said with epsilon 1: people are found by one of theirs, whose block is then known.

    A report of another has 60 yeses of probability .27, one of the own block 60 of .73.
    """
    truth = in_blocks(users, 60)
    observed, _, bits = hidden_rows(truth, 1.0, seed=1)
    fits = bits.reshape(users, users, 60).sum(axis=2)
    assert (fits.argmax(axis=0) == np.arange(users)).mean() > 0.95
    played = Played(truth, seen_by_all(truth, observed), epsilon=1.0, epsilon_per_user=120.0)
    figure = Linkage(known=(1,), unique=(1,)).perform(played).figures["linkage_top1"]
    # The loss of a cell alone would allow .0136 among 200; that of all cells excludes nothing.
    assert figure.bound is None


# What is known of a user's attribute.


def played_with(have: Bools, distance: float, seed: int) -> Played:
    """Return a game in which one of two profiles is sent with normal noise, as far from none as is stated."""
    truth = make.as_sets(have[:, None] == (np.arange(10) < 5))
    vectors = np.where(have, distance, -distance) + np.random.default_rng(seed).standard_normal(have.size)
    everybody = np.ones(have.size, dtype=np.bool_)
    accountant = PrivacyAccountant(everybody)
    accountant.step(1, everybody, np.inf, np.inf, NoisySum(distance))
    users = UsersTable({"gender": np.where(have, "F", "M")}, have.size)
    return Played(truth, transcript_of(truth, vectors=vectors[:, None]), users, given=accountant)


@pytest.mark.parametrize("seeds", [8, pytest.param(SEEDS, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("group", [30, 60])
def test_an_attribute_that_tells_the_profile_is_guessed_as_is_allowed(group: int, seeds: int) -> None:
    """Two profiles are twice as far apart as one and none; who compares with none allows too little."""
    have, figures = np.arange(120) < group, []
    for seed in range(seeds):
        found = Attributes(columns=("gender",), folds=2).perform(played_with(have, 0.4, seed)).figures
        figures.append([found["attribute_auc_gender"], found["attribute_accuracy_gender"]])
    for of_one in np.array(figures, dtype=object).T:
        assert sum(each.value > each.bound for each in of_one) <= MOST
    areas = np.array([area.value for area, _ in figures])
    error = areas.std() / np.sqrt(seeds)
    curve = between_users(played_with(have, 0.4, 0))
    assert curve is not None
    assert areas.mean() <= curve.auc + 5 * error
    if seeds == SEEDS:
        assert areas.mean() > norm.cdf(0.4 / np.sqrt(2)) + 5 * error


def test_users_who_lose_differently_are_not_compared() -> None:
    """Whose mechanism is another's may be told by that alone."""
    truth = make.as_sets(np.random.default_rng(1).random((8, 5)) < 0.5)
    played = Played(truth, seen_by_all(truth), epsilon=0.1, epsilon_per_user=0.5)
    assert between_users(played) is not None
    assert between_users(replace(played, hides_item_sets=False)) is None
    assert between_users(replace(played, transcript=seen_by_all(truth, trusted=True))) is None
    played.accountant.step(2, np.arange(8) < 4, 0.1, 0.1)
    assert between_users(played) is None


# Which cells are rated.

FEW: dict[str, Callable[[np.random.Generator], Bools]] = {
    "hardly-any-rated": lambda random: random.random((20, 60)) < 0.01,
    "hardly-any-others": lambda random: random.random((20, 60)) < 0.99,
    "blocks": lambda random: np.arange(20)[:, None] == np.arange(60) // 3,
    "one-group": lambda random: (np.arange(20)[:, None] < 10) & (np.arange(60) < 30),
}


@pytest.mark.parametrize("population", FEW)
def test_cells_are_ranked_by_reports_as_is_allowed(population: str) -> None:
    above, areas = 0, []
    for seed in range(SEEDS):
        rated = FEW[population](np.random.default_rng([3, seed])).ravel()
        roc = Roc.of_scores(answers(rated, 1.0, seed) * 1.0, rated, ~rated)
        asked = int(rated.sum())
        allowed = allowed_by_reports(1.0, asked, rated.size - asked)
        above += roc.auc > allowed["membership_auc"][1]
        above += float(roc.at(0.001)) > allowed["membership_tpr"][1]
        areas.append(roc.auc)
    assert above <= MOST
    assert np.mean(areas) == pytest.approx(expit(1.0), abs=5 * np.std(areas) / np.sqrt(SEEDS))


def test_reports_that_are_missing_leave_no_bound() -> None:
    """Who is silent is known, and may be who has rated most."""
    truth = make.as_sets(np.random.default_rng(1).random((20, 30)) < 0.3)
    observed = hidden_rows(truth, 1.0, 1)[0]
    reported = np.arange(20) > 0
    object.__setattr__(observed.evidence, "reported", reported)
    figures = Membership().perform(Played(truth, seen_by_all(truth, observed), epsilon=1.0)).figures
    assert figures["membership_auc"].bound is None


# Who has rated an item, from gradients.


@pytest.mark.parametrize("users", [40, 400])
def test_users_are_compared_within_items_as_is_allowed(users: int) -> None:
    """A bit on each user's group: all comparisons of two users are right or wrong together."""
    own = np.arange(users) % 2 == 0
    rated = own[:, None] == (np.arange(12) < 6)
    mean, pairs = float(expit(0.5)), pairs_of(rated)
    assert pairs == pytest.approx(users**2 / 4 / (users - 1))
    areas = np.array([
        within_items(np.where(answers(own, 0.5, seed)[:, None] == (np.arange(12) < 6), 1.0, 0.0), rated)
        for seed in range(SEEDS)
    ])  # fmt: skip
    assert np.count_nonzero(areas > mean + np.sqrt(np.log(1e6) / (2 * pairs))) <= MOST
    assert areas.mean() == pytest.approx(mean, abs=5 * areas.std() / np.sqrt(SEEDS))
    # Without what chance adds, every other figure would be above.
    assert np.count_nonzero(areas > mean) > SEEDS / 4


def test_uploads_of_a_few_users_have_a_bound_with_what_chance_adds() -> None:
    own = np.arange(400) % 2 == 0
    rated = own[:, None] == (np.arange(12) < 6)
    truth = make.as_sets(rated)
    signs = np.where(answers(own, 0.5, 3)[:, None] == (np.arange(12) < 6), 1.0, -1.0)
    transcript = transcript_of(truth, uploads=(sent(signs, compute=of_halves),))
    figures = Rounds().perform(Played(truth, transcript, epsilon=0.5, epsilon_per_user=0.5))
    bound = expit(0.5) + np.sqrt(np.log(1e6) / (2 * pairs_of(rated)))
    assert figures.figures["rounds_membership_auc"].bound == pytest.approx(bound)
    assert "above 0.6225" in figures.notes[-1]
