"""What devices predict alone, whatever others hold."""

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.protocols.baselines import NothingSentProtocol, RandomListProtocol
from dprec.protocols.silent import SilentProtocol
from tests.make import synthetic
from tests.refusals import refused_at

SILENT = [NothingSentProtocol(), RandomListProtocol()]


def test_a_stated_prior_is_that_of_users_without_ratings() -> None:
    nobody = synthetic(40, 30, 400).select(np.zeros(400, dtype=np.bool_))
    alone = NothingSentProtocol(prior=4.0).alone(nobody, None)
    assert alone.predict(np.arange(40), np.zeros(40, dtype=np.int64)).tolist() == [4.0] * 40


def test_orders_follow_from_the_public_seed_alone() -> None:
    first, second = (synthetic(40, 30, 400, seed=seed, positive=">= 4") for seed in (1, 2))
    users, items = (each.ravel() for each in np.indices((40, 30)))
    orders = [
        RandomListProtocol().alone(held, None, seed).predict(users, items)
        for held, seed in ((first, 7), (second, 7), (first, 8))
    ]
    np.testing.assert_array_equal(orders[0], orders[1])
    assert np.unique(np.concatenate([orders[0], orders[2]])).size == 2 * users.size


@pytest.mark.parametrize("protocol", SILENT, ids=lambda protocol: protocol.kind)
def test_a_budget_for_nothing_is_refused(protocol: SilentProtocol) -> None:
    ratings = synthetic(5, 8, 20)
    protocol.check(ratings)
    spending = type(protocol)(privacy=PrivacyBudget(epsilon=1.0))
    with refused_at("privacy"):
        spending.check(ratings)
