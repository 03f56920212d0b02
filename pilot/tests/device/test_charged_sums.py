"""What a device charges for masked contributions: the loss of the sums that they are in, and its delta."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clients.prices import Price
from dprec.accounting import Loss, PrivacyBudget
from dprec.exchange import STATISTICS, SummedSetup
from dprec.private_als import FactorizationOptions, PrivateAls
from dprec.sums import LocalAggregation, SecureAggregation, TrustedAggregation
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.joining import Joined
from dprec_pilot.device.ledger import Charge, price_of
from dprec_pilot.device.node_key import PublicLine
from pilot.tests.device.devices import group_on, install, some_ratings
from pilot.tests.server.pilots import pilot
from pilot.tests.server.test_secure_sums import secure

NORM, DELTA = 512, 1e-5
RATINGS = some_ratings()
OPTIONS = FactorizationOptions(rank=1, bias_rounds=2, factor_rounds=2)
SETUP = SummedSetup(
    method=PrivateAls(options=OPTIONS),
    aggregation=SecureAggregation(norm=NORM, dropouts=0, colluders=0, users=RATINGS.n_users),
    multipliers=(9.0, 11.0, 8.0, 14.0),
    promised=PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=DELTA),
)
ROUNDS = range(1, 1 + len(SETUP.multipliers))


def composed(*multipliers: float) -> float:
    """Return what sums with Skellam noise lose between two profiles, by Renyi divergences.

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


def price(round_index: int, loss: float, delta: float) -> Price:
    return Price(round_index, Loss(loss, loss), Loss(loss, loss), delta)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Device:
    return Device(install(tmp_path_factory.mktemp("device") / "u0", SETUP, RATINGS))


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


def test_a_device_is_told_what_is_promised_and_draws_as_if_it_were_not(device: Device) -> None:
    assert device.folder.agreement.setup == SETUP
    assert SETUP.promised is not None
    told = Joined(device.folder, PublicLine(0, ""), 0, ()).in_words[0]
    assert {f"{SETUP.promised.epsilon:g}", f"{DELTA:g};"} <= set(told.split())
    assert SETUP.of_one_device == replace(SETUP, promised=None).of_one_device
    without = replace(SETUP, promised=None)
    assert group_on(without, RATINGS) != group_on(SETUP, RATINGS)
    assert (without.delta, without.loss_of([1])) == (0.0, math.inf)


def test_what_others_would_have_to_protect_has_no_end() -> None:
    for aggregation in (TrustedAggregation(), SecureAggregation(users=9)):
        setup = replace(SETUP, aggregation=aggregation, multipliers=(0.0,) * 4)
        assert setup.loss_of([1]) == math.inf
        assert setup.composed is None
    assert replace(SETUP, aggregation=TrustedAggregation()).loss_of([1]) == math.inf
    alone = replace(SETUP, aggregation=LocalAggregation(epsilon=2.0, shares=(1.0,)), multipliers=(9.0,))
    assert 0 < alone.loss_of([1]) <= 2.0
    assert (alone.delta, alone.composed) == (0.0, None)


def test_a_charge_without_a_delta_is_written_as_it_always_was(tmp_path: Path) -> None:
    charge = Charge.of("run", STATISTICS, price(1, 0.0, 0.0), "protocol", "profile")
    folder = install(tmp_path / "u0", SETUP, RATINGS)
    line = Device(folder)._ledger.line(charge)
    assert b"delta" not in line
    assert b'"delta": 0.5' in Device(folder)._ledger.line(replace(charge, delta=0.5))


@pytest.mark.thorough
def test_prepared_limits_admit_the_runs_that_were_asked_for_and_no_more(tmp_path: Path) -> None:
    _, server = pilot(secure("secagg-item-effects"), tmp_path / "pilot", runs=2)
    device = Device(DeviceFolder(tmp_path / "pilot" / "devices" / "000000"), seeded=True)
    setup, limits = device.folder.agreement.setup, device.folder.options.limits
    assert isinstance(setup, SummedSetup)
    rounds = range(1, len(setup.multipliers) + 1)
    whole, said = setup.loss_of(rounds), server.config.protocol.privacy
    assert said is not None
    assert setup.promised == said
    # Between two profiles: more than what is promised for one and none, less than twice as much and a bit.
    assert said.epsilon < whole < 2.5 * said.epsilon
    assert limits.per_user is not None
    assert 0 < limits.per_user - whole < 2e-4
    assert (limits.per_user_lifetime, limits.delta_lifetime) == (2 * limits.per_user, 2 * said.delta)
    parts = [setup.loss_of(rounds[:done]) for done in range(len(rounds) + 1)]
    charges = [
        Charge.of(
            run,
            STATISTICS,
            price(number, after - before, 0.0 if before else said.delta),
            "protocol",
            "profile",
        )
        for run in ("one", "other", "third")
        for number, (before, after) in enumerate(pairwise(parts), start=1)
    ]
    size = len(rounds)
    assert limits.exceeded(charges[:size], charges[:size]) is None
    assert limits.exceeded(charges[size : 2 * size], charges[: 2 * size]) is None
    alone = replace(limits, runs=None, delta_lifetime=None)
    assert alone.exceeded(charges[2 * size :], charges[: 2 * size + 1]) is not None
    assert replace(limits, runs=None, per_user_lifetime=None).exceeded([], charges) is not None
