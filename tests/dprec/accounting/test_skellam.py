"""What sums with Skellam noise cost, against brute force and another library."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.special import ive

from dprec.accounting import SkellamLoss, gaussian_epsilon, largest_mu, skellam_epsilon, skellam_multiplier
from dprec.accounting.skellam import FINE, renyi_divergences
from dprec.arrays import Floats, Ints

DELTA = 1e-6


def exact_divergence(contribution: tuple[int, ...], variance: float, order: int) -> float:
    """Return the Renyi divergence of a shift by brute force: numbers are independent, so it adds up."""
    values = np.arange(-250, 251)
    total = 0.0
    for shift in contribution:
        at, moved = ive(np.abs(values), variance), ive(np.abs(values - shift), variance)
        seen = (at > 1e-50) & (moved > 1e-50)
        total += math.log((at[seen] ** order * moved[seen] ** (1.0 - order)).sum()) / (order - 1)
    return total


@pytest.mark.parametrize("contribution", [(1,), (3,), (1, 1), (2, -1, 1)])
@pytest.mark.parametrize("variance", [2.0, 9.0, 60.0])
def test_the_bound_holds_by_brute_force(contribution: tuple[int, ...], variance: float) -> None:
    norm = math.sqrt(sum(shift**2 for shift in contribution))
    orders = np.array([2, 3, 6])
    bounds = renyi_divergences(math.sqrt(variance) / norm, norm, orders)
    exact = [exact_divergence(contribution, variance, order) for order in orders.tolist()]
    assert (np.array(exact) <= bounds).all()
    assert exact[0] >= 0.3 * bounds[0]


@pytest.mark.parametrize(
    ("variance", "square", "order", "excess"),
    [
        # Noise of 4 times the norm: (19 * 64 + 6 * 64) / (4 * 1024^2).
        (1024.0, 64.0, 10, 1600 / 4_194_304),
        (30.0, 1.0, 48, (95 + 6) / 3600),
        # Noise as large as the norm: 3 D1 / (2 v), where the other is 6.25.
        (1.0, 1.0, 10, 1.5),
        (2.0, 3.0, 48, 2.25),
    ],
)
def test_the_bound_is_as_published(variance: float, square: float, order: int, excess: float) -> None:
    """By v, D^2 and D1 = D^2 as in the paper; shifts by brute force are too far below to tell."""
    (bound,) = renyi_divergences(math.sqrt(variance / square), math.sqrt(square), np.array([order]))
    assert bound - order * square / (2 * variance) == pytest.approx(excess, rel=1e-9)


@pytest.mark.parametrize("multiplier", [0.8, 3.0, 20.0])
def test_of_any_noise_divergences_are_as_those_of_gaussian_noise_on_a_finer_grid(multiplier: float) -> None:
    accountant = RdpAccountant(orders=list(range(2, 1000)))
    accountant.compose(GaussianDpEvent(multiplier))
    expected = accountant.get_epsilon(DELTA)
    coarse = 0.99 * FINE / multiplier
    assert skellam_epsilon(multiplier, coarse, DELTA) == pytest.approx(expected, rel=1e-3)
    assert skellam_epsilon(multiplier, coarse, DELTA) >= expected
    assert skellam_epsilon(multiplier, 8.0, DELTA) > skellam_epsilon(multiplier, coarse, DELTA)


def test_releases_cost_no_more_than_one_with_their_joint_multiplier() -> None:
    orders = np.arange(2, 50)
    several = sum(renyi_divergences(multiplier, 4.0, orders) for multiplier in (2.0, 3.0, 5.0))
    joint = (2.0**-2 + 3.0**-2 + 5.0**-2) ** -0.5
    assert (several <= renyi_divergences(joint, 4.0, orders) * (1 + 1e-12)).all()
    accountant = RdpAccountant(orders=list(range(2, 1000)))
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(6.0), 9))
    assert skellam_epsilon(2.0, 250.0, DELTA) == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 20.0])
def test_the_multiplier_is_the_smallest_that_the_budget_allows(epsilon: float) -> None:
    for loss in (SkellamLoss(256.0, 256.0), SkellamLoss(32.0, 65536.0)):
        multiplier = skellam_multiplier(epsilon, loss, DELTA)
        assert loss(1 / multiplier, DELTA) <= epsilon
        assert loss(1 / (multiplier * (1 - 1e-6)), DELTA) > epsilon


@lru_cache(maxsize=4)
def probabilities(steps: int) -> Floats:
    """Return the logarithms of Skellam probabilities of 0, 1, ... to 13 deviations of so many steps."""
    variance, furthest = steps**2, 16 * steps
    bessel = [0] * (furthest + 2)
    bessel[furthest] = 1 << 512
    for k in range(furthest, 0, -1):
        bessel[k - 1] = bessel[k + 1] + 2 * k * bessel[k] // variance
    total = bessel[0] + 2 * sum(bessel[1:])
    # Quotients of large integers, to more digits than a float has.
    scaled = [(value << 400) // total for value in bessel[: 13 * steps + 1]]
    return np.array([math.log(value) for value in scaled]) - 400 * math.log(2)


def nearly_gaussian(numbers: Ints, steps: int) -> Floats:
    """Return the logarithms of the probabilities of rounded Gaussian noise and jumps of 14."""
    variance = steps**2
    jumps = Fraction(120 * variance + 1, 120 * 14**4)
    gaussian = float(variance - Fraction(1, 12) - jumps * 14**2)
    counts = np.arange(-400, 401)
    weights = ive(np.abs(counts), float(jumps))
    nodes, shares = np.polynomial.legendre.leggauss(8)
    far = (numbers**2 / (2 * gaussian))[:, None]
    total = np.zeros(numbers.size)
    for node, share in zip(nodes / 2, shares / 2, strict=True):
        exponents = -((numbers[:, None] - 14 * counts + node) ** 2) / (2 * gaussian)
        total += share * np.exp(exponents + far) @ weights
    return np.asarray(np.log(total) - far[:, 0] - 0.5 * math.log(2 * math.pi * gaussian))


@pytest.mark.parametrize("steps", [512, 1024])
def test_fine_noise_is_nearly_that_which_is_made_of_gaussian_noise(steps: int) -> None:
    numbers = np.arange(0, 12 * steps + 1, 64)
    logarithms = probabilities(steps)[numbers]
    apart = np.abs(logarithms - nearly_gaussian(numbers, steps))
    squares = (numbers / steps) ** 2
    # E[(x^2 / v + T^2)^3], by the moments of a normal number.
    bound = 1.03 * 196 / (720 * float(steps) ** 4) * (squares**3 + 3 * squares**2 + 9 * squares + 15)
    assert (apart <= bound + 1e-12).all()
    finer = (steps / 512) ** 4
    assert 0.9e-5 < apart.max() * finer < bound.max() * finer < 1.3e-5
    mean_square = 2 * 64 * float(np.exp(logarithms) @ apart**2)
    assert math.sqrt(mean_square) * finer == pytest.approx(195 / 512.0**4 / math.sqrt(720), rel=0.05)
    assert math.sqrt(mean_square) * finer < 8.8e-10


@pytest.mark.parametrize("norm", [60, 121, 780])
def test_what_fine_noise_costs_is_hardly_more_than_one_number_shows(norm: int) -> None:
    half = np.exp(probabilities(512))
    whole = np.concatenate([half[:0:-1], half])
    at, moved = whole[norm:], whole[:-norm]

    def above(epsilon: float) -> float:
        return float(np.maximum(0.0, at - np.exp(epsilon) * moved).sum()) - DELTA

    shown = brentq(above, 0.0, 60.0)
    counted = skellam_epsilon(512 / norm, norm, DELTA)
    assert shown < counted < 1.004 * shown + 2.0**-9
    assert counted < 0.97 * skellam_epsilon(511 / norm, norm, DELTA)


def test_a_norm_by_rule_makes_noise_fine_as_far_as_it_goes() -> None:
    loss = SkellamLoss(32.0, 65536.0)
    distances = np.geomspace(1e-4, 1e3, 200)
    deviations = np.array([loss.norm(distance) / distance for distance in distances])
    assert (deviations >= np.minimum(FINE, 65536 / distances)).all()
    assert loss(1.0, DELTA) == pytest.approx(gaussian_epsilon(1.0, DELTA), rel=4e-3)
    assert loss.norm(1e-4) == 32.0


def test_the_gaussian_part_and_the_jumps_have_the_moments_of_the_noise() -> None:
    """Of the least variance, exactly: the second cumulant and the fourth."""
    variance = int(FINE) ** 2
    jumps = (variance + Fraction(1, 120)) / 14**4
    gaussian = variance - Fraction(1, 12) - jumps * 14**2
    # Of a uniform number from -1/2 to 1/2, by which rounding moves another, they are 1 / 12 and -1 / 120.
    assert gaussian + Fraction(1, 12) + jumps * 14**2 == variance
    assert jumps * 14**4 - Fraction(1, 120) == variance
    distance = FINE / math.sqrt(gaussian)
    told = skellam_epsilon(1.0, FINE, DELTA)
    assert told >= gaussian_epsilon(distance, DELTA) + 2.0**-9
    assert told == pytest.approx(gaussian_epsilon(distance, DELTA), abs=4e-3)


def test_it_takes_a_little_more_noise_than_of_the_central_model_and_less_than_by_divergences() -> None:
    """As docs/whole-profiles.md says of epsilon 1."""
    ruled = skellam_multiplier(1.0, SkellamLoss(32.0, 65536.0), DELTA) * largest_mu(1.0, DELTA)
    coarse = skellam_multiplier(1.0, SkellamLoss(32.0, 32.0), DELTA) * largest_mu(1.0, DELTA)
    assert (ruled, coarse) == (pytest.approx(1.004, abs=1e-3), pytest.approx(1.073, abs=5e-3))


@pytest.mark.parametrize("norm", [128.0, 256.0, 512.0])
def test_equal_shares_of_a_budget_that_fine_noise_just_keeps_add_up_to_no_more(norm: float) -> None:
    """At the least noise that is fine, whatever rounding makes of the sum of the shares."""
    loss = SkellamLoss(norm, norm)
    budget = loss(norm / FINE, DELTA) * 1.01
    whole = skellam_multiplier(budget, loss, DELTA)
    assert whole == pytest.approx(FINE / norm, rel=1e-8)
    for rounds in range(1, 60):
        distances = [1 / (whole / math.sqrt(1 / rounds))] * rounds
        assert loss(math.sqrt(sum(distance**2 for distance in distances)), DELTA) <= budget
