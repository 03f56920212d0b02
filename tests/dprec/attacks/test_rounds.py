"""What rounds add: likelihoods that multiply, answers that stay, and gradients that show who rated what."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.accounting import ChannelDraws, PrivacyAccountant, dominating_channel
from dprec.arrays import Floats
from dprec.attacks.rounds import Rounds, evidence_of, profiles_like, within_items
from dprec.attacks.transcript import Answered, Upload, of_normal_noise, of_signs
from dprec.completion import Profiles
from dprec.observations import Observations, SymbolReports
from dprec.ratings import Ratings
from tests import make
from tests.dprec.attacks.games import Played, transcript_of

RATINGS = make.synthetic(400, 30, 4000, seed=2)
LIE = 0.2
"""Probability of a wrong bit."""


def played(truth: Ratings = RATINGS, given: PrivacyAccountant | None = None, **said: Any) -> Played:
    """Return a game in which some things were seen."""
    given = given or PrivacyAccountant(rated=RATINGS.counts > 0)
    return Played(truth, transcript_of(RATINGS, **said), given=given, seed=3)


def accountant(rounds: int, per_rating: float) -> PrivacyAccountant:
    spent = PrivacyAccountant(rated=RATINGS.counts > 0)
    for number in range(rounds):
        spent.step(number, RATINGS.counts >= 0, per_rating, per_rating * RATINGS.counts)
    return spent


def bits(seed: int, of: Ratings = RATINGS) -> Observations:
    """Return a bit about whether each rating is above 3, which is wrong as often as `LIE` says."""
    high = of.values > 3
    said = high ^ (np.random.default_rng(seed).random(of.count) < LIE)
    channel = np.where((of.scale.values > 3)[:, None], [LIE, 1 - LIE], [1 - LIE, LIE])
    zeros = np.zeros(of.count, dtype=np.int64)
    evidence = SymbolReports((channel,), said.astype(np.int64), zeros)
    shape = of.n_users, of.n_items
    return make.observations(of.users, of.items, said * 1.0, shape, of.scale, evidence=evidence)


def test_bits_that_are_drawn_anew_add_up() -> None:
    """The share of right signs is a mean of 4,000 bits: one 5.5 deviations away has a probability of 4e-8."""
    spent = accountant(5, np.log((1 - LIE) / LIE))
    reached = Rounds().perform(played(reports=tuple(map(bits, range(5))), given=spent))
    sign, half, first = (reached.figures[f"rounds_sign{when}"] for when in ("", "_half", "_first"))
    assert sign.value is not None
    assert half.value is not None
    assert first.value is not None
    # A majority of three and of five bits, if nothing else is known; with item statistics, somewhat more.
    slack = 5.5 * 0.5 / np.sqrt(RATINGS.count)
    assert abs(first.value - (1 - LIE)) < 0.05 + slack
    assert 0.896 - slack < half.value < 0.95
    assert 0.942 - slack < sign.value < 0.99
    for figure in (sign, half, first):
        assert figure.baseline is not None
        assert figure.bound is None
        assert figure.baseline < figure.value


def test_reports_on_one_permanent_answer_say_what_the_first_does() -> None:
    one = bits(1)

    def as_one(joined: Observations) -> Observations:
        cells = joined.users.astype(np.int64) * joined.shape[1] + joined.items
        return joined.select(np.diff(cells, prepend=-1) > 0)

    spent = accountant(1, np.log((1 - LIE) / LIE))
    said = played(given=spent, reports=(one, one, one), read_together=as_one)
    figures = Rounds().perform(said).figures
    assert figures["rounds_sign"].value == figures["rounds_sign_first"].value
    assert figures["rounds_level"].value == figures["rounds_level_first"].value


def of_halves(profiles: Profiles) -> Floats:
    """Return the number of each item: a half if it was rated."""
    return profiles.to_sets().toarray() / 2


def sent(answers: Floats, **other: object) -> Upload:
    """Return what users sent about all items, one number each."""

    def read() -> Iterator[Answered]:
        users, numbers = np.indices(answers.shape)
        yield Answered(users.ravel(), numbers.ravel(), answers.ravel())

    given = {"per_item": 1, "compute": of_halves, "likelihood": of_signs(0.8), **other}
    return Upload(n_users=len(answers), n_numbers=answers.shape[1], read=read, **given)  # type: ignore[arg-type]


MADE_UP = profiles_like(RATINGS, 2000, np.random.default_rng(1))


def test_signs_are_weighed_by_what_made_up_devices_compute() -> None:
    signs = np.where(np.random.default_rng(0).random((RATINGS.n_users, RATINGS.n_items)) < 0.5, 1.0, -1.0)
    users = np.array([3, 17])
    evidence = evidence_of(sent(signs), users, MADE_UP)
    assert evidence == pytest.approx(np.log1p(0.4 * signs[users]))


def test_what_is_sent_about_rated_items_alone_shows_them() -> None:
    sets = RATINGS.to_sets()

    def read() -> Iterator[Answered]:
        yield Answered(
            RATINGS.users.astype(np.int64), RATINGS.items.astype(np.int64), np.zeros(RATINGS.count)
        )

    upload = replace(sent(sets.toarray()), read=read, shows_items=True)
    figure = Rounds().perform(played(uploads=(upload,))).figures["rounds_membership_auc"]
    assert figure.value == 1.0


def test_noise_hides_less_with_every_round_and_never_less_than_epsilon_allows() -> None:
    """Randomised response about every item, of which each cell loses epsilon in a round.

    Within 0.02, which is more than 5.5 standard errors of the area over 400 users and 30 items.
    """
    rounds, scale = 4, 0.3
    epsilon = float(np.log((1 + scale / 2) / (1 - scale / 2)))
    rated = RATINGS.to_sets().toarray() > 0
    random = np.random.default_rng(5)

    def upload() -> Upload:
        heads = random.random(rated.shape) < (1 + scale * rated / 2) / 2
        return sent(np.where(heads, 1.0, -1.0), likelihood=of_signs(scale))

    spent = PrivacyAccountant(rated=RATINGS.counts > 0)
    for number in range(rounds):
        draw = ChannelDraws((dominating_channel(epsilon),))
        spent.step(number, RATINGS.counts >= 0, epsilon, epsilon, draw)
    game = played(uploads=tuple(upload() for _ in range(rounds)), given=spent)
    figures = Rounds().perform(game).figures
    first, every = figures["rounds_membership_auc_first"], figures["rounds_membership_auc"]
    assert first.value is not None
    assert every.value is not None
    assert every.bound is not None
    assert first.value < every.value <= every.bound < 1
    assert first.value == pytest.approx(0.5 + scale / 8, abs=0.02)
    trusted = Rounds().perform(game.saying(replace(game.transcript, trusted=True)))
    assert trusted.figures["rounds_membership_auc"].bound is None


def test_normal_noise_is_weighed_by_means_and_variances() -> None:
    likelihood = of_normal_noise(2.0)
    answers, means, variances = np.array([1.0, 3.0]), np.array([0.0, 3.0]), np.array([5.0, 0.0])
    expected = [-0.5 * (np.log(9) + 1 / 9), -0.5 * np.log(4)]
    assert likelihood(answers, means, variances) == pytest.approx(expected)


def test_areas_within_items() -> None:
    rated = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 0]]) > 0
    perfect = rated * 1.0
    assert within_items(perfect, rated) == 1.0
    assert within_items(-perfect, rated) == 0.0
    assert within_items(np.zeros((3, 3)), rated) == 0.5
    # What differs between items alone, such as popularity, says nothing.
    assert within_items(np.tile([3.0, 2.0, 1.0], (3, 1)), rated) == 0.5
    assert within_items(perfect, np.ones((3, 3), dtype=np.bool_)) is None
