"""What a server can read in gradient reports, and compute of what devices answer about."""

from collections.abc import Sequence

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.gradients import (
    FittedProfiles,
    FullGradient,
    GradientReport,
    OneBitGradient,
    ReducedOneBitGradient,
    SampledSigns,
    SampledSignsOfSets,
)
from dprec.gradients.one_bit import PrivateSigns, projection
from dprec.testing import GradientContract

KINDS = [
    FullGradient(),
    OneBitGradient(),
    ReducedOneBitGradient(dimensions=7),
    SampledSigns(coordinates=3),
    SampledSignsOfSets(coordinates=3),
]
CONTRACT = GradientContract()
PROFILES, FACTORS, EPSILON = CONTRACT.profiles(40), CONTRACT.item_factors(), 2.0
SHAPE = CONTRACT.shape


def numbers(gradient: GradientReport) -> tuple[Floats, Floats]:
    """Return users' factors, and what devices answer about."""
    own = gradient.user_factors(PROFILES, FACTORS, 1.0)
    return own, gradient.numbers(FittedProfiles(PROFILES, own, FACTORS), public_seed=9)


def reports(gradient: GradientReport) -> Sequence[bytes]:
    return CONTRACT.encoded(gradient, PROFILES, epsilon=EPSILON)


@pytest.mark.parametrize("gradient", KINDS, ids=lambda gradient: gradient.kind)
def test_answers_are_what_the_sums_are_made_of(gradient: GradientReport) -> None:
    """Malformed reports say nothing, and those after them keep their places."""
    sent = [b"\xff" * 9, *reports(gradient)]
    valid, aggregate = gradient.decode(sent, SHAPE)
    said = gradient.answers(sent, SHAPE, EPSILON)
    assert said is not None
    assert not valid[0]
    assert np.all(valid[said.reports])
    assert np.all(np.diff(said.reports) >= 0)
    total = np.bincount(said.coordinates, said.answers, minlength=aggregate.total.size)
    unit = 2.0**-24 if said.scale is None else 1.0
    assert total == pytest.approx(aggregate.total.ravel() * unit, abs=1e-6)


def test_the_full_gradient_is_sent_as_it_is_computed() -> None:
    _, computed = numbers(FullGradient())
    said = FullGradient().answers(reports(FullGradient()), SHAPE, np.inf)
    assert said.answers == pytest.approx(computed[said.reports, said.coordinates], rel=1e-6, abs=1e-6)
    assert said.reports.size == PROFILES.items.size * SHAPE[1]


@pytest.mark.parametrize("gradient", [OneBitGradient(), *KINDS[3:]], ids=lambda gradient: gradient.kind)
def test_numbers_are_the_coordinates_that_devices_answer_about(gradient: GradientReport) -> None:
    own, computed = numbers(gradient)
    assert isinstance(gradient, PrivateSigns)
    for coordinate in range(SHAPE[0] * SHAPE[1]):
        asked = np.full(PROFILES.n_users, coordinate)
        assert computed[:, coordinate] == pytest.approx(
            gradient._values(FittedProfiles(PROFILES, own, FACTORS), asked, 1), abs=1e-12
        )


def test_a_projected_gradient_is_that_of_all_items() -> None:
    _, whole = numbers(OneBitGradient())
    _, computed = numbers(ReducedOneBitGradient(dimensions=7))
    expected = np.einsum("qi,uif->uqf", projection(9, 7, SHAPE[0]), whole.reshape(-1, *SHAPE))
    assert computed == pytest.approx(expected.reshape(PROFILES.n_users, -1), abs=1e-12)
