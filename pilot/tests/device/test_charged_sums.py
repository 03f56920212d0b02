"""What a device charges for masked contributions: the loss of the sums that they are in, and its delta."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.exchange import STATISTICS
from dprec.protocols.private_als import FactorizationOptions, PrivateAlsProtocol
from dprec.sums import SecureAggregation
from dprec_pilot.device.device import Device
from dprec_pilot.device.ledger import price_of
from pilot.tests.make import RATINGS, install

NORM, DELTA = 64, 1e-5
SETUP = PrivateAlsProtocol(
    factorization=FactorizationOptions(rank=1, bias_rounds=2, factor_rounds=2),
    aggregation=SecureAggregation(norm=NORM, dropouts=0, colluders=0, users=RATINGS.n_users),
    noise=(9.0, 11.0, 8.0, 14.0),
    privacy=PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=DELTA),
)
ROUNDS = range(1, 1 + SETUP.rounds)


def composed(*multipliers: float) -> float:
    """Return what sums with coarse Skellam noise lose between two profiles, by Renyi divergences.

    The bound of Agarwal, Kairouz and Liu (2021) at twice the norm, and the conversion of Canonne, Kamath and
    Steinke (2020), in their own terms.
    """
    squared = sum((2 / multiplier) ** 2 for multiplier in multipliers)
    kept = DELTA * (1 - 2.0**-10)
    return min(
        order * squared / 2
        + min((2 * order + 5) * squared**2 / (4 * NORM**2), 3 * squared / 2)
        + (math.log(1 / kept) - math.log(order)) / (order - 1)
        + math.log1p(-1 / order)
        for order in range(2, 129)
    )


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Device:
    return Device(install(tmp_path_factory.mktemp("device") / "u0", SETUP))


@given(answered=st.lists(st.sampled_from(ROUNDS), unique=True, min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_rounds_add_up_to_the_loss_of_those_that_were_answered(device: Device, answered: list[int]) -> None:
    prices = [
        price_of(STATISTICS, device._partition, {"round": number}, "device", answered[:before])
        for before, number in enumerate(answered)
    ]
    total = math.fsum(price.most.per_user for price in prices)
    assert total == pytest.approx(composed(*(SETUP.multipliers[number - 1] for number in answered)), rel=1e-9)
    assert [price.delta for price in prices] == [DELTA] + [0.0] * (len(answered) - 1)
    # Of one rating it is no less, as one can make up a profile.
    assert all(price.paid == price.most for price in prices)
