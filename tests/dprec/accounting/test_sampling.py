"""Sampled sums cost what an independent library finds, never less, and at most what was published of them."""

import math
import re

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant
from numpy.typing import NDArray
from scipy.stats import norm

from dprec.accounting import (
    FixedSize,
    Poisson,
    PrivacyAccountant,
    SubsampledGaussian,
    gaussian_epsilon,
    largest_sampled_distance,
    multiplier_of_updates,
    sampled_gaussian_epsilon,
)
from dprec.accounting.sampling import MixtureCells, Order
from dprec.errors import SettingError
from tests.paths import ROOT

slow = pytest.mark.thorough

SETTINGS = [
    pytest.param(0.001, 0.5, 10, 1e-6, marks=slow),
    pytest.param(0.001, 1.0, 10_000, 1e-6, marks=slow),
    pytest.param(0.001, 4.0, 10_000, 1e-6, marks=slow),
    pytest.param(0.005, 0.7, 1000, 1e-5, marks=slow),
    (0.01, 4.0, 10_000, 1e-5),
    pytest.param(0.01, 0.5, 100, 1e-5, marks=slow),
    pytest.param(0.01, 1.0, 1000, 1e-6, marks=slow),
    (0.05, 2.0, 1000, 1e-6),
    pytest.param(0.02, 0.8, 10_000, 1e-5, marks=slow),
    pytest.param(0.1, 0.7, 100, 1e-5, marks=slow),
    pytest.param(0.2, 0.5, 10, 1e-5, marks=slow),
    pytest.param(0.2, 4.0, 10_000, 1e-5, marks=slow),
]


def of_library(
    rate: float, deviation: float, rounds: int, delta: float, *, step: float, upwards: bool = True
) -> float:
    once = privacy_loss_distribution.from_gaussian_mechanism(
        deviation,
        sampling_prob=rate,
        pessimistic_estimate=upwards,
        use_connect_dots=upwards,
        value_discretization_interval=step,
    )
    return float(once.self_compose(rounds).get_epsilon_for_delta(delta))


@pytest.mark.parametrize(("rate", "deviation", "rounds", "delta"), SETTINGS)
def test_a_library_for_accounting_agrees_to_a_thousandth(
    rate: float, deviation: float, rounds: int, delta: float
) -> None:
    own = sampled_gaussian_epsilon(1 / deviation, Poisson(rate), rounds, delta)
    # Its error is about that of a step of losses, whose deviation is about rate / deviation.
    step = min(1e-4, rate / deviation / 20)
    assert own == pytest.approx(of_library(rate, deviation, rounds, delta, step=step), rel=1e-3)
    assert own >= of_library(rate, deviation, rounds, delta, step=step, upwards=False)


# Rate, noise multiplier, rounds, delta; epsilon as published, by moments or Renyi divergences; and as found.
PUBLISHED = {
    # Abadi et al. [abadi2016]: lots of a hundredth of the examples, for 100 epochs.
    "DP-SGD": (0.01, 4.0, 10_000, 1e-5, 1.26, 0.947),
    # McMahan et al. [mcmahan2018]: 763,430 users, 5,000 of them in a round to be expected, z = 1.
    "DP-FedAvg": (5000 / 763_430, 1.0, 4120, 1e-9, 4.634, 3.554),
    # github.com/tensorflow/privacy, tutorials/README.md: MNIST in batches of 256 for 60, 30 and 10 epochs.
    "TensorFlow Privacy, 60": (256 / 60_000, 1.12, 60 * 60_000 // 256, 1e-5, 2.92, 2.31),
    "TensorFlow Privacy, 30": (256 / 60_000, 0.6, 30 * 60_000 // 256, 1e-5, 9.74, 7.69),
    "TensorFlow Privacy, 10": (256 / 60_000, 1.2, 10 * 60_000 // 256, 1e-5, 1.20, 0.792),
    # Bu et al. [bu2020], Figure 4: the same batches for 20 and 70 epochs, by the moments accountant.
    "Gaussian DP, 20": (256 / 60_000, 1.3, 20 * 60_000 // 256, 1e-5, 1.34, 1.007),
    "Gaussian DP, 70": (256 / 60_000, 0.7, 70 * 60_000 // 256, 1e-5, 8.68, 7.10),
}


@pytest.mark.parametrize(
    ("rate", "deviation", "rounds", "delta", "published", "found"), PUBLISHED.values(), ids=PUBLISHED
)
def test_published_losses_are_bounds_on_what_is_found(
    rate: float, deviation: float, rounds: int, delta: float, published: float, found: float
) -> None:
    own = sampled_gaussian_epsilon(1 / deviation, Poisson(rate), rounds, delta)
    assert own == pytest.approx(found, rel=2e-3)
    # By Renyi divergences it is at most a half more, here.
    assert 2 / 3 * published - 0.01 < own < published


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rate", "deviation", "rounds", "delta", "published", "found"), PUBLISHED.values(), ids=PUBLISHED
)
def test_published_losses_are_not_undercut(
    rate: float, deviation: float, rounds: int, delta: float, published: float, found: float
) -> None:
    step = rate / deviation / 20
    bound = of_library(rate, deviation, rounds, delta, step=step, upwards=False)
    assert sampled_gaussian_epsilon(1 / deviation, Poisson(rate), rounds, delta) >= bound


def divergence(order: Order, mu: float, rate: float, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the divergence of a pair at exp(loss) in closed form."""
    if order != "with":
        # Of the pair in the other order, at the inverse ratio.
        swapped = 1 - np.exp(losses) + np.exp(losses) * divergence("with", mu, rate, -losses)
        if order == "without":
            return swapped
        return np.where(losses >= 0, divergence("with", mu, rate, losses), swapped)
    with np.errstate(divide="ignore"):
        x = np.log(np.maximum(0, np.expm1(losses) + rate) / rate) / mu + mu / 2
    return (1 - rate - np.exp(losses)) * norm.sf(x) + rate * norm.sf(x - mu)


@pytest.mark.parametrize("order", ["with", "without", "either"])
@pytest.mark.parametrize(("mu", "rate"), [(0.5, 0.01), (2.0, 0.1), (1.0, 1.0)])
def test_pairs_on_a_grid_are_no_harder_to_tell_apart(order: Order, mu: float, rate: float) -> None:
    step, tail = 0.01, 1e-3
    bound = MixtureCells.of(mu, rate, step, tail).pair(order, step)
    assert 0 < bound.infinite < 3 * tail or order != "with"
    # Further than the grid, whose ends are where a thousandth of either distribution is left.
    losses = np.linspace(-8, 8, 1601) + 0.003
    gained = np.maximum(0, -np.expm1(losses[:, None] - bound.losses)) @ bound.masses + bound.infinite
    exact = divergence(order, mu, rate, losses)
    assert (gained >= exact - 1e-12).all()
    assert (gained <= exact + 3 * tail + step / 4).all()


@pytest.mark.parametrize(("mu", "rate", "delta"), [(0.5, 0.1, 1e-3), (1.5, 0.02, 1e-4)])
def test_no_two_profiles_tell_more_in_two_rounds(mu: float, rate: float, delta: float) -> None:
    epsilon = sampled_gaussian_epsilon(mu, FixedSize(round(1000 * rate), 1000), 2, delta)
    x = np.linspace(-8 - mu, 8 + mu, 1200)

    def asked(user: float, instead: float) -> NDArray[np.float64]:
        return (1 - rate) * norm.pdf(x, loc=mu * instead) + rate * norm.pdf(x, loc=mu * user)

    # Updates of one clip: of the two profiles, in each of two rounds, and of the one who is asked instead.
    rounds = [
        (asked(one, instead), asked(other, instead))
        for one, other in ((1, -1), (-1, 1), (1, 0), (0, 1))
        for instead in (-1.0, 0.0, 1.0)
    ]
    told = [
        np.maximum(0, np.outer(a, b) - math.exp(epsilon) * np.outer(c, d)).sum() * (x[1] - x[0]) ** 2
        for a, c in rounds[:6]
        for b, d in rounds
    ]
    assert 0.5 * delta < max(told) <= delta


REPLACED = [
    (0.01, 2.0, 100, 1e-5),
    pytest.param(0.1, 4.0, 1000, 1e-6, marks=slow),
    pytest.param(0.002, 1.0, 1000, 1e-6, marks=slow),
]


@pytest.mark.parametrize(("rate", "deviation", "rounds", "delta"), REPLACED)
def test_a_fixed_number_of_clients_costs_what_its_pair_does(
    rate: float, deviation: float, rounds: int, delta: float
) -> None:
    own = sampled_gaussian_epsilon(1 / deviation, FixedSize(round(1000 * rate), 1000), rounds, delta)
    # The pair, in cells: symbols with a positive loss, the same with a negative one, and the rest.
    mu = 2 / deviation
    cuts = np.concatenate([np.linspace(mu / 2, mu + 9, 4000), [np.inf]])
    alone = -np.diff(norm.sf(cuts))
    mixed = (1 - rate) * alone - rate * np.diff(norm.sf(cuts - mu))
    rest = 1 - mixed.sum() - alone.sum()
    one, other = (
        dict(enumerate(np.log(np.concatenate([first, second, [rest]])).tolist()))
        for first, second in ((mixed, alone), (alone, mixed))
    )
    lowest, highest = (
        privacy_loss_distribution.from_two_probability_mass_functions(
            one,
            other,
            pessimistic_estimate=upwards,
            value_discretization_interval=rate / deviation / 100,
        )
        .self_compose(rounds)
        .get_epsilon_for_delta(delta)
        for upwards in (False, True)
    )
    assert lowest * (1 - 1e-3) <= own <= highest * (1 + 1e-3)
    assert highest <= lowest * (1 + 2e-2)
    # One order of it is a lower bound; what Renyi divergences say of such sampling is an upper one.
    lower = of_library(rate, deviation / 2, rounds, delta, step=rate / deviation / 20, upwards=False)
    accountant = rdp_privacy_accountant.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    once = dp_accounting.SampledWithoutReplacementDpEvent(
        1000, round(1000 * rate), dp_accounting.GaussianDpEvent(deviation / 2)
    )
    assert lower <= own <= accountant.compose(once, rounds).get_epsilon(delta)


@pytest.mark.parametrize(("mu", "rounds"), [(0.1, 1), (0.25, 100), (3.0, 4)])
def test_if_everybody_is_asked_it_is_the_gaussian_mechanism(mu: float, rounds: int) -> None:
    composed = gaussian_epsilon(mu * math.sqrt(rounds), 1e-6)
    assert sampled_gaussian_epsilon(mu, Poisson(1.0), rounds, 1e-6) == pytest.approx(composed, rel=1e-12)
    assert sampled_gaussian_epsilon(mu / 2, FixedSize(7, 7), rounds, 1e-6) == pytest.approx(composed)
    # One in a billion is asked otherwise, and it is found by composition.
    nearly = sampled_gaussian_epsilon(mu, Poisson(1 - 1e-9), rounds, 1e-6)
    assert composed * (1 - 1e-6) <= nearly <= composed


@pytest.mark.parametrize("sampling", [Poisson(0.01), Poisson(0.9), FixedSize(10, 943)])
@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 100), (8.0, 2000)])
def test_the_largest_distance_spends_the_budget(
    sampling: Poisson | FixedSize, epsilon: float, rounds: int
) -> None:
    distance = largest_sampled_distance(epsilon, 1e-6, sampling, rounds)
    assert sampled_gaussian_epsilon(distance, sampling, rounds, 1e-6) <= epsilon
    assert sampled_gaussian_epsilon(distance * (1 + 2e-4), sampling, rounds, 1e-6) > epsilon
    # The last digits would be those of a processor's own order of additions.
    assert float(np.float32(distance)) == distance


def test_each_user_is_charged_for_the_rounds_in_which_it_could_be_asked() -> None:
    accountant = PrivacyAccountant(np.ones(3, dtype=np.bool_))
    for round_index in range(1, 5):
        users = np.array([True, round_index > 1, False])
        sum_of_round = SubsampledGaussian(0.5 if round_index < 4 else 1.0, Poisson(0.1))
        accountant.step(round_index, users, np.inf, np.inf, sum_of_round)
    most, fewer, none = accountant.get_epsilon(1e-6).tolist()
    assert none == 0.0
    alone = [
        sampled_gaussian_epsilon(0.5, Poisson(0.1), 4, 1e-6),
        sampled_gaussian_epsilon(1.0, Poisson(0.1), 4, 1e-6),
    ]
    assert alone[0] < fewer < most < alone[1]


def test_rounds_with_different_noise_compose_on_one_grid() -> None:
    accountant = PrivacyAccountant(np.ones(1, dtype=np.bool_))
    for round_index, deviation in enumerate((2.0, 2.0, 1.0, 2.0), start=1):
        mechanism = SubsampledGaussian(1 / deviation, Poisson(0.1))
        accountant.step(round_index, accountant.rated, np.inf, np.inf, mechanism)
    thrice, once = (
        privacy_loss_distribution.from_gaussian_mechanism(
            deviation, sampling_prob=0.1, value_discretization_interval=1e-3
        ).self_compose(times)
        for deviation, times in ((2.0, 3), (1.0, 1))
    )
    expected = thrice.compose(once).get_epsilon_for_delta(1e-6)
    assert accountant.get_epsilon(1e-6)[0] == pytest.approx(expected, rel=1e-3)


def test_two_profiles_are_bounded_whatever_the_sampling() -> None:
    # The sum without a user stands where that of who is asked instead would.
    accountant = PrivacyAccountant(np.ones(1, dtype=np.bool_))
    accountant.step(1, accountant.rated, np.inf, np.inf, SubsampledGaussian(0.5, Poisson(0.1)))
    between = accountant.between_profiles(1e-6)[0]
    assert between == sampled_gaussian_epsilon(0.5, FixedSize(1, 10), 1, 1e-6)
    assert between > accountant.get_epsilon(1e-6)[0] > 0


def test_documented_losses_are_those_of_sampled_rounds() -> None:
    text = (ROOT / "docs" / "units-and-trust.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| (everybody|one in 10+) \| ([0-9.]+) \| ([0-9.]+) \|$", text, re.MULTILINE)
    assert [asked for asked, *_ in documented] == ["everybody", "one in 10", "one in 100"]
    for users, (_, *figures) in zip((1, 10, 100), documented, strict=True):
        kinds = Poisson(1 / users), FixedSize(1, users)
        found = [sampled_gaussian_epsilon(0.5, one, 1000, 1e-6) for one in kinds]
        assert [f"{epsilon:.2f}" for epsilon in found] == figures


def test_a_sampling_is_composed_for_one_adjacency() -> None:
    Poisson(0.1).check("add-or-remove-one")
    FixedSize(1, 10).check("replace-one")
    with pytest.raises(SettingError, match="adjacency"):
        Poisson(0.1).check("replace-one")
    with pytest.raises(SettingError, match="adjacency"):
        FixedSize(1, 10).check("add-or-remove-one")


@pytest.mark.parametrize("deviation", [0.6, 5.0, 1e6])
def test_updates_beside_a_count_cost_what_the_round_may(deviation: float) -> None:
    multiplier = multiplier_of_updates(1.0, deviation)
    # The noise in clips and counts that two profiles are apart by at most, as one vector.
    for moved in (1.0, 2.0):
        apart = np.array([moved / multiplier, 0.5 * moved / deviation])
        assert float(np.linalg.norm(apart)) == pytest.approx(moved, rel=1e-12)


def test_a_count_that_costs_all_leaves_nothing_for_updates() -> None:
    # An update is 2 clips from another, a bit that is 1 is 1 from one that is 0.
    with pytest.raises(SettingError, match="deviation"):
        multiplier_of_updates(1.0, 0.5)
