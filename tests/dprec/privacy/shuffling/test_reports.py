"""The reports of a run: per rating by how many are mixed, per user by composition."""

from itertools import chain

import numpy as np
import pytest

from dprec.accounting import ChannelDraws, ShuffledChannel, ShuffledReports, compose
from dprec.accounting.events import composed_losses
from dprec.accounting.shuffling import computed_for
from tests.dprec.privacy.shuffling.exact_shuffling import k_ary_response

CHANNEL = k_ary_response(2, 1.0)
DELTA = 1e-6


def reports_of(mixed: list[list[int]]) -> ShuffledReports:
    """Return the reports of users, given among how many each is shuffled."""
    users = np.repeat(np.arange(len(mixed)), [len(own) for own in mixed])
    return ShuffledReports(CHANNEL, users, np.array([*chain(*mixed)], dtype=np.int64), len(mixed))


def test_bounds_are_computed_for_no_more_reports_than_there_are() -> None:
    reports = np.array([1, 2, 3, 99, 100, 583, 10**6])
    computed = computed_for(reports)
    assert (computed <= reports).all()
    assert (computed > reports / 1.1 - 1).all()
    assert (computed_for(np.arange(1, 8)) == np.arange(1, 8)).all()


def test_a_rating_loses_the_less_the_more_reports_there_are_on_its_item() -> None:
    losses = reports_of([[1, 5, 50], [500]]).per_rating(DELTA)
    assert losses[0] == pytest.approx(1.0, abs=1e-3)
    assert losses[1] == pytest.approx(1.0, abs=0.01)
    assert (np.diff(losses) <= 0).all()
    assert losses[3] == pytest.approx(0.2157, rel=0.05)
    assert (losses <= CHANNEL.epsilon).all()


def test_reports_that_nobody_mixes_cost_what_local_reports_do() -> None:
    alone = reports_of([[1], [1] * 40, [1] * 300]).per_user(DELTA)
    counts = np.array([1, 40, 300])
    local = composed_losses([ChannelDraws((CHANNEL,), np.zeros(3, dtype=np.int64), counts)], DELTA)
    assert alone == pytest.approx(local, rel=2e-3)


def test_many_users_are_composed_as_one_by_one() -> None:
    mixed = [[100, 100, 500], [1, 10, 100, 500] * 5, [500] * 200]
    together = reports_of(mixed).per_user(DELTA)
    shuffled, step = ShuffledChannel(CHANNEL), 1 / 512
    for own, found in zip(mixed, together.tolist(), strict=True):
        sizes, times = np.unique(computed_for(np.array(own)), return_counts=True)
        kinds = [shuffled.losses(size, step) for size in sizes.tolist()]
        each = compose(list(zip(kinds, times.tolist(), strict=True))).epsilon(DELTA)
        assert found == pytest.approx(each, rel=0.01)
        assert found <= sum(reports_of([own]).per_rating(DELTA / len(own)))


def test_the_deltas_of_a_pair_bound_those_of_the_shuffled_report() -> None:
    shuffled = ShuffledChannel(k_ary_response(5, 1.0))
    losses = shuffled.losses(80, 1 / 128)
    assert losses.masses.sum() == pytest.approx(1)
    for epsilon in (0.0, 0.1, 0.303, 0.5):
        gains = -np.expm1(np.minimum(0.0, epsilon - losses.losses))
        assert losses.masses @ gains >= shuffled.delta(epsilon, 80) - 1e-15


def test_who_sent_no_report_has_no_bound_by_shuffling() -> None:
    composed = reports_of([[100], [], [100, 100]]).per_user(DELTA)
    assert np.isinf(composed[1])
    assert 0 < composed[0] < composed[2] < 2
