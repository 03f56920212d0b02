"""Whether an item is in a profile, from sums with noise, to somebody who knows all else."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dprec.arrays import Bools
from dprec.attacks import ReleasedSum
from dprec.attacks.shadow import held
from dprec.attacks.sums import Cases, SumsMembership, best_with
from tests.dprec.attacks.games import Repeated, of_kinds
from tests.dprec.attacks.test_shadow import normalised, value_of

TRUTH = of_kinds(400, 300, 0.03, 1)


def released(deviation: float, rounds: int = 1) -> Any:
    def said(present: Bools, number: int) -> dict[str, Any]:
        random = np.random.default_rng([11, number])
        total = normalised(held(TRUTH)).T @ present
        sums = (total + deviation * random.standard_normal(total.size) for _ in range(rounds))
        return {"sums": tuple(ReleasedSum(each, deviation, normalised) for each in sums)}

    return said


def test_true_positives_are_not_above_what_the_noise_allows_users_with_few_items() -> None:
    """Profiles of one to five items, of which the smallest are never without one.

    The interval fails with a probability of 0.05, for a seed that is fixed.
    """
    small = of_kinds(400, 300, 0.01, 1)

    def said(present: Bools, number: int) -> dict[str, Any]:
        total = normalised(held(small)).T @ present
        noise = np.random.default_rng([11, number]).standard_normal(total.size)
        return {"sums": (ReleasedSum(total + 2 * noise, 2.0, normalised),)}

    figure = SumsMembership().perform(Repeated(small, said, distance=0.5)).figures["sums_membership_tpr"]
    # Two normal distributions one deviation apart: .018, and .025 in one of a million cases of 16,000.
    assert figure.bound is None
    assert 0.001 < value_of(figure) <= 0.025


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_attack_is_as_good_as_the_noise_allows(rounds: int) -> None:
    """The area is that of normal deviates as far apart as one item moves the sums.

    Its standard error is .004 at most, with 32,000 cases in eight releases.
    """
    game = Repeated(TRUTH, released(0.4, rounds), distance=2.5 * np.sqrt(rounds))
    figure = SumsMembership().perform(game).figures["sums_membership_auc"]
    assert game.runs == list(range(1, 8))
    cases = Cases.drawn(TRUTH, 4000, np.random.default_rng(3))
    apart = np.zeros(cases.users.size)
    for some, with_item, without in cases.profiles(TRUTH):
        moved = normalised(with_item) - normalised(without)
        apart[some] = np.sqrt(rounds * moved.power(2).sum(axis=1)) / 0.4
    expected = best_with(apart).auc
    assert expected == pytest.approx(float(norm.cdf(apart / np.sqrt(2)).mean()), abs=0.02)
    assert figure.value == pytest.approx(expected, abs=0.025)
    assert figure.bound is None


def test_the_exact_curve_of_one_distance_is_that_of_normal_deviates() -> None:
    curve = best_with(np.full(10, 1.5))
    shares = np.array([0.001, 0.01, 0.1, 0.5])
    np.testing.assert_allclose(curve.at(shares), norm.cdf(norm.ppf(shares) + 1.5), atol=2e-3)
    assert curve.auc == pytest.approx(norm.cdf(1.5 / np.sqrt(2)), abs=1e-3)
