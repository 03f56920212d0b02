import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.fisher_optimal import FisherOptimal, information, patterns
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
SKEWED = (0.06, 0.11, 0.27, 0.35, 0.21)


def favoured(epsilon: float) -> set[str]:
    """Return the levels that each symbol favours."""
    probabilities = FisherOptimal(histogram=SKEWED).channel(STARS, epsilon).probabilities
    above = probabilities > 1.0001 * probabilities.min(axis=0)
    return {"".join(str(level + 1) for level in np.flatnonzero(column)) for column in above.T}


def test_a_small_budget_buys_one_bit_and_a_larger_one_more_symbols() -> None:
    for epsilon in (0.1, 0.5, 1.0, 1.6):
        assert favoured(epsilon) == {"123", "45"}
    assert favoured(2.0) == {"123", "4", "5"}
    assert favoured(3.0) == {"12", "3", "4", "5"}


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0])
def test_no_other_mechanism_says_more(epsilon: float) -> None:
    best = information(
        FisherOptimal(histogram=SKEWED).channel(STARS, epsilon).probabilities, SKEWED, 0.5
    ).sum()
    for kind in ("randomized-response", "threshold-bit", "duchi", "piecewise", "hybrid", "bounded-laplace"):
        other = MECHANISMS[kind]().channel(STARS, epsilon).probabilities
        assert information(other, SKEWED, 0.5).sum() <= best * (1 + 1e-6), kind


def test_information_is_the_squared_slope_of_the_symbols_log_likelihood() -> None:
    # Two levels, split at 0, sent in clear: phi(t)^2 / (Phi(t) Phi(-t)), averaged over t from Normal(0, 1/4).
    from scipy import integrate, stats

    normal = stats.norm
    prior = stats.norm(scale=0.5)
    expected = integrate.quad(
        lambda t: prior.pdf(t) * normal.pdf(t) ** 2 / (normal.cdf(t) * normal.cdf(-t)), -5, 5
    )[0]
    assert information(np.eye(2), (1.0, 1.0), 0.25).sum() == pytest.approx(expected, rel=1e-6)


def test_many_levels_are_split_into_runs() -> None:
    assert patterns(5).shape == (5, 30)
    many = patterns(21)
    assert many.shape[0] == 21
    assert many.shape[1] < 500
    assert not many.all(axis=0).any()
    assert many.any(axis=0).all()
    jokes = RatingScale.evenly(-10, 10, 1, continuous=True)
    assert FisherOptimal().channel(jokes, 1.0).epsilon == pytest.approx(1.0)


def test_a_histogram_of_another_scale_is_refused() -> None:
    with pytest.raises(SettingError, match=r"histogram: 2 shares, for a scale of 5 levels"):
        FisherOptimal(histogram=(0.5, 0.5)).channel(STARS, 1.0)


@pytest.mark.parametrize("share", [0.0, -1.0, float("nan"), "1"])
def test_a_share_that_is_not_above_0_is_refused(share: float) -> None:
    with pytest.raises(SettingError, match="histogram"):
        FisherOptimal(histogram=(1.0, 1.0, 1.0, 1.0, share))
