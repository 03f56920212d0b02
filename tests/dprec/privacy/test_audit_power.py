"""The power of an audit: what is computed agrees with what happens."""

import numpy as np
import pytest

from dprec.auditing import detection, doubled, power_of, proportion_above, proportion_below


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_a_binary_channel_at_twice_its_budget(epsilon: float) -> None:
    truthful = np.exp(epsilon) / (1 + np.exp(epsilon))
    twice = np.exp(2 * epsilon) / (1 + np.exp(2 * epsilon))
    assert doubled(truthful, 1 - truthful) == pytest.approx((twice, 1 - twice))


@pytest.mark.parametrize("chances", [(0.3, 0.3), (0.2, 0.4), (0.4, 0.0), (1.0, 0.5)])
def test_what_cannot_be_doubled_stays(chances: tuple[float, float]) -> None:
    assert doubled(*chances) == chances


@pytest.mark.parametrize("promised", [0.3, 0.5, 0.6])
def test_detection_is_as_frequent_as_computed(promised: float) -> None:
    """The share of 20,000 draws has a deviation of at most 0.0036; 0.03 is over eight of them."""
    one, other, trials, failure = 0.5, 0.25, 1_000, 0.01
    random = np.random.default_rng(1)
    low = proportion_below(random.binomial(trials, one, 20_000), trials, failure)
    high = proportion_above(random.binomial(trials, other, 20_000), trials, failure)
    share = np.mean(np.log(low / high) > promised)
    assert detection(one, other, trials, promised, failure) == pytest.approx(share, abs=0.03)


def test_no_event_and_no_trials_detect_nothing() -> None:
    assert power_of(np.zeros((0, 2)), 100, 1.0, 0.01) == 0
    assert detection(0.9, 0.1, 0, 0.5, 0.01) == 0
    assert detection(0.1, 0.9, 100, 0.5, 0.01) == 0


def test_the_best_event_counts() -> None:
    curve = np.array([[0.5, 0.5], [0.73, 0.27]])
    assert power_of(curve, 10_000, 1.0, 0.01) > 0.99
