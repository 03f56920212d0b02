"""Budgets that are shared by what draws cost together."""

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget, dominating_channel
from dprec.accounting.events import composed_losses
from dprec.accounting.pld import largest_share
from dprec.errors import SettingError
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import BinaryFlip, RandomizedResponse
from dprec.mechanisms.zheng import ZhengRandomizedResponse
from dprec.ratings import RatingScale
from dprec.reports import CellFamily

STARS = RatingScale.evenly(1, 5, 1)
COUNTS = np.array([1, 2, 20, 0, 150])
EVERYBODY = np.ones(5, dtype=np.bool_)


def shared(mechanism: Mechanism, epsilon: float, delta: float = 1e-6) -> CellFamily:
    budget = PrivacyBudget(epsilon=epsilon, per="user", composition="pld", delta=delta)
    return mechanism.family(budget, STARS, 200)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    "mechanism", [BoundedLaplace(), RandomizedResponse(), ZhengRandomizedResponse()], ids=lambda one: one.kind
)
def test_every_profile_together_costs_what_is_asked_for(mechanism: Mechanism, epsilon: float) -> None:
    calibrated = shared(mechanism, epsilon)
    spent = composed_losses([calibrated.releases(COUNTS, EVERYBODY)], 1e-6)
    assert (spent <= epsilon).all()
    cells = calibrated.cells(COUNTS)
    # A channel spends at most 20.
    whole = np.minimum(epsilon, 20.0 * cells)
    assert (spent >= whole * (1 - 1.1e-3)).all()
    for size in cells[cells >= 150].tolist():
        assert calibrated.channel(size).epsilon > 1.5 * epsilon / size


def test_device_and_server_find_the_same_share() -> None:
    # A device knows its own profile, the server those of all.
    server, device = shared(BoundedLaplace(), 2.0), shared(BoundedLaplace(), 2.0)
    for size in range(1, 40):
        server.channel(size)
    assert device.channel(37).weights.tolist() == server.channel(37).weights.tolist()


def test_a_larger_delta_leaves_more_for_each_draw() -> None:
    shares = [shared(BoundedLaplace(), 1.0, delta).channel(150).epsilon for delta in (1e-9, 1e-6, 1e-3)]
    assert shares == sorted(shares)
    assert shares[2] > 1.4 * shares[0]


def test_rounds_share_a_budget() -> None:
    share = largest_share(dominating_channel, 50, 1.0, 1e-5, most=20.0)
    assert share == pytest.approx(0.0388, abs=1e-4)


def test_a_mechanism_whose_noise_is_given_keeps_to_the_sum() -> None:
    flip = BinaryFlip(p1=0.4, p2=0.4)
    signs = RatingScale(np.array([-1.0, 1.0]))
    budget = PrivacyBudget(epsilon=10.0, per="user", composition="pld")
    calibrated = flip.family(budget, signs, 200)
    assert calibrated.channel(20).epsilon == pytest.approx(np.log(0.6 / 0.4))


def test_only_draws_about_a_user_are_composed() -> None:
    with pytest.raises(SettingError, match="composition: 'pld' per rating; accepted: 'sum', or per: user"):
        PrivacyBudget(epsilon=1.0, composition="pld")
    for delta in (0.0, 1e-10, 0.2):
        with pytest.raises(SettingError, match="delta"):
            PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=delta)
