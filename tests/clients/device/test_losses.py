"""What a device charges is what its mechanism's rows differ by, over all ratings and rounds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from clients.device.device import Device
from dprec.accounting import worst_pair
from dprec.binarization import binary_scale
from dprec.completion import slope_channel
from dprec.exchange import ROW_ENTRY, SLOPES, GradientPerturbationSetup
from dprec.ratings import Ratings
from tests.clients.device.devices import agreement_on, install, request

SETUP = GradientPerturbationSetup(
    link="logistic", sigma=1.0, clamp=0.5, symbols=256, epsilon_per_round=0.75, rounds=3
)
RATED = (4, 1, 0)
"""Ratings of three users."""


def signs() -> Ratings:
    users = np.repeat(np.arange(len(RATED)), RATED)
    items = np.concatenate([np.arange(count) for count in RATED])
    values = np.where(items % 2, 1.0, -1.0)
    return Ratings.from_triples(
        users, items, values, binary_scale(), user_ids=np.arange(len(RATED)), item_ids=np.arange(6)
    )


@pytest.mark.parametrize("user", range(len(RATED)))
def test_slopes_are_charged_once_for_every_rating_in_every_round(tmp_path: Path, user: int) -> None:
    ratings, rated = signs(), RATED[user]
    device = Device(install(tmp_path / "u", SETUP, ratings, user))
    group = agreement_on(SETUP, ratings).group
    for round_index in range(1, SETUP.rounds + 1):
        row = np.full(rated, 0.1 * round_index, dtype=ROW_ENTRY).tobytes() if round_index > 1 else b""
        assert device.answer(request(SLOPES, group, round=round_index, rows=[row])).has_content()
    slope = worst_pair(slope_channel(SETUP.clamp, SETUP.symbols, SETUP.epsilon_per_round).weights)[0]
    assert slope == pytest.approx(SETUP.epsilon_per_round, rel=1e-6)
    of_rating = [charge.loss.per_rating for charge in device.charges]
    of_user = [charge.loss.per_user for charge in device.charges]
    assert math.fsum(of_rating) == pytest.approx((rated > 0) * SETUP.rounds * slope, rel=1e-9)
    assert math.fsum(of_user) == pytest.approx(rated * SETUP.rounds * slope, rel=1e-9)
