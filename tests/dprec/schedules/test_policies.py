from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.arrays import Bools
from dprec.attacks import recovered
from dprec.datasets import Synthetic
from dprec.datasets.synthetic import Arrivals
from dprec.mechanisms import ThresholdBit
from dprec.observations import Observations
from dprec.schedules import Collection, Fresh, Held, Increments, Periods, RepeatedAnswers, Schedule
from tests import make
from tests.distributions import check_counts

RATINGS = Synthetic(users=30, items=40, ratings=600, arrivals=Arrivals()).load_timed()
PERIODS = Periods.of(RATINGS, 7.0)
LAST = PERIODS.count - 2
"""The last period after which there is a collection."""
BUDGET = PrivacyBudget(epsilon=1.0)


def asked(schedule: Schedule, *, absent: set[int] = frozenset()) -> list[Bools]:  # type: ignore[assignment]
    """Return on what devices report in each collection, where in some of these nobody answers."""
    return [reported for reported, _ in went(schedule, absent=absent)]


def went(schedule: Schedule, *, absent: Sequence[int] | set[int] = ()) -> list[tuple[Bools, Bools]]:
    """Return the same, and about what of it they answer."""
    (shown, told), masks = np.zeros((2, RATINGS.count), dtype=np.bool_), list[tuple[Bools, Bools]]()
    for number in range(PERIODS.count - 1):
        held = Held(PERIODS, number, number, shown, told * RATINGS.levels, public_seed=3)
        reported = schedule.reported(held)
        answered = reported & schedule.answering(held)
        masks.append((reported, answered))
        if number not in absent:
            shown, told = shown | reported, told | answered
    return masks


@given(absent=st.sets(st.integers(0, 29)))
def test_increments_ask_about_each_rating_until_it_is_answered(absent: set[int]) -> None:
    masks = asked(Increments(), absent=absent)
    answered = np.zeros(RATINGS.count, dtype=np.bool_)
    for period, mask in enumerate(masks):
        assert (mask == (PERIODS.held(period) & ~answered)).all()
        answered |= mask & (period not in absent)


@pytest.mark.parametrize("choose", ["first", "sampled"])
def test_a_device_gives_no_more_answers_than_its_cap(choose: str) -> None:
    masks = went(Increments(answers_per_user=5, choose=choose))  # type: ignore[arg-type]
    reports, answers = np.sum(masks, axis=0)
    assert answers.max() == 1
    # Those beyond it are shown once as well.
    assert (reports == PERIODS.held(LAST)).all()
    per_user = np.bincount(RATINGS.users, weights=answers, minlength=RATINGS.n_users)
    assert (per_user == np.minimum(5, np.bincount(RATINGS.users[PERIODS.held(LAST)], minlength=30))).all()
    if choose == "first":
        assert RATINGS.times is not None
        for user in range(RATINGS.n_users):
            own = (RATINGS.users == user) & PERIODS.held(LAST)
            latest = RATINGS.times[own & (answers > 0)].max(initial=-np.inf)
            assert (RATINGS.times[own & (answers == 0)] >= latest).all()


def test_increments_install_a_memory_that_keeps_the_cap() -> None:
    policy = Increments(answers_per_user=7, on_change="update")
    assert policy.answers == RepeatedAnswers(answers_per_user=7, on_change="update")


def test_fresh_noise_shares_the_budget_or_costs_it_each_time() -> None:
    whole = PrivacyBudget(epsilon=3.0, per="user", composition="pld", delta=1e-5)
    share = Fresh().share(whole, 30)
    assert share is not None
    assert share.epsilon == pytest.approx(0.1)
    assert 30 * share.epsilon <= 3.0
    assert share.delta == pytest.approx(1e-5 / 30)
    assert Fresh(budget="each").share(whole, 30) == whole
    assert Fresh().share(None, 30) is None
    assert (Fresh(every=4).horizon(PERIODS), Fresh().horizon(PERIODS)) == (8, LAST + 1)
    assert Fresh(every=4, collections=2).division.most == 9


def test_a_number_of_collections_of_ones_own_is_a_word_on_what_they_share() -> None:
    class Often(Fresh):
        def horizon(self, periods: Periods) -> int:
            return 1

    class Rarely(Fresh):
        @property
        def periods_each(self) -> int:
            return 2 * self.every

    assert (Often.declares_loss(), Rarely.declares_loss()) == (True, False)


def collections(schedule: Schedule, epsilon: float) -> list[Collection]:
    """Return collections to which everybody present who is asked answers, without what was said."""
    family = ThresholdBit().family(PrivacyBudget(epsilon=epsilon), RATINGS.scale, RATINGS.n_items)
    nothing = make.nothing_observed(30, 40, RATINGS.scale)
    never = np.zeros(RATINGS.n_users, dtype=np.int64)
    return [
        Collection(number, family, RATINGS.select(mask).counts, never, PERIODS.present(number), nothing)
        for number, mask in enumerate(asked(schedule))
    ]


def test_a_rating_that_is_answered_once_loses_epsilon_once() -> None:
    made = collections(Increments(), 1.0)
    accountant = Increments().accountant(made)
    answers = RATINGS.select(PERIODS.held(LAST)).counts
    there = answers > 0
    np.testing.assert_allclose(accountant.get_epsilon(per="rating")[there], 1.0)
    np.testing.assert_allclose(accountant.get_epsilon()[there], answers[there])
    # Composed like as many draws in one report.
    alone = made[0].family.accountant(answers, there)
    np.testing.assert_allclose(accountant.get_epsilon(1e-6), alone.get_epsilon(1e-6))


def test_fresh_answers_about_a_rating_add_up() -> None:
    made = collections(Fresh(), 0.1)
    accountant = Fresh().accountant(made)
    times = np.sum([(each.counts > 0) & each.sent for each in made], axis=0)
    there = times > 0
    np.testing.assert_allclose(accountant.get_epsilon(per="rating")[there], 0.1 * times[there])
    draws = np.sum([each.counts for each in made], axis=0)
    np.testing.assert_allclose(accountant.get_epsilon()[there], 0.1 * draws[there])
    assert (accountant.get_epsilon(1e-6) <= accountant.get_epsilon()).all()


def test_averaging_recovers_what_fresh_noise_hides_and_nothing_of_one_answer() -> None:
    family = ThresholdBit().family(BUDGET, RATINGS.scale, RATINGS.n_items)
    channel = family.channel(1)
    random = np.random.default_rng(1)

    def collected() -> Observations:
        words = random.integers(0, 1 << 64, RATINGS.count, np.uint64)
        symbols = channel.sample(RATINGS.levels, words)
        evidence = family.evidence_of(RATINGS.counts, symbols, RATINGS.counts >= 0)
        cells = RATINGS.users, RATINGS.items, np.zeros(RATINGS.count)
        return Observations.of(*cells, (30, 40), RATINGS.scale, evidence=evidence)

    once = collected()
    alone = recovered(once, RATINGS)
    repeated = recovered(Observations.joined([once] * 9), RATINGS)
    fresh = recovered(Observations.joined([collected() for _ in range(30)]), RATINGS)
    assert alone == repeated
    assert alone is not None
    assert fresh is not None
    # The truth is told with probability 0.731 in 600 answers: three in 10**9 are outside of these bounds.
    assert abs(alone - np.e / (1 + np.e)) < 0.11
    assert fresh > 0.95
    assert recovered(make.nothing_observed(30, 40, RATINGS.scale), RATINGS) is None


def test_bits_that_are_drawn_anew_about_a_rating_are_read_as_one_report() -> None:
    family = ThresholdBit().family(BUDGET, RATINGS.scale, RATINGS.n_items)
    channel, random = family.channel(1), np.random.default_rng(2)
    parts, ones = [], np.zeros(RATINGS.count, dtype=np.int64)
    for _ in range(3):
        symbols = channel.sample(RATINGS.levels, random.integers(0, 1 << 64, RATINGS.count, np.uint64))
        ones += symbols
        parts.append(
            make.observations(
                RATINGS.users,
                RATINGS.items,
                channel.values[symbols],
                (30, 40),
                RATINGS.scale,
                noise_variance=6.0,
                likelihood=family.likelihood(RATINGS.counts, symbols),
                evidence=family.evidence_of(RATINGS.counts, symbols, RATINGS.counts >= 0),
            )
        )
    whole = family.together(Observations.joined(parts))
    assert whole.items.tolist() == RATINGS.items.tolist()
    np.testing.assert_allclose(whole.values, np.mean([part.values for part in parts], axis=0))
    assert whole.noise_variance == pytest.approx(2.0)
    assert whole.symbols is not None
    assert whole.symbols.symbols.tolist() == ones.tolist()
    np.testing.assert_allclose(whole.symbols.channels[0].sum(axis=1), 1.0)
    # Up to what does not depend on the level, the likelihood is the product of those of the bits.
    product = np.prod([part.likelihood for part in parts], axis=0)
    assert whole.likelihood is not None
    ratio = whole.likelihood / product
    np.testing.assert_allclose(ratio, np.repeat(ratio[:, :1], 5, axis=1))
    assert family.together(parts[0]) is parts[0]


def test_which_ratings_are_answered_about_is_drawn_whatever_came_first() -> None:
    """Five of 20 ratings, by 300 seeds: without replacement, so that counts vary less than they may."""
    own = np.flatnonzero((RATINGS.users == int(np.argmax(RATINGS.counts))) & PERIODS.held(LAST))
    assert own.size == 20
    nothing, schedule = np.zeros_like(RATINGS.levels), Increments(answers_per_user=5, choose="sampled")
    held = (Held(PERIODS, 0, LAST, nothing > 0, nothing, public_seed=seed) for seed in range(300))
    chosen = np.stack([schedule.answering(each)[own] for each in held])
    assert (chosen.sum(axis=1) == 5).all()
    check_counts(chosen.sum(axis=0), np.full(own.size, 1 / own.size))
