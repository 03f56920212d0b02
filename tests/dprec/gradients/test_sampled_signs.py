"""Private signs of a few coordinates: what they cost together, and what they estimate."""

import itertools
import math

import numpy as np
import pytest

from dprec.completion import Profiles, solve_user_factors
from dprec.errors import InputError
from dprec.gradients import SampledSigns
from dprec.testing import GradientContract
from simulation import load
from simulation.protocols.iterative import IterativeProtocol

PARTITIONS = GradientContract()
SHAPE = PARTITIONS.shape


def shares_of_answers(gradient: SampledSigns, rating: float, epsilon: float) -> dict[bytes, float]:
    """Return how often each report occurs for a catalogue of two items of which the first has a rating."""
    users = 200_000
    profiles = Profiles(np.arange(users + 1), np.zeros(users, np.int32), np.full(users, rating), 2)
    factors = np.array([[1.0], [1.0]])
    draws = PARTITIONS.draws(profiles)
    own = np.full((users, 1), 1.0)
    reports = gradient.encode(profiles, own, factors, epsilon, draws)
    kinds, counts = np.unique(np.array([report[0] for report in reports]), return_counts=True)
    return {bytes([kind]): count / users for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)}


def test_all_answers_of_a_report_cost_the_budget_together() -> None:
    """The frequencies of all 16 reports under the two extreme gradients, each within six deviations."""
    gradient, epsilon = SampledSigns(coordinates=2), 2.0
    low, high = (shares_of_answers(gradient, rating, epsilon) for rating in (-9.0, 11.0))
    probable = 1 / (1 + math.exp(-epsilon / 2))
    ratios = []
    for one, other in itertools.product(range(4), repeat=2):
        report = bytes([(one << 2 | other) << 4])
        # The first item's answer follows the gradient's sign, the second item's is a fair coin.
        chances = [
            math.prod(0.5 if field > 1 else (probable if field == side else 1 - probable) for field in pair)
            / 4
            for side, pair in ((0, (one, other)), (1, (one, other)))
        ]
        ratios.append(chances[0] / chances[1])
        for share, chance in zip((high[report], low[report]), chances, strict=True):
            assert abs(share - chance) < 6 * math.sqrt(chance / 200_000)
    assert math.log(max(ratios)) == pytest.approx(epsilon)
    assert epsilon - 1e-9 < gradient.exact_epsilon(epsilon) <= epsilon


def test_more_coordinates_estimate_the_same_gradient() -> None:
    """Every one of 48 coordinates within 5.5 deviations: false alarm 48 x 4e-8; the seed is fixed."""
    users, epsilon, gradient = 40_000, 6.0, SampledSigns(coordinates=3)
    profiles, factors = PARTITIONS.profiles(users), PARTITIONS.item_factors()
    own = solve_user_factors(profiles, factors, 1.0)
    cells = np.clip(-2.0 * own[profiles.users] * profiles.residuals(own, factors)[:, None], -1.0, 1.0)
    expected = np.zeros(SHAPE)
    np.add.at(expected, profiles.items, cells / users)
    _, aggregate = gradient.decode(PARTITIONS.encoded(gradient, profiles, epsilon=epsilon), SHAPE)
    estimate = gradient.gradient(aggregate, SHAPE, epsilon, 9)
    limit = 5.5 * gradient.noise_deviation(SHAPE, epsilon) / math.sqrt(users)
    np.testing.assert_allclose(estimate, expected, atol=limit)


def test_a_gradient_with_fewer_coordinates_is_refused() -> None:
    with pytest.raises(InputError, match=r"coordinates: 49; accepted: at most 48"):
        SampledSigns(coordinates=49).check(SHAPE)


@pytest.mark.parametrize(("proxy", "notes"), [(True, 2), (False, 1)])
def test_a_proxy_changes_what_can_be_linked_and_not_the_loss(proxy: bool, notes: int) -> None:
    protocol = load("fmf-ldp", [f"protocol.gradient.proxy={str(proxy).lower()}"]).protocol
    assert isinstance(protocol, IterativeProtocol)
    guarantee = protocol.guarantee((1000, 100))
    assert (guarantee.trust, len(guarantee.notes)) == ("local", notes)
    assert protocol.epsilon_per_round == pytest.approx(0.8)
